"""D: the distinct values of the outer columns that a subquery reads.

D may stand in several places of a plan, so each copy has its own column numbers. A copy may hold
values that the outer plan does not have: the final join with the outer plan drops their rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stagecoach.planner.errors import UnsupportedSqlError
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.optimizer.renumber import renumber
from stagecoach.planner.optimizer.unnesting.repeatable import require_repeatable
from stagecoach.planner.plan.expressions import Column, ColumnRef
from stagecoach.planner.plan.logical import (
    Filter,
    Join,
    Limit,
    LogicalPlan,
    NamedExpression,
    Project,
    Sort,
    distinct,
)
from stagecoach.planner.types import DataType

Bound = Mapping[int, Column]
"""For the number of an outer column, the column of a plan that stands for it."""


class Domain:
    """Makes copies of D.

    Args:
        outer: The outer plan.
        ids: Numbers of its columns that the subquery reads.
        context: Makes column numbers.
    """

    def __init__(self, outer: LogicalPlan, ids: frozenset[int], context: RuleContext) -> None:
        self.outer = outer
        self.ids = ids
        self._context = context

    def columns(self, ids: frozenset[int]) -> tuple[Column, ...]:
        """The outer columns of these numbers."""
        return tuple(c for c in self.outer.columns if c.id in ids)

    def copy(self, ids: frozenset[int]) -> tuple[LogicalPlan, Bound]:
        """The distinct values of some of the columns, and which of its columns is which.

        Raises:
            UnsupportedSqlError: Where the outer plan cannot be computed twice, or its values
                cannot be compared.
        """
        columns = self.columns(ids)
        for column in columns:
            require_comparable(column)
        source = _source(self.outer, ids)
        require_repeatable(source, columns)
        copy = renumber(Project(source, tuple((c, c.ref) for c in columns)), self._context)
        bound = {old.id: new for old, new in zip(columns, copy.columns, strict=True)}
        return distinct(copy), bound


def require_comparable(column: Column) -> None:
    """Refuse a column whose values cannot be joined or grouped by.

    Raises:
        UnsupportedSqlError: For maps and what holds them.
    """
    if _holds_map(column.dtype):
        raise UnsupportedSqlError(
            f"a subquery is correlated by '{column.name}' of type {column.dtype}, "
            "which cannot be grouped by"
        )


def _holds_map(dtype: DataType) -> bool:
    return "map<" in str(dtype) or dtype.kind == "map" or dtype.kind == "variant"


def _source(plan: LogicalPlan, needed: frozenset[int]) -> LogicalPlan:
    """A plan that gives the same columns, with at least the same values, and costs less."""
    match plan:
        case Sort() | Limit():
            return _source(plan.child, needed)
        case Filter():
            below = needed | plan.predicate.column_ids
            return replace(plan, child=_source(plan.child, below & plan.child.column_ids))
        case Project():
            return _project_source(plan, needed)
        case Join() if plan.kind in ("left", "cross") and needed <= plan.left.column_ids:
            return _source(plan.left, needed)
        case Join() if plan.kind == "right" and needed <= plan.right.column_ids:
            return _source(plan.right, needed)
        case Join() if plan.kind in ("inner", "semi", "anti"):
            left, right = (
                (needed | plan.condition.column_ids) & s.column_ids for s in plan.children
            )
            other = plan.right if plan.kind == "anti" else _source(plan.right, right)
            return plan.with_children((_source(plan.left, left), other))
    return plan


def _project_source(plan: Project, needed: frozenset[int]) -> LogicalPlan:
    items: tuple[NamedExpression, ...] = tuple(i for i in plan.items if i[0].id in needed)
    read: frozenset[int] = frozenset().union(*(e.column_ids for _, e in items))
    child = _source(plan.child, read & plan.child.column_ids)
    if all(isinstance(e, ColumnRef) and e.id == c.id for c, e in items):
        return child
    return Project(child, items)
