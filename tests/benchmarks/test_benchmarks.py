"""The benchmark notices wrong results, and its breakdown adds up."""

from __future__ import annotations

import json
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from benchmarks.__main__ import run_all
from benchmarks.compare import difference, rough_difference
from benchmarks.contenders import Sample
from benchmarks.overhead import chain
from benchmarks.report import geometric_mean, ratios, render, to_json
from benchmarks.runtime_filters import shuffled
from benchmarks.timing import Breakdown, StageClock
from stagecoach.planner.catalog import MappingCatalog, TableInfo
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.planning import plan_query
from stagecoach.planner.types import BIGINT, Field
from tests.planner.tpch import FORCED, tpch_graph

SQL = "SELECT k, v FROM t ORDER BY v DESC LIMIT 3"


def rows(*pairs: tuple[int, float], v: pa.DataType | None = None) -> pa.Table:
    ks, vs = zip(*pairs, strict=True)
    return pa.table({"k": pa.array(ks, pa.int64()), "v": pa.array(vs, v or pa.float64())})


SPARK = rows((1, 3.0), (2, 2.0), (3, 2.0))


@pytest.mark.parametrize(
    ("found", "part"),
    [
        (rows((1, 3.0), (3, 2.0), (2, 2.0)), None),  # a tie in another order
        (rows((1, 3.0 * (1 + 1e-14)), (2, 2.0), (3, 2.0)), None),
        (rows((1, 3.0), (2, 2.0)), "2 rows, Spark has 3"),
        (rows((2, 2.0), (1, 3.0), (3, 2.0)), "row 0"),
        (rows((1, 3.0), (2, 2.0), (4, 2.0)), "is not among Spark's"),
        (rows((1, 3.0), (2, 2.0), (3, 2.0000001)), "row 2"),
        (rows((1, 3.0), (2, 2.0), (3, 2.0), v=pa.float32()), "column v is float"),
        (SPARK.rename_columns(["k", "w"]), "columns"),
    ],
)
def test_a_difference_is_found(found: pa.Table, part: str | None) -> None:
    problem = difference(SPARK, found, SQL)
    assert problem is None if part is None else problem is not None and part in problem


def test_duckdb_may_have_other_numeric_types_but_not_other_values() -> None:
    decimals = pa.table({"k": [1, 2], "v": [Decimal("1.50"), Decimal("2.25")]})
    assert rough_difference(decimals, pa.table({"k": [1, 2], "v": [1.5, 2.25]})) is None
    assert rough_difference(decimals, pa.table({"k": [1, 2], "v": [1.5, 2.26]})) is not None


def fake_manifest(seconds: float) -> SimpleNamespace:
    task = {
        "host": "h",
        "pid": 1,
        "engine_seconds": seconds / 2,
        "read_seconds": seconds / 4,
        "write_seconds": seconds / 4,
        "total_seconds": seconds,
    }
    return SimpleNamespace(engine="duckdb", metrics={"tasks": [task]})


def test_a_breakdown_adds_up_along_the_critical_path() -> None:
    graph = tpch_graph("q03", FORCED)
    clock = StageClock()
    # lineitem | orders, customer, their join | the join of both | the merge
    clock.intervals = {0: (0, 9), 1: (0, 2), 2: (0, 1), 3: (2, 3), 4: (9, 11), 5: (11, 12)}
    ends = [i for i in graph.stages[4].inputs if clock.intervals[i][1] == 9]
    assert ends, "the test's idea of the plan is out of date"
    clock.job_seconds = {i: 0.8 * (b - a) for i, (a, b) in clock.intervals.items()}
    manifests: Any = {i: fake_manifest(0.5 * (b - a)) for i, (a, b) in clock.intervals.items()}
    assert clock.critical_path(graph) == (*ends, 4, 5)
    parts = clock.run_breakdown(graph, manifests, 12.5)
    assert parts.total == pytest.approx(12.5)
    assert parts.dagster == pytest.approx(0.5)
    assert (parts.compute, parts.read, parts.write) == pytest.approx((3.0, 1.5, 1.5))
    # Stage 0 shares the cores with 1, 2 and 3, whose tasks ran for 2 seconds.
    assert (parts.queue, parts.storage) == pytest.approx((2.0, 0.2 * 12))
    assert parts.spark == pytest.approx(0.3 * 12 - 2.0)


class FakeContender:
    def __init__(self, name: str, seconds: float, table: pa.Table) -> None:
        self.name = name
        self._sample = Sample(seconds=seconds, table=table)

    def run(self, name: str, sql: str) -> Sample:
        return self._sample

    def clean_up(self) -> None:
        """Nothing is left."""


def test_ratios_are_geometric_means_of_the_least_times() -> None:
    field = [
        FakeContender("stagecoach", 1.0, SPARK),
        FakeContender("spark", 4.0, SPARK),
        FakeContender("duckdb", 0.5, SPARK),
    ]
    found = run_all(field, [("a", SQL), ("b", SQL)], repeat=2)
    assert ratios(found) == {"spark": pytest.approx(0.25), "duckdb": pytest.approx(2.0)}
    assert geometric_mean([0.1, None, 0.4]) == pytest.approx(0.2)
    assert "geomean" in render(found)
    document = json.loads(to_json(found, scale_factor=1, settings={}))
    assert document["geomean_ratio_spark"] == 0.25
    assert [len(q["seconds"]["spark"]) for q in document["queries"]] == [2, 2]


def test_a_wrong_result_is_a_problem() -> None:
    field = [
        FakeContender("stagecoach", 1.0, SPARK.slice(1)),
        FakeContender("spark", 4.0, SPARK),
    ]
    (found,) = run_all(field, [("a", SQL)], repeat=1)
    assert found.problems == ["stagecoach: another result than Spark's: 2 rows, Spark has 3"]


@pytest.mark.parametrize("length", [1, 3, 6])
def test_the_chain_has_as_many_stages_as_asked_for(length: int) -> None:
    fields = (Field("k", BIGINT), Field("v", BIGINT))
    catalog = MappingCatalog([TableInfo("one_row", fields)])
    assert len(plan_query(chain(length), catalog, FORCED).stages) == length


def test_breakdowns_are_added_part_by_part() -> None:
    total = Breakdown(plan=1.0, spark=2.0) + Breakdown(spark=0.5, result=1.0)
    assert (total.plan, total.spark, total.result, total.total) == (1.0, 2.5, 1.0, 4.5)


def test_what_runtime_filters_save_is_counted_without_the_result() -> None:
    found = []
    for filters in (True, False):
        graph = tpch_graph("q21", PlannerOptions(runtime_filters=filters))
        stages = tuple(
            {"stage_id": s.stage_id, "bytes": 10, "rows": 2} for s in graph.stages if s.sql is None
        )
        found.append(shuffled(Sample(seconds=1.0, table=SPARK, stages=stages), graph))
        assert found[-1].num_bytes == 10 * (len(graph.stages) - 1)
    assert found[0].filters > 0
    assert found[1].filters == 0
