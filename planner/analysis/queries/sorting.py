"""Build ORDER BY, SORT BY, LIMIT and OFFSET."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from stagecoach.planner.analysis.queries.constants import whole_number
from stagecoach.planner.analysis.queries.context import BuildContext
from stagecoach.planner.analysis.scalars import build_scalar
from stagecoach.planner.analysis.scalars.ordered_sets import directed
from stagecoach.planner.analysis.scope import Scope
from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    ColumnRef,
    Expression,
    Literal,
    SortKey,
    contains,
)
from stagecoach.planner.plan.logical import (
    Limit,
    LogicalPlan,
    NamedExpression,
    Project,
    Sort,
)
from stagecoach.planner.syntax.places import located
from stagecoach.planner.types import INT, NULL


def sort_keys(node: exp.Query, scope: Scope, outputs: list[Expression]) -> list[SortKey]:
    """The items of ORDER BY; those of SORT BY and CLUSTER BY where a LIMIT makes them matter.

    Without LIMIT, SORT BY only orders the rows within the partitions of the result, of which a
    plan has none: its items are resolved, for their errors, and left out.

    Args:
        node: The query.
        scope: What the items see.
        outputs: The select items, for positions and ALL.

    Raises:
        AnalysisError: For unknown names, and for clauses that exclude each other.
    """
    keys = _clause_keys(node.args.get("order"), scope, outputs)
    clauses = [part for part in ("sort", "distribute", "cluster") if node.args.get(part)]
    if (keys and clauses) or (len(clauses) > 1 and "cluster" in clauses):
        with located(node.args[clauses[-1]]):
            raise AnalysisError(
                "ORDER BY, SORT BY, DISTRIBUTE BY and CLUSTER BY cannot be combined"
            )
    for part in clauses:
        if part == "distribute":
            for item in node.args[part].expressions:  # values of any type, maps too
                build_scalar(item.this if isinstance(item, exp.Ordered) else item, scope)
            continue
        found = _clause_keys(node.args[part], scope, outputs)
        if node.args.get("limit") is not None:
            keys = found
    return keys


def _clause_keys(clause: exp.Expr | None, scope: Scope, outputs: list[Expression]) -> list[SortKey]:
    keys: list[SortKey] = []
    items = clause.expressions if clause is not None else []
    for item in items:
        target = item.this if isinstance(item, exp.Ordered) else item
        with located(target):
            exprs = [_sorted_by(target, scope, outputs)]
        if _is_all(target) and len(items) == 1:
            exprs = outputs
        keys.extend(directed(item, expr) for expr in exprs)
    return keys


def _sorted_by(target: exp.Expr, scope: Scope, outputs: list[Expression]) -> Expression:
    if is_ordinal(target):
        return ordinal(target, outputs, "ORDER BY")
    if _is_all(target):
        return Literal(NULL, None)
    return build_scalar(target, scope)


def _is_all(target: exp.Expr) -> bool:
    """Whether it is the word ALL, which hides a column of that name."""
    plain = isinstance(target, exp.Var) or (isinstance(target, exp.Column) and not target.table)
    return plain and target.name.lower() == "all"


def order_and_limit(
    context: BuildContext, node: exp.Query, plan: LogicalPlan, scope: Scope
) -> LogicalPlan:
    """The plan of a set operation or nested query in the order that it asks for."""
    keys = sort_keys(node, scope, [c.ref for c in plan.columns])
    shown = plan.columns
    hidden: list[NamedExpression] = []
    for position_, key in enumerate(keys):
        if contains(key.expr, AggregateCall):
            with located(node.args.get("order")):
                raise AnalysisError(
                    "aggregates are not allowed in ORDER BY of a set operation or nested query"
                )
        if not isinstance(key.expr, ColumnRef):
            column = context.column("sort_key", key.expr.dtype)
            hidden.append((column, key.expr))
            keys[position_] = replace(key, expr=column.ref)
    if hidden:
        plan = Project(plan, (*((c, c.ref) for c in shown), *hidden))
    if keys:
        plan = Sort(plan, tuple(keys))
    plan = limited(node, plan, scope)
    return Project(plan, tuple((c, c.ref) for c in shown)) if hidden else plan


def limited(node: exp.Query, plan: LogicalPlan, scope: Scope | None = None) -> LogicalPlan:
    """The plan cut by LIMIT and OFFSET.

    Raises:
        AnalysisError: For bounds that are not constant whole numbers of 0 or more.
    """
    limit, offset = node.args.get("limit"), node.args.get("offset")
    if limit is None and offset is None:
        return plan
    if limit is not None and not isinstance(limit, exp.Limit):
        with located(limit):
            raise UnsupportedSqlError(f"{limit.key.upper()} is not staged")
    count = None if limit is None else _whole(limit.expression, "LIMIT", scope)
    skip = 0 if offset is None else _whole(offset.expression, "OFFSET", scope)
    if count is None and not skip:
        return plan
    if count is not None and count + (skip or 0) >= 1 << 31:
        with located(offset or limit or node):
            raise AnalysisError(
                f"the sum of LIMIT {count} and OFFSET {skip} is not an int",
                condition="SUM_OF_LIMIT_AND_OFFSET_EXCEEDS_MAX_INT",
            )
    return Limit(plan, count, skip or 0)


def is_ordinal(node: exp.Expr) -> bool:
    """Whether Spark takes a key for the position of a select item: an int, with a sign or not.

    Parentheses around it change nothing: `(1)` in GROUPING SETS is a set of one position.
    """
    node = node.unnest()
    inner = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(inner, exp.Literal) or inner.is_string:
        return False
    return str(inner.this).isdigit() and int(inner.this) < 1 << 31


def ordinal(node: exp.Expr, outputs: list[Expression], clause: str) -> Expression:
    """The select item at a position.

    Raises:
        AnalysisError: If there is none, or GROUP BY names an aggregate.
    """
    node = node.unnest()
    position_ = -int(node.this.this) if isinstance(node, exp.Neg) else int(node.this)
    if not 1 <= position_ <= len(outputs):
        raise AnalysisError(
            f"{clause} position {position_} is not in the select list of {len(outputs)} items"
        )
    expr = outputs[position_ - 1]
    if clause == "GROUP BY" and contains(expr, AggregateCall):
        raise AnalysisError(f"GROUP BY position {position_} is an aggregate")
    return expr


def _whole(node: exp.Expr, clause: str, scope: Scope | None) -> int | None:
    """The bound that a constant expression gives; None for ALL."""
    with located(node):
        return _bound(node, clause, scope)


def _bound(node: exp.Expr, clause: str, scope: Scope | None) -> int | None:
    if is_ordinal(node) and not isinstance(node.unnest(), exp.Neg):
        return int(node.unnest().this)
    if _is_all(node):
        return None
    value: int | None = None
    if scope is not None:
        bare = replace(scope, relations=(), parent=None, aliases={}, merged={})
        expr = build_scalar(node, bare)
        if expr.dtype not in (INT, NULL):
            raise AnalysisError(f"{clause} is a {expr.dtype}; it must be an int")
        value = whole_number(expr, clause)
    if value is None:
        raise UnsupportedSqlError(f"{clause} of an expression whose value is not known yet")
    if value < 0:
        raise AnalysisError(f"{clause} is {value}; it must be 0 or more")
    return value
