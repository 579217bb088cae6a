"""Flatten groups of joins into relations, predicates and what restricts them.

Also finds which columns the predicates make equal. The relations of a group may be joined in any
order, and restricted at any point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from stagecoach.planner.plan.expressions import Call, ColumnRef, Expression, conjuncts
from stagecoach.planner.plan.logical import Filter, Join, LogicalPlan
from stagecoach.planner.plan.operators import JoinKind


def is_inner(plan: LogicalPlan) -> bool:
    """Whether the plan is an inner or cross join."""
    return isinstance(plan, Join) and plan.kind in ("inner", "cross")


def is_orderable(plan: LogicalPlan) -> bool:
    """Whether the plan is an inner join, or restricts one, perhaps after others.

    What restricts one relation stays with it: it is a part of what the estimates of that relation,
    and copies of it for other reasons, are about.
    """
    while isinstance(plan, Join) and plan.kind in ("semi", "anti"):
        plan = plan.left
        if isinstance(plan, Filter):
            plan = plan.child
    return is_inner(plan)


@dataclass(frozen=True)
class Restriction:
    """The right side of a semi or anti join.

    Args:
        relation: What rows of the group must match, or must not.
        kind: `semi` or `anti`.
        conjuncts: Of its condition.
    """

    relation: LogicalPlan
    kind: JoinKind
    conjuncts: tuple[Expression, ...]


@dataclass(frozen=True)
class JoinGroup:
    """Inner joins with the semi and anti joins above and among them.

    Args:
        relations: What is joined, left to right.
        predicates: The conjuncts of all inner joins, and of filters between joins.
        restrictions: The semi and anti joins.
    """

    relations: tuple[LogicalPlan, ...]
    predicates: tuple[Expression, ...]
    restrictions: tuple[Restriction, ...]

    @classmethod
    def of(
        cls, plan: LogicalPlan, enters: Callable[[LogicalPlan], bool] = is_orderable
    ) -> JoinGroup:
        """Return the group with this join at its top.

        Args:
            plan: The join.
            enters: Whether a join is part of the group; any other is a relation of it.
        """
        relations: list[LogicalPlan] = []
        predicates: list[Expression] = []
        restrictions: list[Restriction] = []
        stack = [plan]
        while stack:
            node = stack.pop()
            if isinstance(node, Join) and is_inner(node):
                predicates.extend(conjuncts(node.condition))
                stack.extend((node.right, node.left))
            elif isinstance(node, Join) and enters(node):
                parts = tuple(conjuncts(node.condition))
                restrictions.append(Restriction(node.right, node.kind, parts))
                stack.append(node.left)
            elif isinstance(node, Filter) and enters(node.child):
                predicates.extend(conjuncts(node.predicate))
                stack.append(node.child)
            else:
                relations.append(node)
        return cls(tuple(relations), tuple(predicates), tuple(restrictions))


def flatten(plan: LogicalPlan) -> tuple[tuple[LogicalPlan, ...], tuple[Expression, ...]]:
    """Return the relations of a group of inner joins, left to right, and all its conjuncts."""
    group = JoinGroup.of(plan, enters=is_inner)
    return group.relations, group.predicates


def column_pair(predicate: Expression) -> tuple[ColumnRef, ColumnRef] | None:
    """The columns that an equality of two different columns compares."""
    if isinstance(predicate, Call) and predicate.function == "eq":
        left, right = predicate.args
        if isinstance(left, ColumnRef) and isinstance(right, ColumnRef) and left.id != right.id:
            return left, right
    return None


class EqualColumns:
    """Which columns are equal in each row that passes all of some predicates (union-find)."""

    def __init__(self, predicates: Iterable[Expression] = ()) -> None:
        self._parent: dict[int, int] = {}
        self._refs: dict[int, ColumnRef] = {}
        for predicate in predicates:
            self.add(predicate)

    def add(self, predicate: Expression) -> None:
        """Take note of a predicate; only `column = column` matters."""
        pair = column_pair(predicate)
        if pair is None or pair[0].dtype != pair[1].dtype:
            return
        for ref in pair:
            self._refs.setdefault(ref.id, ref)
        first, second = self.root(pair[0].id), self.root(pair[1].id)
        if first != second:
            low, high = sorted((first, second))
            self._parent[high] = low

    def root(self, column: int) -> int:
        """The number that stands for all columns equal to this one."""
        while (parent := self._parent.get(column, column)) != column:
            column = parent
        return column

    def same(self, first: int, second: int) -> bool:
        """Whether two columns are equal."""
        return self.root(first) == self.root(second)

    def classes(self) -> list[list[ColumnRef]]:
        """The classes of two columns or more, by column number."""
        members: dict[int, list[ColumnRef]] = {}
        for column in sorted(self._refs):
            members.setdefault(self.root(column), []).append(self._refs[column])
        return list(members.values())
