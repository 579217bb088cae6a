"""All 22 TPC-H queries, planned in many ways, give Spark SQL's answer.

The full product of queries and plans runs its tasks in this process; a sample of pairs of plan,
codec and task size goes through Spark jobs.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from stagecoach.planner.explain.display import render_graph
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from tests.acceptance.comparison import Oracle, assert_same
from tests.acceptance.runs import Runner
from tests.share import share
from tests.tpch import NAMES, Tpch, query_text, some

pytestmark = [pytest.mark.spark]

QUICK = ("q01", "q03", "q06", "q13", "q16", "q18", "q21", "q22")


def shuffled(num_partitions: int) -> PlannerOptions:
    return PlannerOptions(force_distribution=True, broadcast_bytes=0, num_partitions=num_partitions)


PLANS = {
    "default": PlannerOptions(),
    "shuffled-1": shuffled(1),
    "shuffled-2": shuffled(2),
    "shuffled-7": shuffled(7),
    "broadcast": PlannerOptions(force_distribution=True, num_partitions=3),
}
FORCED = PLANS["shuffled-7"]

# Every pair of plan, codec and size of tasks that the Spark jobs see; one for each query in turn.
SAMPLE: list[tuple[str, str, int]] = [
    ("shuffled-7", "lz4", 0),
    ("shuffled-2", "none", 4 << 20),
    ("broadcast", "zstd", 0),
    ("default", "lz4", 4 << 20),
    ("shuffled-1", "zstd", 4 << 20),
    ("broadcast", "lz4", 4 << 20),
    ("shuffled-7", "none", 4 << 20),
    ("shuffled-2", "zstd", 0),
    ("shuffled-1", "lz4", 0),
    ("default", "zstd", 0),
    ("broadcast", "none", 0),
    ("shuffled-2", "lz4", 4 << 20),
    ("default", "none", 0),
    ("shuffled-7", "zstd", 4 << 20),
    ("shuffled-1", "none", 0),
]


PAIRS = [(name, plan) for name in NAMES for plan in PLANS]
OF_QUICK = [(name, plan) for name, plan in PAIRS if name in QUICK]
OF_OTHERS = share([pair for pair in PAIRS if pair not in OF_QUICK], 3)


@pytest.mark.parametrize(
    ("name", "plan"), [*OF_QUICK, *(pytest.param(*p, marks=pytest.mark.slow) for p in OF_OTHERS)]
)
def test_every_plan_gives_sparks_answer(
    name: str, plan: str, in_process: Runner, oracle: Oracle
) -> None:
    sql = query_text(name)
    ran = in_process.run(sql, PLANS[plan], name=name)
    assert ran.graph.fallback_reason is None
    assert not [s.fallback_reason or s.deferred for s in ran.stages if s.engine != "duckdb"]
    assert_same(ran.table, oracle.answer(sql))


@pytest.mark.parametrize("name", some([n for n in NAMES if n in {*QUICK, *share(NAMES, 2)}], QUICK))
def test_a_sample_goes_through_spark_jobs(name: str, runner: Runner, oracle: Oracle) -> None:
    plan, codec, min_task_bytes = SAMPLE[NAMES.index(name) % len(SAMPLE)]
    sql = query_text(name)
    ran = runner.run(sql, PLANS[plan], name=name, codec=codec, min_task_bytes=min_task_bytes)
    assert set(ran.engines) == {"duckdb"}
    assert_same(ran.table, oracle.answer(sql))


@pytest.mark.parametrize("name", some(share(NAMES, 3), ("q03",)))
def test_spark_as_the_engine_gives_sparks_answer(name: str, runner: Runner, oracle: Oracle) -> None:
    sql = query_text(name)
    ran = runner.run(sql, PlannerOptions(engine="spark"), name=name)
    assert set(ran.engines) == {"spark"}
    assert_same(ran.table, oracle.answer(sql))


@pytest.mark.parametrize("name", some(["q06", *share(NAMES, 3)], ("q06",)))
def test_spark_stages_read_and_write_the_same_shuffles(
    name: str, runner: Runner, oracle: Oracle
) -> None:
    sql = query_text(name)
    options = PlannerOptions(
        engine="spark", force_distribution=True, broadcast_bytes=0, num_partitions=2
    )
    ran = runner.run(sql, options, name=name)
    assert set(ran.engines) == {"spark"}
    assert len(ran.stages) > 1
    assert_same(ran.table, oracle.answer(sql))


# ---------------------------------------------------------------- what explain says


def explained(tpch: Tpch, name: str, options: PlannerOptions) -> dict[str, Any]:
    graph = plan_query(query_text(name), tpch.catalog, options, name=name)
    assert isinstance(graph, StageGraph)
    shown: dict[str, Any] = json.loads(render_graph(graph, "json"))
    return shown


def is_native(stages: list[dict[str, Any]]) -> bool:
    return len(stages) >= 2 and all(s["engine"] == "duckdb" for s in stages)


@pytest.mark.parametrize("plan", ["shuffled-2", "shuffled-7", "broadcast"])
def test_at_least_18_queries_run_wholly_on_duckdb_in_several_stages(tpch: Tpch, plan: str) -> None:
    stages = {name: explained(tpch, name, PLANS[plan])["stages"] for name in NAMES}
    native = [name for name in NAMES if is_native(stages[name])]
    assert len(native) >= 18, sorted(set(NAMES) - set(native))


def test_explain_tells_engine_reason_and_layout(tpch: Tpch) -> None:
    stages = explained(tpch, "q03", FORCED)["stages"]
    assert [s["stage_id"] for s in stages] == list(range(len(stages)))
    for stage in stages:
        assert stage["engine"] == "duckdb"
        assert stage["engine_reason"]
        assert all(i < stage["stage_id"] for i in stage["inputs"])
        assert {"kind", "keys", "num_partitions"} <= set(stage["output"])
        assert stage["schema"]
    kinds = [s["output"]["kind"] for s in stages]
    assert kinds[-1] == "gather"
    assert all(
        s["output"]["num_partitions"] == 7 for s in stages if s["output"]["kind"] == "shuffle"
    )


def test_the_whole_of_a_query_on_spark_is_explained_too(tpch: Tpch) -> None:
    stages = explained(tpch, "q03", PlannerOptions(engine="spark"))["stages"]
    assert {s["engine"] for s in stages} == {"spark"}
    assert all(s["engine_reason"] for s in stages)
