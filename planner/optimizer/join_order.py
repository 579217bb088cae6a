"""Find the cheapest tree of inner joins over some relations.

Up to `MAX_PAIRS` pairs of connected subgraphs, dynamic programming examines all bushy trees without
cross products (DPccp: Moerkotte and Neumann, VLDB 2006). Beyond that, pairs are joined greedily
(GOO: Fegaras, DEXA 1998).

The cost of a tree is the bytes that its joins read (twice for the hashed side) and produce. A join
without an equality looks at every pair of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import combinations, count

from stagecoach.planner.estimates import Estimate, joined, joined_rows
from stagecoach.planner.functions import make_call
from stagecoach.planner.limits.deadline import check_deadline
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.optimizer.join_groups import EqualColumns, column_pair
from stagecoach.planner.plan.expressions import TRUE, Call, ColumnRef, Expression, conjoin
from stagecoach.planner.plan.logical import Filter, Join, LogicalPlan

MAX_PAIRS = 12_000  # nine relations all connected to each other have 9,330, a star of ten 2,304
_EQUALITIES = ("eq", "eq_null_safe")
_PAIR_BYTES = 8  # what a pair of rows costs that only a predicate tells apart


def best_order(
    relations: Sequence[LogicalPlan], predicates: Sequence[Expression], context: RuleContext
) -> LogicalPlan:
    """The cheapest join of all relations under all predicates.

    Args:
        relations: Two or more plans.
        predicates: Conjuncts, each over two relations or more.
        context: For estimates.
    """
    search = _Search(relations, predicates, context)
    plan = search.plan(search.best())
    return Filter(plan, conjoin(search.rest)) if search.rest else plan


class _Tree:
    """The best join tree found for a set of relations, given as a bit mask."""

    __slots__ = ("cost", "estimate", "left", "mask", "predicates", "right", "rows")

    def __init__(self, mask: int, rows: float, cost: float) -> None:
        self.mask = mask
        self.rows = rows
        self.cost = cost
        self.left: _Tree | None = None
        self.right: _Tree | None = None
        self.predicates: tuple[Expression, ...] = ()
        self.estimate: Estimate | None = None


_Option = tuple[float, int, int, int, _Tree]
"""Rows of a join, a number that parts equal ones, the masks of its sides, the join."""


def _first(options: list[_Option], left: dict[int, _Tree]) -> _Tree | None:
    """The smallest join of which both sides are left; those before it are dropped."""
    while options:
        _, _, first, second, joined = heappop(options)
        if first in left and second in left:
            return joined
    return None


class _Class:
    """Equal columns of several relations.

    Args:
        columns: The column of each relation, by its position.
        written: Equalities between them that the query has.
    """

    def __init__(self, columns: dict[int, ColumnRef], written: Sequence[Expression]) -> None:
        self.mask = sum(1 << position for position in columns)
        self._columns = columns
        self._known: dict[tuple[int, int], Expression] = {}
        places = {ref.id: position for position, ref in columns.items()}
        self._written = written
        self._using: dict[int, int] = {}  # written equalities, as a bit mask, by relations
        for number, predicate in enumerate(written):
            for column in predicate.column_ids:
                place = 1 << places[column]
                self._using[place] = self._using.get(place, 0) | 1 << number

    def equality(self, left: int, right: int) -> Expression:
        """One equality between a column of the left relations and one of the right ones."""
        key = (left, right) if left > right else (right, left)
        if key not in self._known:
            self._known[key] = self._equality(*key)
        return self._known[key]

    def _equality(self, left: int, right: int) -> Expression:
        if across := self._users(left) & self._users(right):
            return self._written[(across & -across).bit_length() - 1]
        first, second = (self._columns[(m & -m).bit_length() - 1] for m in (left, right))
        low, high = sorted((first, second), key=lambda ref: ref.id)
        return make_call("eq", low, high)

    def _users(self, mask: int) -> int:
        """The written equalities with a column of these relations, as a bit mask."""
        known = self._using.get(mask)
        if known is None:
            known = 0
            for position in _bits(mask):
                known |= self._using.get(1 << position, 0)
            self._using[mask] = known
        return known


class _Search:
    def __init__(
        self,
        relations: Sequence[LogicalPlan],
        predicates: Sequence[Expression],
        context: RuleContext,
    ) -> None:
        # Sorted, so that the result depends on what is joined and not on how it was written.
        self._relations = sorted(relations, key=lambda r: sorted(r.column_ids))
        self._predicates = sorted(dict.fromkeys(predicates), key=lambda p: sorted(p.column_ids))
        self._classes: list[_Class] = []
        self._find_classes()
        self._masks = [self._mask(p) for p in self._predicates]
        # Conjuncts over fewer than two relations belong below; one that is left waits for the end.
        self.rest = [
            p for p, m in zip(self._predicates, self._masks, strict=True) if m.bit_count() < 2
        ]
        self._leaves: list[_Tree] = []
        for position, relation in enumerate(self._relations):
            leaf = _Tree(1 << position, context.estimator.estimate(relation).rows, 0.0)
            leaf.estimate = context.estimator.estimate(relation)
            self._leaves.append(leaf)
        self._neighbours = [0] * len(self._leaves)
        linked = [mask for mask in self._masks if mask.bit_count() == 2]
        for mask in [*linked, *(found.mask for found in self._classes)]:
            for position in _bits(mask):
                self._neighbours[position] |= mask & ~(1 << position)
        self._touched = [
            (
                sum(1 << i for i, found in enumerate(self._classes) if found.mask >> position & 1),
                sum(1 << i for i, mask in enumerate(self._masks) if mask >> position & 1),
            )
            for position in range(len(self._leaves))
        ]
        self._inside: dict[int, tuple[int, int]] = {}

    def _find_classes(self) -> None:
        """Take equalities of columns out of the predicates, for classes of equal columns.

        Two relations of a class may be joined whether or not their columns are compared in the
        query, and of all that compares them one equality is enough. A class with two columns of
        one relation stays as it is written.
        """
        owners = {c.id: i for i, relation in enumerate(self._relations) for c in relation.columns}
        for members in EqualColumns(self._predicates).classes():
            columns = {owners[ref.id]: ref for ref in members if ref.id in owners}
            if len(columns) < len(members):
                continue
            ids = {ref.id for ref in members}
            written = [p for p in self._predicates if column_pair(p) and p.column_ids <= ids]
            self._classes.append(_Class(columns, written))
            self._predicates = [p for p in self._predicates if p not in written]

    def _mask(self, predicate: Expression) -> int:
        mask = 0
        for position, relation in enumerate(self._relations):
            if not predicate.column_ids.isdisjoint(relation.column_ids):
                mask |= 1 << position
        return mask

    def best(self) -> _Tree:
        """The cheapest tree of each connected component, and those joined greedily."""
        trees: list[_Tree] = []
        for component in self._components():
            pairs = self._pairs(component)
            members = [leaf for leaf in self._leaves if leaf.mask & component]
            trees.append(
                self._greedy(members) if pairs is None else self._exhaustive(members, pairs)
            )
        return self._greedy(trees)

    def _components(self) -> Iterator[int]:
        left = (1 << len(self._leaves)) - 1
        while left:
            component, border = 0, left & -left
            while border:
                component |= border
                border = self._around(border) & ~component
            left &= ~component
            yield component

    def _around(self, mask: int) -> int:
        """The relations that predicates connect to those of the mask."""
        found = 0
        for position in _bits(mask):
            found |= self._neighbours[position]
        return found & ~mask

    # ------------------------------------------------------------ dynamic programming

    def _pairs(self, component: int) -> list[tuple[int, int]] | None:
        """All pairs of connected subgraphs that are connected, smaller ones first; None if many."""
        pairs: list[tuple[int, int]] = []
        for position in reversed(_bits(component)):
            start = 1 << position
            for first in self._grown(start, (start << 1) - 1):
                for second in self._complements(first):
                    pairs.append((first, second))
                    if len(pairs) > MAX_PAIRS:
                        return None
        return pairs

    def _grown(self, mask: int, excluded: int) -> Iterator[int]:
        """The mask and all connected supersets of it without excluded relations."""
        yield mask
        around = self._around(mask) & ~excluded
        for more in _subsets(around):
            yield from self._grown(mask | more, excluded | around)

    def _complements(self, mask: int) -> Iterator[int]:
        """The connected subgraphs beside `mask` that are connected with it, each pair once."""
        excluded = mask | ((mask & -mask) - 1) | (mask & -mask)
        around = self._around(mask) & ~excluded
        for position in reversed(_bits(around)):
            start = 1 << position
            yield from self._grown(start, excluded | (((start << 1) - 1) & around))

    def _exhaustive(self, members: list[_Tree], pairs: list[tuple[int, int]]) -> _Tree:
        best = {leaf.mask: leaf for leaf in members}
        # An order in which the parts of each pair are complete before it comes.
        for first, second in sorted(pairs, key=lambda p: (p[0] | p[1]).bit_count()):
            known = best.get(first | second)
            # What the join reads alone may be too much already.
            if known is not None and self._input_cost(best[first], best[second]) >= known.cost:
                continue
            candidate = self._joined(best[first], best[second])
            if known is None or candidate.cost < known.cost:
                best[candidate.mask] = candidate
        return best[sum(leaf.mask for leaf in members)]

    # ------------------------------------------------------------ greedy

    def _greedy(self, trees: list[_Tree]) -> _Tree:
        """Again and again the join of two trees that gives the fewest rows.

        Of n trees that are linked in a few places each, about n pairs are ever looked at: pairs
        without a predicate wait in a list of their own, until nothing else is left.
        """
        left = {t.mask: t for t in trees}
        linked: list[_Option] = []
        waiting: list[tuple[int, _Tree, _Tree]] = []
        numbers = count()

        def offer(pairs: Iterable[tuple[_Tree, _Tree]]) -> None:
            for a, b in pairs:
                number = next(numbers)  # of equal ones the first
                if self._connected(a.mask, b.mask):
                    heappush(linked, self._option(number, a, b))
                else:
                    waiting.append((number, a, b))

        offer(combinations(trees, 2))
        crossed: list[_Option] = []
        while len(left) > 1:
            chosen = _first(linked, left)
            if chosen is None:
                for number, a, b in waiting:
                    if a.mask in left and b.mask in left:
                        heappush(crossed, self._option(number, a, b))
                waiting.clear()
                chosen = _first(crossed, left)
            assert chosen is not None
            left = {mask: t for mask, t in left.items() if not mask & chosen.mask}
            offer((t, chosen) for t in left.values())
            left[chosen.mask] = chosen
        return next(iter(left.values()))

    def _option(self, number: int, a: _Tree, b: _Tree) -> _Option:
        joined = self._joined(a, b)
        return joined.rows, number, a.mask, b.mask, joined

    # ------------------------------------------------------------ trees

    def _joined(self, a: _Tree, b: _Tree) -> _Tree:
        check_deadline()
        first, second = self._estimate(a), self._estimate(b)
        if first.num_bytes < second.num_bytes:
            a, b, first, second = b, a, second, first
        predicates = self._connecting(a.mask, b.mask)
        rows = joined_rows(first, second, predicates)
        cost = self._input_cost(a, b) + rows * (first.row_bytes + second.row_bytes)
        if not any(isinstance(p, Call) and p.function in _EQUALITIES for p in predicates):
            cost += a.rows * b.rows * _PAIR_BYTES
        tree = _Tree(a.mask | b.mask, rows, cost)
        tree.left, tree.right, tree.predicates = a, b, predicates
        return tree

    def _input_cost(self, a: _Tree, b: _Tree) -> float:
        sizes = (self._estimate(a).num_bytes, self._estimate(b).num_bytes)
        return a.cost + b.cost + sum(sizes) + min(sizes)

    def _connecting(self, left: int, right: int) -> tuple[Expression, ...]:
        """Predicates over both sides and nothing else."""
        classes = [self._classes[i] for i in _bits(self._shared_classes(left, right))]
        equalities = [c.equality(left & c.mask, right & c.mask) for c in classes]
        others = [self._predicates[i] for i in self._spanning(left, right)]
        return (*equalities, *others)

    def _connected(self, left: int, right: int) -> bool:
        """Whether there are such predicates."""
        if self._shared_classes(left, right):
            return True
        return next(self._spanning(left, right), None) is not None

    def _shared_classes(self, left: int, right: int) -> int:
        """The classes with a column on both sides, as a bit mask."""
        return self._touching(left)[0] & self._touching(right)[0]

    def _spanning(self, left: int, right: int) -> Iterator[int]:
        """Positions of the other predicates that need both sides and nothing else."""
        outside = ~(left | right)
        for position in _bits(self._touching(left)[1] & self._touching(right)[1]):
            if not self._masks[position] & outside:
                yield position

    def _touching(self, mask: int) -> tuple[int, int]:
        """The classes and the other predicates that need one of these relations, as bit masks."""
        known = self._inside.get(mask)
        if known is None:
            classes = predicates = 0
            for position in _bits(mask):
                classes |= self._touched[position][0]
                predicates |= self._touched[position][1]
            known = self._inside[mask] = (classes, predicates)
        return known

    def _estimate(self, tree: _Tree) -> Estimate:
        if tree.estimate is None:
            assert tree.left is not None and tree.right is not None
            left, right = self._estimate(tree.left), self._estimate(tree.right)
            kind = "inner" if tree.predicates else "cross"
            tree.estimate = joined(left, right, kind, conjoin(tree.predicates))
        return tree.estimate

    def plan(self, tree: _Tree) -> LogicalPlan:
        """The plan of a tree."""
        if tree.left is None or tree.right is None:
            return self._relations[tree.mask.bit_length() - 1]
        left, right = self.plan(tree.left), self.plan(tree.right)
        if not tree.predicates:
            return Join(left, right, "cross", TRUE)
        return Join(left, right, "inner", conjoin(tree.predicates))


def _bits(mask: int) -> list[int]:
    """The positions of the ones, lowest first."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def _subsets(mask: int) -> Iterator[int]:
    """All subsets but the empty one, smaller numbers first."""
    part = mask & -mask
    while part:
        yield part
        part = (part - mask) & mask
