"""The search for a join order: it looks at every pair of connected subgraphs, once, and no other."""

from __future__ import annotations

import functools
import time

import pytest

from benchmarks.planning import SHAPES, many_joins
from stagecoach.planner.analysis.queries import build_logical
from stagecoach.planner.estimates import Estimator
from stagecoach.planner.optimizer.context import RuleContext, first_free_id
from stagecoach.planner.optimizer.join_groups import flatten
from stagecoach.planner.optimizer.join_order import MAX_PAIRS, _Search, _Tree
from stagecoach.planner.optimizer.rules import optimize
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.logical import Join, LogicalPlan, Scan
from stagecoach.planner.syntax.parse import parse_query
from stagecoach.planner.tree import walk

# Moerkotte and Neumann (VLDB 2006), table 1: connected pairs of n relations.
PAIRS = {
    "chain": lambda n: (n**3 - n) // 6,
    "cycle": lambda n: (n**3 - 2 * n**2 + n) // 2,
    "star": lambda n: (n - 1) * 2 ** (n - 2),
    "clique": lambda n: (3**n - 2 ** (n + 1) + 1) // 2,
}


def search(shape: str, count: int) -> _Search:
    sql, catalog = many_joins(shape, count)
    built = build_logical(parse_query(sql), catalog, {})
    context = RuleContext(
        PlannerOptions(), Estimator({t.name: t for t in built.tables}), first_free_id(built.plan)
    )
    joins = next(n for n in walk(optimize(built.plan, context)) if isinstance(n, Join))
    relations, predicates = _relations(joins)
    return _Search(relations, predicates, context)


def _relations(plan: LogicalPlan) -> tuple[list[LogicalPlan], list[object]]:
    """Scans and predicates, seen through the projections that narrow joins."""
    found = [n for n in walk(plan) if isinstance(n, Scan)]
    predicates = [p for n in walk(plan) if isinstance(n, Join) for p in flatten(n)[1]]
    return list(found), list(dict.fromkeys(predicates))


@pytest.mark.parametrize("count", [2, 3, 4, 5, 7])
@pytest.mark.parametrize("shape", PAIRS)
def test_all_connected_pairs_are_enumerated_once(shape: str, count: int) -> None:
    if shape == "cycle" and count < 3:
        return
    found = search(shape, count)
    pairs = found._pairs((1 << count) - 1)
    assert pairs is not None
    assert len(pairs) == len({frozenset(p) for p in pairs}) == PAIRS[shape](count)
    assert all(not a & b for a, b in pairs)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_tree_is_the_cheapest_of_all(shape: str) -> None:
    """Against the best of all splits of all subsets, without cross products."""
    found = search(shape, 6)

    @functools.cache
    def cheapest(mask: int) -> _Tree | None:
        if mask.bit_count() == 1:
            return next(leaf for leaf in found._leaves if leaf.mask == mask)
        options = []
        part = (mask - 1) & mask
        while part:
            left, right = cheapest(part), cheapest(mask ^ part)
            if left and right and found._connecting(part, mask ^ part):
                options.append(found._joined(left, right))
            part = (part - 1) & mask
        return min(options, key=lambda tree: tree.cost, default=None)

    best = cheapest((1 << 6) - 1)
    assert best is not None
    assert found.best().cost == pytest.approx(best.cost)


@pytest.mark.parametrize("shape", SHAPES)
def test_twenty_relations_are_joined_in_time_and_without_a_cross_product(shape: str) -> None:
    sql, catalog = many_joins(shape, 20)
    built = build_logical(parse_query(sql), catalog, {})
    context = RuleContext(
        PlannerOptions(), Estimator({t.name: t for t in built.tables}), first_free_id(built.plan)
    )
    start = time.thread_time()  # others of this machine do not count
    plan = optimize(built.plan, context)
    assert time.thread_time() - start < 5.0  # the aim is 1 s
    joins = [n for n in walk(plan) if isinstance(n, Join)]
    assert len(joins) == 19
    assert {j.kind for j in joins} == {"inner"}


def test_too_many_pairs_are_not_looked_at() -> None:
    assert PAIRS["clique"](9) <= MAX_PAIRS < PAIRS["clique"](10)
    assert search("clique", 10)._pairs((1 << 10) - 1) is None
