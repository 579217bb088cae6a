"""Stages over deduplicated tables: DuckDB, Spark stages, whole queries on Spark, runs and appends."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.formats.deduplicated.table_format import chunk_table
from stagecoach.infra.runtime.stages import attempt as execution
from stagecoach.infra.runtime.stages.run_stage import (
    Run,
    StageResult,
    read_result,
    run_stage,
)
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from tests.contexts import new_context, run_stages
from tests.infra.runtime.test_stage import broken_on

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FORCED = PlannerOptions(force_distribution=True, num_partitions=3, inline_bytes=0)
CATALOG = """tables:
  m:
    kind: deduplicated
    location: m
    primary_key: [device, time]
    time_column: time
    delete_column: gone
"""
Rows = list[tuple[str, int, int | None, bool | None]]


def batch(rows: Rows) -> pa.Table:
    device, time, value, gone = zip(*rows, strict=True)
    return pa.table(
        {
            "device": pa.array(device, pa.string()),
            "time": pa.array(time, pa.int64()),
            "value": pa.array(value, pa.int64()),
            "gone": pa.array(gone, pa.bool_()),
        }
    )


class Metrics:
    """A deduplicated table, a storage root and a session."""

    def __init__(self, folder: Path, settings: EngineSettings, spark: SparkSession) -> None:
        self.settings = dataclasses.replace(
            settings, storage_root=str(folder / "store"), min_task_bytes=1, target_task_bytes=1
        )
        self.folder = folder
        self._spark = spark
        (folder / "catalog.yaml").write_text(CATALOG)

    @property
    def catalog(self) -> FileCatalog:
        return load_catalog(self.folder / "catalog.yaml")

    def append(self, rows: Rows, *, sort: bool) -> None:
        chunk_table(self.catalog, "m").append([batch(rows)], sort=sort)

    def plan(self, sql: str, options: PlannerOptions = FORCED) -> StageGraph:
        return plan_query(sql, self.catalog, options, name="q")

    def context(self, graph: StageGraph, **changes: Any) -> Run:
        return new_context(graph, self.settings, self.catalog, lambda: self._spark, **changes)

    def run(self, graph: StageGraph) -> tuple[list[dict[str, Any]], list[StageResult]]:
        table, results = run_stages(self.context(graph))
        return table.to_pylist(), results


@pytest.fixture
def metrics(
    tmp_path: Path, spark_settings: EngineSettings, spark: SparkSession
) -> Iterator[Metrics]:
    made = Metrics(tmp_path, spark_settings, spark)
    for day in range(4):
        rows: Rows = [(f"d{i % 3}", 10 * day + i // 3, day, False) for i in range(30)]
        made.append(rows, sort=True)
    # Late rows: newer values of days 1 and 2, twice within the append, and one row deleted.
    made.append([("d0", 15, 100, False), ("d1", 22, 101, False), ("d0", 15, 102, None)], sort=False)
    made.append([("d2", 29, None, True)], sort=False)
    yield made


QUERY = "SELECT device, count(*) AS n, sum(value) AS s FROM m GROUP BY device ORDER BY device"
EXPECTED = [
    {"device": "d0", "n": 40, "s": 60 - 1 + 102},
    {"device": "d1", "n": 40, "s": 60 - 2 + 101},
    {"device": "d2", "n": 39, "s": 60 - 2},
]


def test_duckdb_stages_read_one_row_for_each_key(metrics: Metrics) -> None:
    rows, results = metrics.run(metrics.plan(QUERY))
    assert rows == EXPECTED
    assert {r.engine for r in results} == {"duckdb"}
    assert results[0].manifest is not None
    (scan,) = results[0].manifest.metrics["inputs"]["scans"]
    assert scan["of_files"] == 6
    assert 0 < scan["compared_rows"] < scan["rows"]
    assert len(results[0].reports) > 1


def test_spark_stages_read_the_same_rows(metrics: Metrics, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "render_fragment", broken_on("duckdb"))
    rows, results = metrics.run(metrics.plan(QUERY))
    assert rows == EXPECTED
    assert {r.engine for r in results} == {"spark"}


def test_a_query_that_spark_runs_whole_reads_the_same_rows(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "render_fragment", broken_on("duckdb", "spark"))
    rows, results = metrics.run(metrics.plan(QUERY))
    assert rows == EXPECTED
    assert results[-1].fallback_reason is not None


def test_a_join_and_a_window_over_the_table(metrics: Metrics) -> None:
    sql = (
        "SELECT a.device, max(a.value - b.value) AS d FROM m a JOIN m b "
        "ON a.device = b.device AND a.time = b.time + 1 WHERE a.time BETWEEN 11 AND 29 "
        "GROUP BY a.device ORDER BY 1"
    )
    graph = metrics.plan(sql, dataclasses.replace(FORCED, broadcast_bytes=0))
    rows, _ = metrics.run(graph)
    assert rows == [{"device": d, "d": v} for d, v in (("d0", 101), ("d1", 99), ("d2", 1))]
    latest = (
        "SELECT device, time, value FROM (SELECT *, row_number() OVER (PARTITION BY device "
        "ORDER BY time DESC) AS n FROM m WHERE time < 30) WHERE n = 1 ORDER BY device"
    )
    rows, _ = metrics.run(metrics.plan(latest))
    assert [(r["device"], r["time"]) for r in rows] == [("d0", 29), ("d1", 29), ("d2", 28)]


def test_a_run_keeps_its_snapshot_while_rows_are_appended(metrics: Metrics) -> None:
    graph = metrics.plan(QUERY)
    context = metrics.context(graph)
    assert context.snapshot.table("m").num_rows == 124
    metrics.append([("d0", 1000, 7, False)], sort=False)
    for stage in graph.stages:
        run_stage(stage.stage_id, context)
    assert read_result(context).to_pylist() == EXPECTED
    rows, results = metrics.run(graph)
    assert rows[0] == {"device": "d0", "n": 41, "s": 168}
    assert not results[0].reused


def test_chunks_that_a_filter_rules_out_may_come_and_go(metrics: Metrics) -> None:
    graph = metrics.plan("SELECT sum(value) AS s FROM m WHERE time < 20")
    rows, _ = metrics.run(graph)
    metrics.append([("d0", 1000, 7, False)], sort=False)
    again, results = metrics.run(graph)
    assert again == rows == [{"s": 30 - 1 + 102}]
    assert all(r.reused for r in results)
    metrics.append([("d0", 3, 7, False)], sort=False)
    assert metrics.run(graph)[0] == [{"s": 30 - 1 + 102 + 7}]
