"""Find the part of a plan that all values of some of its columns come from.

A runtime filter takes its keys there: from an exchange below one side of a partitioned join whose
rows hold every key of that side. It may hold more keys, but never fewer: a list of them must not
drop a row that has a partner.
"""

from __future__ import annotations

from collections.abc import Iterable

from stagecoach.planner.plan.expressions import ColumnRef
from stagecoach.planner.plan.logical import NamedExpression
from stagecoach.planner.plan.physical import (
    AggregateExec,
    ExchangeExec,
    FilterExec,
    HashJoinExec,
    PhysicalPlan,
    ProjectionExec,
)

_FROM_LEFT = ("inner", "semi", "anti", "left")


def key_source(plan: PhysicalPlan, keys: tuple[int, ...]) -> tuple[PhysicalPlan, tuple[int, ...]]:
    """The exchange and its key columns; the plan itself where there is none.

    Args:
        plan: A side of a join.
        keys: Numbers of its key columns.
    """
    node, names = plan, keys
    while not isinstance(node, ExchangeExec):
        below = column_source(node, names)
        if below is None:
            return plan, keys
        node, names = below
    return (node, names) if node.kind == "shuffle" else (plan, keys)


def column_source(
    node: PhysicalPlan, keys: tuple[int, ...]
) -> tuple[PhysicalPlan, tuple[int, ...]] | None:
    """The input that all values of the keys come from, and their numbers there; None if none is.

    Args:
        node: An operator.
        keys: Numbers of some of its columns.
    """
    match node:
        case FilterExec():
            return node.child, keys
        case HashJoinExec() if node.kind in _FROM_LEFT:
            columns = {c.id for c in node.left.columns}
            return (node.left, keys) if columns.issuperset(keys) else None
        case ProjectionExec():
            return _renamed(node.child, node.items, keys)
        case AggregateExec():
            return _renamed(node.child, node.groups, keys)
    return None


def _renamed(
    child: PhysicalPlan, items: Iterable[NamedExpression], keys: tuple[int, ...]
) -> tuple[PhysicalPlan, tuple[int, ...]] | None:
    names = {column.id: expr.id for column, expr in items if isinstance(expr, ColumnRef)}
    return (child, tuple(names[k] for k in keys)) if names.keys() >= set(keys) else None
