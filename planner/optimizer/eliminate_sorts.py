"""Rule: drop sorts whose order nothing uses, or that the input already has."""

from __future__ import annotations

from stagecoach.planner.aggregates.orderless import ORDERLESS
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.plan.expressions import AggregateCall, ColumnRef, SortKey
from stagecoach.planner.plan.logical import (
    Aggregate,
    Expand,
    Filter,
    Join,
    Limit,
    LogicalPlan,
    Project,
    Repartition,
    Sort,
    Union,
)

_EXACT = frozenset(("sum", "avg"))  # but of floats


def eliminate_sorts(plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
    """Drop a sort below a join, an aggregate or another sort, and one above rows in that order.

    Before:  Aggregate[count(*)] <- Inner(Sort[total] <- o, c)
    After:   Aggregate[count(*)] <- Inner(o, c)
    A sort over all rows gathers them in one task, so an ORDER BY left in a view is dear. Spark's
    `EliminateSorts` does the same.
    Never:   below LIMIT, which takes the first rows; below a window; below an aggregate that
    depends on the order (`first`, `collect_list`, sums of floats); at the top.
    """
    del context
    return _visit(plan, True)


def _visit(plan: LogicalPlan, observed: bool) -> LogicalPlan:
    """The plan without superfluous sorts.

    Args:
        plan: A plan.
        observed: Whether something above depends on the order of its rows.
    """
    match plan:
        case Sort() if not observed:
            return _visit(plan.child, False)
        case Sort():
            child = _visit(plan.child, False)
            if _delivered(child)[: len(plan.keys)] == plan.keys:
                return child
            return plan.with_children((child,))
        case Repartition():
            return plan.with_children((_visit(plan.child, plan.at_most and observed),))
        case Project() | Filter() | Expand() | Union():
            return plan.with_children(tuple(_visit(c, observed) for c in plan.children))
        case Aggregate():
            in_order = not all(_is_orderless(call) for _, call in plan.aggregates)
            return plan.with_children((_visit(plan.child, in_order),))
        case Join():
            return plan.with_children(tuple(_visit(c, False) for c in plan.children))
    return plan.with_children(tuple(_visit(c, True) for c in plan.children))


def _is_orderless(call: AggregateCall) -> bool:
    if call.function in _EXACT:
        return not call.args[0].dtype.is_floating
    return call.function in ORDERLESS


def _delivered(plan: LogicalPlan) -> tuple[SortKey, ...]:
    """The order of the rows of a limited sort; a sort alone would have been dropped."""
    if isinstance(plan, Limit):
        return plan.child.keys if isinstance(plan.child, Sort) else _delivered(plan.child)
    if not isinstance(plan, Project):
        return ()
    names: dict[int, ColumnRef] = {}
    for column, expr in plan.items:
        if isinstance(expr, ColumnRef):
            names.setdefault(expr.id, column.ref)
    keys: list[SortKey] = []
    for key in _delivered(plan.child):
        if not isinstance(key.expr, ColumnRef) or key.expr.id not in names:
            break
        keys.append(SortKey(names[key.expr.id], key.ascending, key.nulls_first))
    return tuple(keys)
