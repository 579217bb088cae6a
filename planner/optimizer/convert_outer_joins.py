"""Rule: outer joins whose extra rows a filter drops become inner joins."""

from __future__ import annotations

from dataclasses import replace

from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.plan.expressions import Call, Cast, ColumnRef, Expression, conjuncts
from stagecoach.planner.plan.logical import Filter, Join, LogicalPlan
from stagecoach.planner.tree import transform_up

_STRICT = frozenset(
    (
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "add",
        "subtract",
        "multiply",
        "divide",
        "div",
        "mod",
        "negate",
        "abs",
        "like",
        "contains",
        "startswith",
        "endswith",
        "concat",
        "substring",
        "length",
        "year",
        "month",
        "day",
        "date_add",
        "date_sub",
        "datediff",
        "add_months",
        "not",
        "average",
    )
)


def convert_outer_joins(plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
    """Make a left join inner where a conjunct above it is never true for its NULL rows.

    Before:  Filter[r.x > 1] <- LeftJoin(l, r)
    After:   Filter[r.x > 1] <- InnerJoin(l, r)
    Never:   for conjuncts that NULL may satisfy (IS NULL, COALESCE, CASE, OR, <=>).
    """
    del context
    return transform_up(plan, _convert)


def _convert(node: LogicalPlan) -> LogicalPlan:
    if not isinstance(node, Filter):
        return node
    join = node.child
    if not isinstance(join, Join) or join.kind not in ("left", "right", "full"):
        return node
    strict: set[int] = set()
    for part in conjuncts(node.predicate):
        strict |= null_rejected(part)
    left = bool(strict & join.left.column_ids)
    right = bool(strict & join.right.column_ids)
    kind = join.kind
    if (
        (kind == "left" and right)
        or (kind == "right" and left)
        or (kind == "full" and left and right)
    ):
        return replace(node, child=replace(join, kind="inner"))
    if kind == "full" and left:
        return replace(node, child=replace(join, kind="left"))
    if kind == "full" and right:
        return replace(node, child=replace(join, kind="right"))
    return node


def null_rejected(conjunct: Expression) -> set[int]:
    """Columns whose NULL keeps the predicate from being true."""
    if isinstance(conjunct, Call) and conjunct.function == "is_not_null":
        return _null_makers(conjunct.args[0])
    return _null_makers(conjunct)


def _null_makers(expr: Expression) -> set[int]:
    """Columns whose NULL makes the expression NULL; IS NOT NULL itself never is."""
    if isinstance(expr, ColumnRef):
        return {expr.id}
    if isinstance(expr, Cast):
        return _null_makers(expr.arg)
    if isinstance(expr, Call) and expr.function == "in":
        return _null_makers(expr.args[0])
    if isinstance(expr, Call) and expr.function in _STRICT:
        return {i for arg in expr.args for i in _null_makers(arg)}
    return set()
