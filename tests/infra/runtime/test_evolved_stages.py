"""Stages over a table whose files have different columns, on DuckDB and on Spark."""

from __future__ import annotations

import dataclasses
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.runtime.stages import attempt as execution
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.planning import plan_query
from tests.infra.formats.evolving import write_files
from tests.infra.runtime.test_stage import FORCED, Project, broken_on
from tests.infra.spark_runs import rows_of, run, run_tasks_here
from tests.s3_server import S3Server, s3_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.infra.config.settings import EngineSettings

__all__ = ["s3_server"]  # pytest finds fixtures among the names of a module

pytestmark = [pytest.mark.slow, pytest.mark.spark]

SQL = "SELECT id, name, day, s.b AS b FROM t WHERE coalesce(id, 5) <> 2 ORDER BY id"
ROWS = [
    {"id": None, "name": None, "day": None, "b": "x"},
    {"id": 1, "name": "a", "day": None, "b": None},
    {"id": 3, "name": None, "day": date(1970, 1, 6), "b": None},
]


def write(folder: Path, *, declared: bool) -> None:
    narrow = pa.int16() if declared else pa.int32()
    columns = "id: int\nname: string\nday: date\ns: 'struct<a:int,b:string>'"
    write_files(
        folder,
        pa.table({"id": pa.array([1, 2], narrow), "name": ["a", "b"]}),
        pa.table({"day": pa.array([5], pa.date32()), "ID": pa.array([3], pa.int32())}),
        pa.table({"s": pa.array([{"a": 1}], pa.struct([("a", pa.int32())]))}).slice(0, 0),
        pa.table({"s": pa.array([{"B": "x", "a": 1}], pa.struct([("B", pa.string()), ("a", narrow)]))})
        if declared
        else pa.table({"s": [{"b": "x"}]}),
        columns=columns if declared else "",
    )  # fmt: skip


@pytest.mark.parametrize("declared", [False, True], ids=["merged", "declared"])
def test_all_ways_to_run_a_query_read_the_same_rows(
    tmp_path: Path,
    spark_settings: EngineSettings,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    declared: bool,
) -> None:
    write(tmp_path, declared=declared)
    project = Project(tmp_path, spark_settings, spark)
    for engine in ("duckdb", "spark"):
        graph = project.plan(SQL, dataclasses.replace(FORCED, engine=engine))
        table, results = project.run(graph)
        assert table.to_pylist() == ROWS
        assert {result.engine for result in results} == {engine}
    monkeypatch.setattr(execution, "render_fragment", broken_on("duckdb", "spark"))
    table, results = project.run(project.plan(SQL), fresh=True)
    assert table.to_pylist() == ROWS
    assert "boom" in (results[-1].fallback_reason or ""), "Spark runs the whole query"


@pytest.mark.s3
@pytest.mark.parametrize("declared", [False, True], ids=["merged", "declared"])
def test_files_in_object_storage_are_read_alike(
    tmp_path: Path,
    s3_server: S3Server,
    spark_settings: EngineSettings,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    declared: bool,
) -> None:
    run_tasks_here(monkeypatch)
    write(tmp_path, declared=declared)
    root = s3_server.new_root()
    store = open_store(root, s3_server.options)
    for file in (tmp_path / "t").iterdir():
        store.write_bytes(f"t/{file.name}", file.read_bytes())
    text = (tmp_path / "catalog.yaml").read_text()
    (tmp_path / "s3.yaml").write_text(text.replace("location: t", f"location: {root}/t"))
    catalog = load_catalog(tmp_path / "s3.yaml", s3_server.options)
    settings = dataclasses.replace(
        spark_settings,
        storage_root=str(tmp_path / "store"),
        storage_options=s3_server.options,
        min_task_bytes=0,
    )
    expected = rows_of(pa.Table.from_pylist([{**row, "day": str(row["day"])} for row in ROWS]))
    sql = SQL.replace("day,", "coalesce(CAST(day AS STRING), 'None') AS day,")
    for engine in ("duckdb", "spark"):
        graph = plan_query(sql, catalog, dataclasses.replace(FORCED, engine=engine), name="q")
        rows, manifests = run(graph, catalog, settings, spark)
        assert rows == expected
        assert {manifest.engine for manifest in manifests} == {engine}
