"""Predicates that hold for every row of a plan, over its output columns.

In: a plan. Out: conjuncts that its filters and joins have made true. A plan that is not known here
has none.
"""

from __future__ import annotations

from collections.abc import Iterable

from planner.expressions import ColumnRef, Expression, conjuncts, substitute
from planner.logical import (
    Aggregate,
    Filter,
    Join,
    Limit,
    LogicalPlan,
    NamedExpression,
    Project,
    Sort,
)


def constraints(plan: LogicalPlan) -> tuple[Expression, ...]:
    """The conjuncts, each once."""
    return tuple(dict.fromkeys(_constraints(plan)))


def _constraints(plan: LogicalPlan) -> Iterable[Expression]:
    match plan:
        case Filter():
            return (*constraints(plan.child), *conjuncts(plan.predicate))
        case Sort() | Limit():
            return constraints(plan.child)
        case Project():
            return _through(plan.items, constraints(plan.child))
        case Aggregate() if plan.groups:
            return _through(plan.groups, constraints(plan.child))
        case Join():
            return _of_join(plan)
    return ()


def _through(items: Iterable[NamedExpression], below: tuple[Expression, ...]) -> list[Expression]:
    """What holds of columns that are passed on, under their new names."""
    names: dict[int, Expression] = {}
    for column, expr in items:
        if isinstance(expr, ColumnRef):
            names.setdefault(expr.id, column.ref)
    return [substitute(p, names) for p in below if p.column_ids <= names.keys()]


def _of_join(plan: Join) -> Iterable[Expression]:
    left, right = constraints(plan.left), constraints(plan.right)
    match plan.kind:
        case "inner" | "cross":
            return (*left, *right, *conjuncts(plan.condition))
        case "left" | "semi" | "anti":
            return left
        case "right":
            return right
    return ()
