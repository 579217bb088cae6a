"""The plans of all TPC-H queries, as text, from injected statistics of scale 10.

`make golden` writes them anew; a changed golden plan needs a line in CHANGELOG.md.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stagecoach.planner.explain.display import render_graph, render_plan
from stagecoach.planner.plan.logical import LogicalPlan
from stagecoach.planner.plan.physical import (
    AggregateExec,
    HashJoinExec,
    PhysicalPlan,
    ScanExec,
    SortExec,
    SortPreservingMergeExec,
    StageInputExec,
)
from stagecoach.planner.plan.stages import Stage
from stagecoach.planner.planning import plan_query, plan_until
from stagecoach.planner.tree import walk
from tests.planner.catalogs import WEATHER
from tests.planner.tpch import DEFAULT, FORCED, NAMES, query_text, sf10_catalog, tpch_graph

GOLDEN = Path(__file__).parents[1] / "golden"
PHASES = ("optimized", "stages", "stages-forced")
WEATHER_SQL = "SELECT count(*), `RainToday` FROM weather GROUP BY `RainToday` ORDER BY count(*)"
OTHERS = ("weather.stages.txt",)

Golden = Callable[[str, str], None]


def rendered(name: str, phase: str) -> str:
    if phase == "optimized":
        plan = plan_until(query_text(name), sf10_catalog(), "optimized", DEFAULT, name=name)
        assert isinstance(plan, LogicalPlan)
        return render_plan(plan) + "\n"
    return render_graph(tpch_graph(name, FORCED if phase == "stages-forced" else DEFAULT))


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("name", NAMES)
def test_plan_is_the_golden_one(name: str, phase: str, golden: Golden) -> None:
    golden(f"{name}.{phase}.txt", rendered(name, phase))


def test_every_golden_file_belongs_to_a_query(updates_golden: bool) -> None:
    wanted = {f"{name}.{phase}.txt" for name in NAMES for phase in PHASES} | {*OTHERS}
    orphans = [f for f in GOLDEN.iterdir() if f.is_file() and f.name not in wanted]
    if updates_golden:
        for file in orphans:
            file.unlink()
        return
    assert not orphans, "run `make golden` to delete what no query has any more"


@pytest.mark.parametrize("name", NAMES)
def test_every_tpch_query_is_staged_on_duckdb(name: str) -> None:
    for options in (DEFAULT, FORCED):
        graph = tpch_graph(name, options)
        assert graph.fallback_reason is None
        assert {s.engine for s in graph.stages} == {"duckdb"}


# ---------------------------------------------------------------- the topologies of the seeds


def nodes(stage: Stage, kind: type[PhysicalPlan]) -> list[PhysicalPlan]:
    return [node for node in walk(stage.fragment) if isinstance(node, kind)]


def test_query_3_has_the_topology_of_its_seed() -> None:
    """Seed 000: three leaves, two partitioned joins, the aggregate on its join's partitioning."""
    graph = tpch_graph("q03", FORCED)
    leaves = {stage.tables: stage for stage in graph.stages if stage.tables}
    assert set(leaves) == {("customer",), ("orders",), ("lineitem",)}
    assert all(not leaf.inputs for leaf in leaves.values())
    keys = {t: [leaf.schema[k].name for k in leaf.output.keys] for (t,), leaf in leaves.items()}
    assert keys == {
        "customer": ["c_custkey"],
        "orders": ["o_custkey"],
        "lineitem": ["l_orderkey"],
    }

    first, second, head = (s for s in graph.stages if not s.tables)
    by_table = {t: leaf.stage_id for (t,), leaf in leaves.items()}
    assert set(first.inputs) == {by_table["customer"], by_table["orders"]}
    assert [first.schema[k].name for k in first.output.keys] == ["o_orderkey"]
    assert first.output.kind == "shuffle"
    assert set(second.inputs) == {first.stage_id, by_table["lineitem"]}
    assert head.inputs == (second.stage_id,)
    assert head is graph.head

    shuffled = [*leaves.values(), first]
    assert {s.output.num_partitions for s in shuffled} == {4}
    assert all(b.kind == "partitions" for s in (first, second) for b in s.branches)

    aggregates = [(s, n) for s in graph.stages for n in nodes(s, AggregateExec)]
    assert [(s.stage_id, n.mode) for s, n in aggregates if isinstance(n, AggregateExec)] == [
        (second.stage_id, "single")
    ]
    joins = [n for s in graph.stages for n in nodes(s, HashJoinExec)]
    assert [n.broadcast for n in joins if isinstance(n, HashJoinExec)] == [False, False]
    (merge,) = nodes(head, SortPreservingMergeExec)
    assert isinstance(merge, SortPreservingMergeExec)
    assert merge.fetch == 10
    assert isinstance(second.fragment, SortExec)
    assert second.fragment.fetch == 10


def test_weather_query_has_the_three_stages_of_its_seed(golden: Golden) -> None:
    """Seed 001: partial aggregate, shuffle, final aggregate and sort, gather, merge."""
    graph = plan_query(WEATHER_SQL, WEATHER, DEFAULT, name="weather")
    leaf, middle, head = graph.stages

    assert isinstance(leaf.fragment, AggregateExec)
    assert leaf.fragment.mode == "partial"
    assert isinstance(leaf.fragment.child, ScanExec)
    assert leaf.fragment.child.source == ("RainToday",)
    assert (leaf.output.kind, [leaf.schema[k].name for k in leaf.output.keys]) == (
        "shuffle",
        ["RainToday"],
    )
    assert isinstance(middle.fragment, SortExec)
    (final,) = nodes(middle, AggregateExec)
    assert isinstance(final, AggregateExec)
    assert final.mode == "final"
    assert isinstance(final.child, StageInputExec)
    assert middle.output.kind == "gather"
    assert isinstance(head.fragment, SortPreservingMergeExec)
    assert isinstance(head.fragment.child, StageInputExec)
    assert [f.name for f in graph.result] == ["count(1)", "RainToday"]
    golden("weather.stages.txt", render_graph(graph))
