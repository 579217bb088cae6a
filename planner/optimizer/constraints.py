"""Predicates that hold for every row of a plan, over its output columns.

They come from the filters and joins of the plan. Operators that are not known here have none.
"""

from __future__ import annotations

from collections.abc import Iterable

from stagecoach.planner.plan.expressions import ColumnRef, Expression, conjuncts, substitute
from stagecoach.planner.plan.logical import (
    Aggregate,
    Filter,
    Join,
    Limit,
    LogicalPlan,
    NamedExpression,
    Project,
    Sort,
)


class Constraints:
    """Finds the predicates of plans; remembers those of each operator."""

    def __init__(self) -> None:
        self._known: dict[LogicalPlan, tuple[Expression, ...]] = {}

    def of(self, plan: LogicalPlan) -> tuple[Expression, ...]:
        """The conjuncts, each once."""
        known = self._known.get(plan)
        if known is None:
            known = self._known[plan] = tuple(dict.fromkeys(self._found(plan)))
        return known

    def _found(self, plan: LogicalPlan) -> Iterable[Expression]:
        match plan:
            case Filter():
                return (*self.of(plan.child), *conjuncts(plan.predicate))
            case Sort() | Limit():
                return self.of(plan.child)
            case Project():
                return _through(plan.items, self.of(plan.child))
            case Aggregate() if plan.groups:
                return _through(plan.groups, self.of(plan.child))
            case Join():
                return self._of_join(plan)
        return ()

    def _of_join(self, plan: Join) -> Iterable[Expression]:
        match plan.kind:
            case "inner" | "cross":
                condition = conjuncts(plan.condition)
                return (*self.of(plan.left), *self.of(plan.right), *condition)
            case "left" | "semi" | "anti":
                return self.of(plan.left)
            case "right":
                return self.of(plan.right)
        return ()


def _through(items: Iterable[NamedExpression], below: tuple[Expression, ...]) -> list[Expression]:
    """What holds of columns that are passed on, under their new names."""
    names: dict[int, Expression] = {}
    for column, expr in items:
        if isinstance(expr, ColumnRef):
            names.setdefault(expr.id, column.ref)
    return [substitute(p, names) for p in below if p.column_ids <= names.keys()]
