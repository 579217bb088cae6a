"""The search for a join order: it looks at every pair of connected subgraphs, once, and no other."""

from __future__ import annotations

import functools
import time

import pytest

from benchmarks.planning import SHAPES, many_joins
from stagecoach.planner.analysis.queries import build_logical
from stagecoach.planner.estimates import Estimator
from stagecoach.planner.optimizer.context import RuleContext, first_free_id
from stagecoach.planner.optimizer.join_graph import JoinGraph, JoinTree
from stagecoach.planner.optimizer.join_groups import JoinGroup, Restriction, flatten
from stagecoach.planner.optimizer.join_order import MAX_PAIRS, best_order, connected_pairs
from stagecoach.planner.optimizer.rules import optimize
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.expressions import Expression
from stagecoach.planner.plan.logical import Join, LogicalPlan, Scan
from stagecoach.planner.plan.operators import JoinKind
from stagecoach.planner.syntax.parse import parse_query
from stagecoach.planner.tree import walk

# Moerkotte and Neumann (VLDB 2006), table 1: connected pairs of n relations.
PAIRS = {
    "chain": lambda n: (n**3 - n) // 6,
    "cycle": lambda n: (n**3 - 2 * n**2 + n) // 2,
    "star": lambda n: (n - 1) * 2 ** (n - 2),
    "clique": lambda n: (3**n - 2 ** (n + 1) + 1) // 2,
}


def graph_of(shape: str, count: int, restricting: int = 0) -> JoinGraph:
    """The relations of a shape; the last ones restrict the others instead of being joined."""
    sql, catalog = many_joins(shape, count)
    built = build_logical(parse_query(sql), catalog, {})
    context = RuleContext(
        PlannerOptions(), Estimator({t.name: t for t in built.tables}), first_free_id(built.plan)
    )
    joins = next(n for n in walk(optimize(built.plan, context)) if isinstance(n, Join))
    relations, predicates = _relations(joins)
    kept, others = relations[: count - restricting], relations[count - restricting :]
    restrictions = []
    for number, relation in enumerate(others):
        mine = [p for p in predicates if p.column_ids & relation.column_ids]
        predicates = [p for p in predicates if p not in mine]
        kind: JoinKind = "anti" if number % 2 else "semi"
        restrictions.append(Restriction(relation, kind, tuple(mine)))
    return JoinGraph(JoinGroup(tuple(kept), tuple(predicates), tuple(restrictions)), context)


def _relations(plan: LogicalPlan) -> tuple[list[LogicalPlan], list[Expression]]:
    """Scans and predicates, seen through the projections that narrow joins."""
    scans = (n for n in walk(plan) if isinstance(n, Scan))
    found = sorted(scans, key=lambda s: min(s.column_ids))
    predicates = [p for n in walk(plan) if isinstance(n, Join) for p in flatten(n)[1]]
    return list(found), list(dict.fromkeys(predicates))


@pytest.mark.parametrize("count", [2, 3, 4, 5, 7])
@pytest.mark.parametrize("shape", PAIRS)
def test_all_connected_pairs_are_enumerated_once(shape: str, count: int) -> None:
    if shape == "cycle" and count < 3:
        return
    pairs = connected_pairs(graph_of(shape, count), (1 << count) - 1)
    assert pairs is not None
    assert len(pairs) == len({frozenset(p) for p in pairs}) == PAIRS[shape](count)
    assert all(not a & b for a, b in pairs)


@pytest.mark.parametrize("restricting", [0, 1])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_tree_is_the_cheapest_of_all(shape: str, restricting: int) -> None:
    """Against the best of all splits of all subsets, without cross products."""
    graph = graph_of(shape, 6, restricting)

    @functools.cache
    def cheapest(mask: int) -> JoinTree | None:
        if mask.bit_count() == 1:
            return next(leaf for leaf in graph.leaves if leaf.mask == mask)
        options = []
        part = (mask - 1) & mask
        while part:
            left, right = cheapest(part), cheapest(mask ^ part)
            if left and right and graph.connected(part, mask ^ part):
                options.append(graph.joined(left, right))
            part = (part - 1) & mask
        return min(filter(None, options), key=lambda tree: tree.cost, default=None)

    best = cheapest((1 << 6) - 1)
    assert best is not None
    assert best_order(graph).cost == pytest.approx(best.cost)


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
    assert connected_pairs(graph_of("clique", 10), (1 << 10) - 1) is None
