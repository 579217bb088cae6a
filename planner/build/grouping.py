"""GROUP BY: group keys and aggregates.

In: a plan, its scope, the expressions of a SELECT. Out: an aggregate, and the expressions over it.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from planner.build.context import BuildContext
from planner.build.sorting import ordinal
from planner.errors import AnalysisError, UnsupportedSqlError
from planner.expressions import (
    AggregateCall,
    Column,
    ColumnRef,
    Expression,
    Literal,
    SubqueryExpression,
    contains,
)
from planner.logical import (
    Aggregate,
    LogicalPlan,
)
from planner.scalars import build_scalar
from planner.scope import Scope
from planner.tree import walk


def plan_aggregate(
    context: BuildContext,
    plan: LogicalPlan,
    group: exp.Group | None,
    scope: Scope,
    items: list[tuple[str, Expression]],
    expressions: list[Expression],
) -> tuple[LogicalPlan, list[Expression]]:
    """The aggregate below a SELECT, and its expressions rewritten over the aggregate."""
    keys = _group_keys(group, scope, items)
    groups = tuple((context.column(_label(e), e.dtype), e) for e in keys)
    calls: dict[AggregateCall, Column] = {}
    for expr in expressions:
        for part in walk(expr):
            if isinstance(part, AggregateCall) and part not in calls:
                calls[part] = context.column(part.function, part.dtype)
    replaced: dict[Expression, Expression] = {e: c.ref for c, e in groups}
    replaced |= {e: c.ref for e, c in calls.items()}
    aggregate = Aggregate(plan, groups, tuple((c, e) for e, c in calls.items()))
    rewritten = [_replace(e, replaced) for e in expressions]
    for after in rewritten:
        stray = (after.column_ids & plan.column_ids) - aggregate.column_ids
        if stray:
            name = next(c.name for c in plan.columns if c.id in stray)
            raise AnalysisError(f"column '{name}' is neither aggregated nor in GROUP BY")
    return aggregate, rewritten


def _group_keys(
    group: exp.Group | None,
    scope: Scope,
    items: list[tuple[str, Expression]],
) -> list[Expression]:
    if group is None:
        return []
    for part in ("rollup", "cube", "grouping_sets", "totals"):
        if group.args.get(part):
            raise UnsupportedSqlError(f"{part.upper().replace('_', ' ')} is not staged yet")
    if group.args.get("all"):
        plain = [e for _, e in items if not contains(e, AggregateCall)]
        return list(dict.fromkeys(plain))
    keys: list[Expression] = []
    for item in group.expressions:
        if isinstance(item, exp.Literal) and not item.is_string:
            keys.append(ordinal(item, [e for _, e in items], "GROUP BY"))
        elif isinstance(item, exp.Tuple):
            raise UnsupportedSqlError("GROUP BY a tuple")
        else:
            keys.append(build_scalar(item, scope))
    for key in keys:
        if contains(key, AggregateCall):
            raise AnalysisError("an aggregate in GROUP BY")
    return [k for k in dict.fromkeys(keys) if not isinstance(k, Literal)] or keys[:1]


def _replace(expr: Expression, replaced: Mapping[Expression, Expression]) -> Expression:
    """`expr` with whole subtrees exchanged, the largest first."""
    if expr in replaced:
        return replaced[expr]
    if isinstance(expr, SubqueryExpression) and expr.plan.free_ids:
        columns = {e.id: r for e, r in replaced.items() if isinstance(e, ColumnRef)}
        if not expr.plan.free_ids <= set(columns):
            return expr
        raise UnsupportedSqlError("a correlated subquery over grouped columns")
    return expr.with_children(tuple(_replace(c, replaced) for c in expr.children))


def _label(expr: Expression) -> str:
    return expr.name if isinstance(expr, ColumnRef) else "group"
