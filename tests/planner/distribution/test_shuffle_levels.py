"""Shuffles of many tasks and partitions have two levels."""

from __future__ import annotations

import pyarrow as pa
import pytest

from stagecoach.infra.shuffle.partitioner import partition_ids
from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.distribution.shuffle_levels import groups_of
from stagecoach.planner.explain.display import render_graph
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.physical import StageInputExec
from stagecoach.planner.plan.serde import dump_graph, load_graph
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from tests.planner.catalogs import table

ORDERS = "id bigint; customer bigint; price decimal(12,2); note string"
CATALOG = MappingCatalog(
    [
        table("orders", ORDERS, 60_000_000_000, distinct={"id": 60_000_000_000}),
        table("small", ORDERS, 6_000_000_000, distinct={"id": 6_000_000_000}),
    ]
)
GROUPS = "SELECT id, max(note) AS m FROM orders GROUP BY id"


def plan(sql: str, **options: int) -> StageGraph:
    return plan_query(sql, CATALOG, PlannerOptions().updated(options))


def shuffles(graph: StageGraph) -> list[int]:
    return [s.output.num_partitions for s in graph.stages if s.output.kind == "shuffle"]


def test_a_large_shuffle_has_two_levels() -> None:
    graph = plan(GROUPS)
    first, second = shuffles(graph)
    assert (first, second) == (64, 8192)
    between = graph.stages[1]
    assert isinstance(between.fragment, StageInputExec)
    assert between.title == "divide → shuffle(id)"
    assert between.estimated_bytes == graph.stages[0].estimated_bytes
    assert "the first of two levels: about" in render_graph(graph)
    assert load_graph(dump_graph(graph)) == graph


def test_a_side_of_a_join_may_have_two_levels_and_the_other_one() -> None:
    sql = "SELECT count(*) FROM orders JOIN small ON orders.id = small.id"
    assert sorted(shuffles(plan(sql))) == [32, 2048, 2048]


@pytest.mark.parametrize(
    ("sql", "options"),
    [
        (GROUPS, {"shuffle_ranges": 0}),
        (GROUPS, {"shuffle_ranges": 1 << 40}),
        (GROUPS, {"num_partitions": 16_381}),  # a prime
        (GROUPS.replace("orders", "small"), {"num_partitions": 100}),
        ("SELECT /*+ REPARTITION(4096) */ * FROM orders", {}),  # dealt out in turn
    ],
)
def test_others_have_one(sql: str, options: dict[str, int]) -> None:
    assert len(shuffles(plan(sql, **options))) == 1


@pytest.mark.parametrize("num_partitions", [1, 2, 12, 16, 60, 4096, 16_384, 16_381])
def test_groups_are_whole_partitions(num_partitions: int) -> None:
    groups = groups_of(num_partitions)
    each = num_partitions // groups
    assert groups * each == num_partitions
    assert groups <= each
    rows = pa.record_batch({"k": pa.array([*range(10_000), None, 2**63 - 1, -(2**63)])})
    first, second = (partition_ids(rows, [0], n) for n in (groups, num_partitions))
    assert (first == second // each).all()
