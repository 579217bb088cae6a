"""Find the cheapest tree of joins over some relations.

Up to `MAX_PAIRS` pairs of connected subgraphs, dynamic programming examines all bushy trees without
cross products (DPccp: Moerkotte and Neumann, VLDB 2006). Beyond that, pairs are joined greedily
(GOO: Fegaras, DEXA 1998).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import combinations, count

from stagecoach.planner.optimizer.join_graph import JoinGraph, JoinTree, bits

MAX_PAIRS = 12_000  # nine relations all connected to each other have 9,330, a star of ten 2,304

_Option = tuple[float, int, int, int, JoinTree]
"""Rows of a join, a number that parts equal ones, the masks of its sides, the join."""


def best_order(graph: JoinGraph) -> JoinTree:
    """The cheapest tree of each connected component, and those joined greedily."""
    trees: list[JoinTree] = []
    for component in graph.components():
        pairs = connected_pairs(graph, component)
        members = [leaf for leaf in graph.leaves if leaf.mask & component]
        trees.append(
            _greedy(graph, members) if pairs is None else _exhaustive(graph, members, pairs)
        )
    return _greedy(graph, trees)


# ---------------------------------------------------------------- dynamic programming


def connected_pairs(graph: JoinGraph, component: int) -> list[tuple[int, int]] | None:
    """All pairs of connected subgraphs that are connected, each once; None if many."""
    pairs: list[tuple[int, int]] = []
    for position in reversed(bits(component)):
        start = 1 << position
        for first in _grown(graph, start, (start << 1) - 1):
            for second in _complements(graph, first):
                pairs.append((first, second))
                if len(pairs) > MAX_PAIRS:
                    return None
    return pairs


def _grown(graph: JoinGraph, mask: int, excluded: int) -> Iterator[int]:
    """The mask and all connected supersets of it without excluded leaves."""
    yield mask
    around = graph.around(mask) & ~excluded
    for more in _subsets(around):
        yield from _grown(graph, mask | more, excluded | around)


def _complements(graph: JoinGraph, mask: int) -> Iterator[int]:
    """The connected subgraphs beside `mask` that are connected with it, each pair once."""
    excluded = mask | ((mask & -mask) - 1) | (mask & -mask)
    around = graph.around(mask) & ~excluded
    for position in reversed(bits(around)):
        start = 1 << position
        yield from _grown(graph, start, excluded | (((start << 1) - 1) & around))


def _subsets(mask: int) -> Iterator[int]:
    """All subsets but the empty one, smaller numbers first."""
    part = mask & -mask
    while part:
        yield part
        part = (part - mask) & mask


def _exhaustive(
    graph: JoinGraph, members: list[JoinTree], pairs: list[tuple[int, int]]
) -> JoinTree:
    best = {leaf.mask: leaf for leaf in members}
    # An order in which the parts of each pair are complete before it comes.
    for first, second in sorted(pairs, key=lambda p: (p[0] | p[1]).bit_count()):
        a, b = best.get(first), best.get(second)
        if a is None or b is None:  # a leaf that restricts more than is there
            continue
        known = best.get(first | second)
        # What the join reads alone may be too much already.
        if known is not None and graph.input_cost(a, b) >= known.cost:
            continue
        candidate = graph.joined(a, b)
        if candidate and (known is None or candidate.cost < known.cost):
            best[candidate.mask] = candidate
    return best[sum(leaf.mask for leaf in members)]


# ---------------------------------------------------------------- greedy


def _greedy(graph: JoinGraph, trees: list[JoinTree]) -> JoinTree:
    """Again and again the join of two trees that gives the fewest rows.

    Of n trees that are linked in a few places each, about n pairs are ever looked at: pairs
    without a predicate wait in a list of their own, until nothing else is left.
    """
    left = {t.mask: t for t in trees}
    linked: list[_Option] = []
    waiting: list[tuple[int, JoinTree, JoinTree]] = []
    numbers = count()

    def push(options: list[_Option], number: int, a: JoinTree, b: JoinTree) -> None:
        # A leaf that restricts more than is there is offered again once that has grown.
        if joined := graph.joined(a, b):
            heappush(options, (joined.rows, number, a.mask, b.mask, joined))

    def offer(pairs: Iterable[tuple[JoinTree, JoinTree]]) -> None:
        for a, b in pairs:
            number = next(numbers)  # of equal ones the first
            if graph.connected(a.mask, b.mask):
                push(linked, number, a, b)
            else:
                waiting.append((number, a, b))

    offer(combinations(trees, 2))
    crossed: list[_Option] = []
    while len(left) > 1:
        chosen = _first(linked, left)
        if chosen is None:
            for number, a, b in waiting:
                if a.mask in left and b.mask in left:
                    push(crossed, number, a, b)
            waiting.clear()
            chosen = _first(crossed, left)
        assert chosen is not None
        left = {mask: t for mask, t in left.items() if not mask & chosen.mask}
        offer((t, chosen) for t in left.values())
        left[chosen.mask] = chosen
    return next(iter(left.values()))


def _first(options: list[_Option], left: dict[int, JoinTree]) -> JoinTree | None:
    """The smallest join of which both sides are left; those before it are dropped."""
    while options:
        _, _, first, second, joined = heappop(options)
        if first in left and second in left:
            return joined
    return None
