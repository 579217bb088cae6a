"""Choose hash keys so that one exchange serves several operators.

A join on (a, b) below GROUP BY a is hashed by a alone: matching rows are still together, and the
groups are together too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from stagecoach.planner.plan.expressions import ColumnRef
from stagecoach.planner.plan.logical import NamedExpression
from stagecoach.planner.plan.physical import (
    AggregateExec,
    FilterExec,
    HashJoinExec,
    PhysicalPlan,
    ProjectionExec,
)

MIN_VALUES = 8.0  # expected values of the fewer keys for each partition, lest some are empty
Wish = frozenset[int]
_NONE: Wish = frozenset()


class PartitionWishes:
    """What is wished of each operator of a plan.

    Args:
        plan: The plan.
        distinct: Expected different values of some columns of an operator together.
    """

    def __init__(
        self, plan: PhysicalPlan, distinct: Callable[[PhysicalPlan, Iterable[int]], float]
    ) -> None:
        self._distinct = distinct
        self._wishes: dict[PhysicalPlan, Wish] = {}
        stack = [(plan, _NONE)]
        while stack:
            node, wish = stack.pop()
            self._wishes[node] = wish
            stack.extend(zip(node.children, _below(node, wish), strict=True))

    def positions(
        self, plan: PhysicalPlan, known: PhysicalPlan, count: int, *ids: Sequence[int]
    ) -> tuple[int, ...]:
        """Which of an operator's keys to hash by: those that are wished, else all.

        Args:
            plan: The operator.
            known: The operator that has the first key columns, for the number of their values.
            count: Number of partitions.
            ids: Its key columns, and those that are equal to them one by one.
        """
        wish = self._wishes.get(plan, _NONE)
        every = range(len(ids[0]))
        wished = tuple(i for i in every if any(names[i] in wish for names in ids))
        values = self._distinct(known, (ids[0][i] for i in wished))
        return wished if wished and values >= MIN_VALUES * count else tuple(every)


def _below(node: PhysicalPlan, wish: Wish) -> tuple[Wish, ...]:
    """What a wish for an operator's rows means for its inputs', or what it wishes itself."""
    match node:
        case FilterExec():
            return (wish,)
        case ProjectionExec():
            return (_passed(node.items, wish),)
        case AggregateExec():
            groups = frozenset(c.id for c, _ in node.groups)
            return (_passed(node.groups, (wish & groups) or groups),)
        case HashJoinExec() if node.broadcast:
            mine = wish & {c.id for c in node.left.columns}
            if node.kind == "inner":
                pairs = _pairs(node)
                mine |= {a for a, b in pairs if b in wish}
            return mine, _NONE
        case HashJoinExec():
            pairs = _pairs(node)
            wished = [p for p in pairs if wish & set(p)] or pairs
            return frozenset(a for a, _ in wished), frozenset(b for _, b in wished)
    return tuple(_NONE for _ in node.children)


def _passed(items: Iterable[NamedExpression], wish: Wish) -> Wish:
    return frozenset(e.id for c, e in items if c.id in wish and isinstance(e, ColumnRef))


def _pairs(node: HashJoinExec) -> list[tuple[int, int]]:
    return [
        (a.id, b.id)
        for a, b, _ in node.key_pairs
        if isinstance(a, ColumnRef) and isinstance(b, ColumnRef)
    ]
