"""A stage graph run as a run of it is, over a Spark session, and compared with Spark's own rows."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING

from stagecoach.assets.report.stage_metadata import decisions
from stagecoach.infra.catalog.catalog import FileCatalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.runtime.stages import attempt as execution
from stagecoach.infra.runtime.stages.run_stage import Run, read_result, run_stage
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.worker.task import run_task
from stagecoach.planner.plan.stages import StageGraph

if TYPE_CHECKING:
    import pyarrow as pa
    import pytest
    from pyspark.sql import SparkSession

_NUMBERS = itertools.count()


def run(
    graph: StageGraph, catalog: FileCatalog, settings: EngineSettings, spark: SparkSession
) -> tuple[list[str], list[Manifest]]:
    """The rows of a graph and the manifests of its stages, whose decisions must be shown."""
    context = new_run(graph, catalog, settings, spark)
    results = [run_stage(stage.stage_id, context) for stage in graph.stages]
    manifests = [r.manifest for r in results if r.manifest is not None]
    assert {m.engine for m in manifests} == {stage.engine for stage in graph.stages}
    for stage, result, manifest in zip(graph.stages, results, manifests, strict=True):
        lines = decisions(graph, stage, result, manifest).splitlines()
        for told in manifest.metrics.get("adaptive", ()):
            assert f"- **{told['kind']}** {told['text']}" in lines
    return rows_of(read_result(context)), manifests


def new_run(
    graph: StageGraph, catalog: FileCatalog, settings: EngineSettings, spark: SparkSession
) -> Run:
    """A run that has not begun."""
    name = f"run{next(_NUMBERS)}"
    return Run(
        graph=graph,
        run_id=name,
        root_run_id=name,
        settings=settings,
        store=settings.open_store(),
        catalog=catalog,
        spark=lambda: spark,
    )


def run_on_duckdb(
    sql: str,
    graph: StageGraph,
    catalog: FileCatalog,
    settings: EngineSettings,
    spark: SparkSession,
) -> list[Manifest]:
    """Run a query whose rows must be Spark's, each of its stages on DuckDB."""
    found, manifests = run(graph, catalog, settings, spark)
    assert found == rows_of(spark.sql(sql).toArrow()), sql
    assert {m.engine for m in manifests} == {"duckdb"}, sql
    return manifests


def rows_of(table: pa.Table) -> list[str]:
    """Rows in an order of their own, as text that NULL and NaN can be compared in."""
    return sorted(json.dumps(row) for row in table.to_pylist())


def make_views(spark: SparkSession, folder: Path, *names: str) -> None:
    """Let Spark's own queries read tables, each of which is a folder of Parquet files."""
    for name in names:
        spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)


def run_tasks_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the tasks of DuckDB stages in this process, without a Spark job."""
    monkeypatch.setattr(execution, "run_tasks", lambda _, specs: [run_task(s) for s in specs])
