"""Read the filter by which the tasks of a stage drop complete groups.

The filter stands on top of a partial aggregate and keeps the groups of which other tasks may have
rows; `stagecoach.planner.distribution.complete_groups` puts it there.
"""

from __future__ import annotations

from collections.abc import Iterator

from stagecoach.planner.plan.expressions import TRUE, Call, ColumnRef, Expression
from stagecoach.planner.plan.physical import (
    AggregateExec,
    FilterExec,
    HashJoinExec,
    PhysicalPlan,
    ProjectionExec,
    ScanExec,
)
from stagecoach.planner.tree import transform_up, walk

COMPLETE = "complete_in_task"
"""The function that tells whether a task has all rows of a group, by a key of it."""

_STREAMED = ("inner", "cross", "left", "semi", "anti")


def early_filter(fragment: PhysicalPlan) -> FilterExec | None:
    """The filter on top of a stage that drops complete groups of its aggregate; or None."""
    if not isinstance(fragment, FilterExec) or not isinstance(fragment.child, AggregateExec):
        return None
    return fragment if next(_questions(fragment.predicate), None) is not None else None


def without_early_filter(fragment: PhysicalPlan) -> PhysicalPlan:
    """The fragment without the filter that drops complete groups, if it has one."""
    early = early_filter(fragment)
    return fragment if early is None else early.child


def asked_of_rows(predicate: Expression) -> Expression:
    """What a predicate asks of rows: not in which task they are."""
    return transform_up(
        predicate,
        lambda node: TRUE if isinstance(node, Call) and node.function == COMPLETE else node,
    )


def complete_key(fragment: PhysicalPlan) -> tuple[ScanExec, int] | None:
    """The scan that tasks of a stage share out, and the position of the key in it; or None."""
    early = early_filter(fragment)
    if early is None or not isinstance(aggregate := early.child, AggregateExec):
        return None
    (key,) = next(_questions(early.predicate)).args
    if not isinstance(key, ColumnRef):
        return None
    expression = next(e for column, e in aggregate.groups if column.id == key.id)
    return divided_column(aggregate.child, expression)


def _questions(predicate: Expression) -> Iterator[Call]:
    """The calls by which a predicate asks whether a group is complete."""
    return (e for e in walk(predicate) if isinstance(e, Call) and e.function == COMPLETE)


def divided_column(node: PhysicalPlan, expression: Expression) -> tuple[ScanExec, int] | None:
    """The scan of which each task reads a part, if a column is one of its columns as it is."""
    while isinstance(expression, ColumnRef):
        match node:
            case ScanExec() if type(node) is ScanExec and node.read == "split":
                ids = [column.id for column in node.outputs]
                return (node, ids.index(expression.id)) if expression.id in ids else None
            case FilterExec():
                node = node.child
            case ProjectionExec():
                items = {column.id: item for column, item in node.items}
                if expression.id not in items:
                    return None
                node, expression = node.child, items[expression.id]
            case HashJoinExec() if node.broadcast and node.kind in _STREAMED:
                node = node.left
            case _:
                return None
    return None
