"""Which relations of a group can be joined with each other, by what, and at what cost.

The cost of a tree is the bytes that its joins read (twice for the hashed side) and produce. A join
without an equality looks at every pair of rows.

A semi or anti join is a leaf as well, which restricts a tree that has the columns it compares: it
may come as soon as they are there, or later. Where it compares a column that equals one of another
relation, either of them will do: a row without its partner is in no result.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from stagecoach.planner.estimates import Estimate, joined, joined_rows
from stagecoach.planner.functions import make_call
from stagecoach.planner.limits.deadline import check_deadline
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.optimizer.join_groups import (
    EqualColumns,
    JoinGroup,
    Restriction,
    column_pair,
)
from stagecoach.planner.plan.expressions import (
    Call,
    ColumnRef,
    Expression,
    conjoin,
    substitute,
)
from stagecoach.planner.plan.logical import Filter, Join, LogicalPlan
from stagecoach.planner.plan.operators import JoinKind

_EQUALITIES = ("eq", "eq_null_safe")
_PAIR_BYTES = 8  # what a pair of rows costs that only a predicate tells apart


class JoinTree:
    """A tree of joins.

    Args:
        mask: Its leaves, as a bit mask of their positions.
        rows: Estimated rows.
        cost: Estimated cost, in bytes.
        join: Both sides, the kind, and the predicates; None for a leaf.
    """

    __slots__ = ("cost", "estimate", "join", "mask", "rows")

    def __init__(
        self,
        mask: int,
        rows: float,
        cost: float,
        join: tuple[JoinTree, JoinTree, JoinKind, tuple[Expression, ...]] | None = None,
    ) -> None:
        self.mask = mask
        self.rows = rows
        self.cost = cost
        self.join = join
        self.estimate: Estimate | None = None


class _Class:
    """Equal columns of several relations.

    Args:
        columns: The column of each relation, by its position.
        written: Equalities between them that the query has.
    """

    def __init__(self, columns: dict[int, ColumnRef], written: Sequence[Expression]) -> None:
        self.mask = sum(1 << position for position in columns)
        self.columns = columns
        self._known: dict[tuple[int, int], Expression] = {}
        places = {ref.id: position for position, ref in columns.items()}
        self._written = written
        self._using: dict[int, int] = {}  # written equalities, as a bit mask, by relations
        for number, predicate in enumerate(written):
            for column in predicate.column_ids:
                place = 1 << places[column]
                self._using[place] = self._using.get(place, 0) | 1 << number

    def holds(self, column: ColumnRef) -> bool:
        """Whether a column is one of these."""
        return column in self.columns.values()

    def equality(self, left: int, right: int) -> Expression:
        """One equality between a column of the left relations and one of the right ones."""
        key = (left, right) if left > right else (right, left)
        if key not in self._known:
            self._known[key] = self._equality(*key)
        return self._known[key]

    def _equality(self, left: int, right: int) -> Expression:
        if across := self._users(left) & self._users(right):
            return self._written[(across & -across).bit_length() - 1]
        first, second = (self.columns[(m & -m).bit_length() - 1] for m in (left, right))
        low, high = sorted((first, second), key=lambda ref: ref.id)
        return make_call("eq", low, high)

    def _users(self, mask: int) -> int:
        """The written equalities with a column of these relations, as a bit mask."""
        known = self._using.get(mask)
        if known is None:
            known = 0
            for position in bits(mask):
                known |= self._using.get(1 << position, 0)
            self._using[mask] = known
        return known


class _Part(NamedTuple):
    """A conjunct of a semi or anti join.

    Args:
        predicate: As the query has it.
        mask: The relations whose columns it compares.
        column: The one that it compares, where it is an equality of columns.
        others: Columns that equal that one, by the positions of their relations.
    """

    predicate: Expression
    mask: int
    column: ColumnRef | None
    others: dict[int, ColumnRef]

    def over(self, mask: int) -> Expression | None:
        """The conjunct over a tree with these relations, or None if that lacks a column."""
        if not self.mask & ~mask:
            return self.predicate
        for position, column in self.others.items():
            if mask >> position & 1 and self.column is not None:
                return substitute(self.predicate, {self.column.id: column})
        return None

    @property
    def around(self) -> int:
        """All relations that may be compared."""
        return self.mask | sum(1 << position for position in self.others)


class JoinGraph:
    """The relations of a group, and those that restrict them, as leaves of join trees.

    Args:
        group: What is joined.
        context: For estimates.
    """

    def __init__(self, group: JoinGroup, context: RuleContext) -> None:
        # Sorted, so that the result depends on what is joined and not on how it was written.
        relations = sorted(group.relations, key=lambda r: sorted(r.column_ids))
        restrictions = sorted(group.restrictions, key=lambda r: sorted(r.relation.column_ids))
        self._plans = [*relations, *(r.relation for r in restrictions)]
        self._owners = {c.id: i for i, relation in enumerate(relations) for c in relation.columns}
        self._predicates = sorted(
            dict.fromkeys(group.predicates), key=lambda p: sorted(p.column_ids)
        )
        self._classes: list[_Class] = []
        self._find_classes()
        self._masks = [self._mask(p) for p in self._predicates]
        # Conjuncts over fewer than two relations belong below; one that is left waits for the end.
        self._rest = [
            p for p, m in zip(self._predicates, self._masks, strict=True) if m.bit_count() < 2
        ]
        self._restrictions = {
            1 << position: (restriction.kind, self._parts(restriction))
            for position, restriction in enumerate(restrictions, start=len(relations))
        }
        self.leaves = [
            _leaf(1 << position, context.estimator.estimate(plan))
            for position, plan in enumerate(self._plans)
        ]
        self._neighbours = [0] * len(self.leaves)
        self._link_relations()
        self._link_restrictions()
        self._touched = [
            (
                sum(1 << i for i, found in enumerate(self._classes) if found.mask >> position & 1),
                sum(1 << i for i, mask in enumerate(self._masks) if mask >> position & 1),
            )
            for position in range(len(self.leaves))
        ]
        self._inside: dict[int, tuple[int, int]] = {}

    def _find_classes(self) -> None:
        """Take equalities of columns out of the predicates, for classes of equal columns.

        Two relations of a class may be joined whether or not their columns are compared in the
        query, and of all that compares them one equality is enough. A class with two columns of
        one relation stays as it is written.
        """
        for members in EqualColumns(self._predicates).classes():
            columns = {self._owners[ref.id]: ref for ref in members if ref.id in self._owners}
            if len(columns) < len(members):
                continue
            ids = {ref.id for ref in members}
            written = [p for p in self._predicates if column_pair(p) and p.column_ids <= ids]
            self._classes.append(_Class(columns, written))
            self._predicates = [p for p in self._predicates if p not in written]

    def _parts(self, restriction: Restriction) -> tuple[_Part, ...]:
        parts = []
        for predicate in restriction.conjuncts:
            column = next((c for c in column_pair(predicate) or () if c.id in self._owners), None)
            equal = next((c for c in self._classes if column and c.holds(column)), None)
            others = equal.columns if equal else {}
            parts.append(_Part(predicate, self._mask(predicate), column, others))
        return tuple(parts)

    def _mask(self, predicate: Expression) -> int:
        found = 0
        for column in predicate.column_ids & self._owners.keys():
            found |= 1 << self._owners[column]
        return found

    def _link_relations(self) -> None:
        """Note the neighbours of each relation."""
        linked = [mask for mask in self._masks if mask.bit_count() == 2]
        for mask in [*linked, *(found.mask for found in self._classes)]:
            for position in bits(mask):
                self._neighbours[position] |= mask & ~(1 << position)

    def _link_restrictions(self) -> None:
        """Note the neighbours of those that restrict one component.

        One that compares columns of several components waits until these are joined.
        """
        for leaf, (_, parts) in self._restrictions.items():
            around = functools.reduce(operator.or_, (part.around for part in parts), 0)
            component = self._component(around & -around)
            if all(part.over(component) is not None for part in parts):
                self._neighbours[leaf.bit_length() - 1] = around
                for position in bits(around):
                    self._neighbours[position] |= leaf

    # ------------------------------------------------------------ what is connected

    def components(self) -> Iterator[int]:
        """Leaves that are connected with each other and with no others, as bit masks."""
        left = (1 << len(self.leaves)) - 1
        while left:
            component = self._component(left & -left)
            left &= ~component
            yield component

    def _component(self, border: int) -> int:
        """All leaves that these are connected with."""
        component = 0
        while border:
            component |= border
            border = self.around(border) & ~component
        return component

    def around(self, mask: int) -> int:
        """The leaves that predicates connect to those of the mask."""
        found = 0
        for position in bits(mask):
            found |= self._neighbours[position]
        return found & ~mask

    def connected(self, left: int, right: int) -> bool:
        """Whether there are predicates over leaves of both sides."""
        if self._shared_classes(left, right):
            return True
        if left in self._restrictions or right in self._restrictions:
            return bool(self.around(left) & right)
        return next(self._spanning(left, right), None) is not None

    def _shared_classes(self, left: int, right: int) -> int:
        """The classes with a column on both sides, as a bit mask."""
        return self._touching(left)[0] & self._touching(right)[0]

    def _spanning(self, left: int, right: int) -> Iterator[int]:
        """Positions of the other predicates that need both sides and nothing else."""
        outside = ~(left | right)
        for position in bits(self._touching(left)[1] & self._touching(right)[1]):
            if not self._masks[position] & outside:
                yield position

    def _touching(self, mask: int) -> tuple[int, int]:
        """The classes and the other predicates that need one of these relations, as bit masks."""
        known = self._inside.get(mask)
        if known is None:
            classes = predicates = 0
            for position in bits(mask):
                classes |= self._touched[position][0]
                predicates |= self._touched[position][1]
            known = self._inside[mask] = (classes, predicates)
        return known

    # ------------------------------------------------------------ trees

    def joined(self, a: JoinTree, b: JoinTree) -> JoinTree | None:
        """The join of two trees; None where one of them restricts columns that the other lacks."""
        check_deadline()
        if a.mask in self._restrictions:
            a, b = b, a
        if b.mask in self._restrictions:
            return self._restricted(a, b)
        first, second = self._estimate(a), self._estimate(b)
        if first.num_bytes < second.num_bytes:
            a, b, first, second = b, a, second, first
        predicates = self._connecting(a.mask, b.mask)
        rows = joined_rows(first, second, predicates)
        cost = self.input_cost(a, b) + rows * (first.row_bytes + second.row_bytes)
        kind: JoinKind = "inner" if predicates else "cross"
        return JoinTree(
            a.mask | b.mask, rows, cost + _pairs_cost(a, b, predicates), (a, b, kind, predicates)
        )

    def _restricted(self, tree: JoinTree, leaf: JoinTree) -> JoinTree | None:
        kind, parts = self._restrictions[leaf.mask]
        predicates = tuple(p for part in parts if (p := part.over(tree.mask)) is not None)
        if tree.mask in self._restrictions or len(predicates) < len(parts):
            return None
        estimate = joined(self._estimate(tree), self._estimate(leaf), kind, conjoin(predicates))
        cost = self.input_cost(tree, leaf) + estimate.num_bytes
        found = JoinTree(
            tree.mask | leaf.mask,
            estimate.rows,
            cost + _pairs_cost(tree, leaf, predicates),
            (tree, leaf, kind, predicates),
        )
        found.estimate = estimate
        return found

    def input_cost(self, a: JoinTree, b: JoinTree) -> float:
        """What a join of two trees costs at least."""
        sizes = (self._estimate(a).num_bytes, self._estimate(b).num_bytes)
        return a.cost + b.cost + sum(sizes) + min(sizes)

    def _connecting(self, left: int, right: int) -> tuple[Expression, ...]:
        """Predicates over both sides and nothing else."""
        classes = [self._classes[i] for i in bits(self._shared_classes(left, right))]
        equalities = [c.equality(left & c.mask, right & c.mask) for c in classes]
        others = [self._predicates[i] for i in self._spanning(left, right)]
        return (*equalities, *others)

    def _estimate(self, tree: JoinTree) -> Estimate:
        if tree.estimate is None:
            assert tree.join is not None
            left, right, kind, predicates = tree.join
            tree.estimate = joined(
                self._estimate(left), self._estimate(right), kind, conjoin(predicates)
            )
        return tree.estimate

    def plan(self, tree: JoinTree) -> LogicalPlan:
        """The plan of a tree of all leaves."""
        plan = self._plan(tree)
        return Filter(plan, conjoin(self._rest)) if self._rest else plan

    def _plan(self, tree: JoinTree) -> LogicalPlan:
        if tree.join is None:
            return self._plans[tree.mask.bit_length() - 1]
        left, right, kind, predicates = tree.join
        return Join(self._plan(left), self._plan(right), kind, conjoin(predicates))


def _leaf(mask: int, estimate: Estimate) -> JoinTree:
    leaf = JoinTree(mask, estimate.rows, 0.0)
    leaf.estimate = estimate
    return leaf


def _pairs_cost(a: JoinTree, b: JoinTree, predicates: tuple[Expression, ...]) -> float:
    if any(isinstance(p, Call) and p.function in _EQUALITIES for p in predicates):
        return 0.0
    return a.rows * b.rows * _PAIR_BYTES


def bits(mask: int) -> list[int]:
    """The positions of the ones, lowest first."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found
