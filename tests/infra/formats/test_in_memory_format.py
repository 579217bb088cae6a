"""A format of a hundred lines is planned, explained and run by both engines like any other."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from stagecoach.api.session import Session
from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.formats import names
from stagecoach.infra.formats.snapshot import Snapshot, take_snapshot
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.planning import plan_query
from tests.contexts import new_context, run_stages
from tests.infra.formats import memory_format
from tests.infra.stage_runs import run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORCED = PlannerOptions(force_distribution=True, num_partitions=3, inline_bytes=0)
QUERIES = (
    "SELECT name, count(*) AS n, sum(k) AS s FROM people GROUP BY name ORDER BY name",
    "SELECT k FROM people WHERE k >= 25 ORDER BY k",
    "SELECT a.k, b.name FROM people a JOIN people b ON a.k = b.k + 10 ORDER BY a.k",
    "SELECT count(*) AS n FROM people",
)


def rows(start: int, count: int) -> pa.RecordBatch:
    keys = range(start, start + count)
    return pa.RecordBatch.from_pydict({"k": list(keys), "name": [f"n{k % 4}" for k in keys]})


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileCatalog]:
    names.BY_FORMAT.register("memory", f"{memory_format.__name__}:FORMAT")
    monkeypatch.setattr(memory_format, "VERSIONS", {})
    monkeypatch.setattr(memory_format, "DELETED", {})
    path = tmp_path / "catalog.yaml"
    path.write_text("tables:\n  people:\n    format: memory\n    location: people\n")
    found = load_catalog(path)
    for part in range(3):
        writer = found.open("people").writer(f"token-{part}")
        assert writer.stage(rows(10 * part, 10)) == 10
        assert writer.publish() == part + 1
    yield found
    names.BY_FORMAT.remove("memory")


def test_the_format_fits_on_a_page() -> None:
    assert len(Path(memory_format.__file__).read_text(encoding="utf-8").splitlines()) <= 120


def test_a_commit_token_counts_once(catalog: FileCatalog) -> None:
    table = catalog.open("people")
    again, dropped = table.writer("token-2"), table.writer("other")
    again.stage(rows(20, 10))
    assert again.publish() == 3
    dropped.stage(rows(90, 10))
    dropped.discard()
    assert table.state().snapshot.num_rows == 30
    assert table.metadata()["files"]().column("num_rows").to_pylist() == [10, 10, 10]


def test_an_older_version_is_read(catalog: FileCatalog) -> None:
    assert catalog.state("people", 1).snapshot.num_rows == 10
    assert catalog.state("people", 0).info.columns == memory_format.COLUMNS  # a schema, no data
    with pytest.raises(CatalogError, match="no version 4"):
        catalog.state("people", 4)


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["auto", "spark"])
def test_deleted_rows_are_not_read(
    engine: Any,
    catalog: FileCatalog,
    spark: SparkSession,
    spark_settings: EngineSettings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = dataclasses.replace(spark_settings, storage_root=str(tmp_path / "store"))
    options = dataclasses.replace(FORCED, engine=engine)
    graph = plan_query("SELECT count(*) AS n, sum(k) AS s FROM people", catalog, options, name="q")
    before, _ = run_stages(new_context(graph, settings, catalog, lambda: spark))
    monkeypatch.setitem(memory_format.DELETED, "memory:people/1", (0, 3, 9))
    taken = take_snapshot(catalog, ["people"])
    assert Snapshot.from_json(taken.to_json()) == taken
    after, _ = run_stages(new_context(graph, settings, catalog, lambda: spark))
    assert before.to_pylist() == [{"n": 30, "s": 435}]
    assert after.to_pylist() == [{"n": 27, "s": 435 - 10 - 13 - 19}], "no stage is reused"


@pytest.mark.spark
def test_a_renamed_column_is_found_by_its_id(
    catalog: FileCatalog,
    spark: SparkSession,
    spark_settings: EngineSettings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    k, name = memory_format.COLUMNS
    monkeypatch.setattr(memory_format, "COLUMNS", (k, dataclasses.replace(name, name="label")))
    settings = dataclasses.replace(spark_settings, storage_root=str(tmp_path / "store"))
    graph = plan_query("SELECT max(label) AS m FROM people", catalog, FORCED, name="q")
    found, _ = run_stages(new_context(graph, settings, catalog, lambda: spark))
    assert found.to_pylist() == [{"m": "n3"}]
    # A column of that name with another id has other rows, so no stage is reused.
    monkeypatch.setattr(memory_format, "IDS", (2, 1))
    found, _ = run_stages(new_context(graph, settings, catalog, lambda: spark))
    assert found.to_pylist() == [{"m": "9"}]


def test_a_snapshot_keeps_what_the_format_knows(catalog: FileCatalog) -> None:
    taken = take_snapshot(catalog, ["people"])
    assert Snapshot.from_json(taken.to_json()) == taken
    names.BY_FORMAT.remove("memory")
    with pytest.raises(CatalogError, match="table format 'memory' not found"):
        Snapshot.from_json(taken.to_json())


def test_it_is_planned_and_explained(catalog: FileCatalog, spark_settings: EngineSettings) -> None:
    with Session(catalog=catalog, settings=spark_settings, options=FORCED) as session:
        assert "people" in session.explain(QUERIES[0])
        phases = session.phases(QUERIES[0])
    assert phases.graph is not None
    assert {stage.engine for stage in phases.graph.stages} == {"duckdb"}


def test_filters_leave_out_units(
    catalog: FileCatalog, spark_settings: EngineSettings, tmp_path: Path
) -> None:
    settings = dataclasses.replace(spark_settings, storage_root=str(tmp_path / "store"))
    graph = plan_query(QUERIES[1], catalog, FORCED, name="q")
    runs = run_here(graph, catalog, settings, settings.open_store())
    assert runs[0].reports[0].rows_in == (10,)
    assert runs[-1].manifest.num_rows == 5


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["auto", "spark"])
@pytest.mark.parametrize("sql", QUERIES)
def test_both_engines_give_spark_s_rows(
    sql: str,
    engine: Any,
    catalog: FileCatalog,
    spark: SparkSession,
    spark_settings: EngineSettings,
    tmp_path: Path,
) -> None:
    settings = dataclasses.replace(
        spark_settings, storage_root=str(tmp_path), min_task_bytes=1, target_task_bytes=1
    )
    graph = plan_query(sql, catalog, dataclasses.replace(FORCED, engine=engine), name="q")
    found, results = run_stages(new_context(graph, settings, catalog, lambda: spark))
    assert {result.engine for result in results} == {"duckdb" if engine == "auto" else "spark"}
    plain = spark.newSession()
    plain.createDataFrame(rows(0, 30).to_pylist(), "k bigint, name string").createOrReplaceTempView(
        "people"
    )
    assert found.to_pylist() == [row.asDict() for row in plain.sql(sql).collect()]
