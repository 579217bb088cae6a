"""Metadata tables such as `t.snapshots`, and names of several parts in Spark."""

from __future__ import annotations

import dataclasses
import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.formats.snapshot import Snapshot, take_snapshot
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.planning import plan_query
from tests.contexts import new_context, run_stages
from tests.infra.formats.iceberg.answers import FORCED, catalog_of, rows
from tests.infra.formats.iceberg.handmade import HandmadeTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def catalog(tmp_path: Path) -> FileCatalog:
    table = HandmadeTable(tmp_path / "t")
    table.schema({"id": 1, "name": "k", "type": "long"})
    one = table.data(pa.table({"k": [1, 2, 3]}))
    table.commit(one)
    table.commit(table.position_deletes({one.path: [0]}), operation="delete")
    table.refs = {"Q1": {"snapshot-id": 1001, "type": "tag"}}
    return catalog_of(tmp_path, t=table.save())


def test_metadata_of_an_iceberg_table(catalog: FileCatalog, tmp_path: Path) -> None:
    found = rows(catalog, "SELECT snapshot_id, parent_id, operation, committed_at FROM t.snapshots ORDER BY 1", tmp_path)  # fmt: skip
    at = dt.datetime(2023, 11, 14, 22, 14, 20, tzinfo=dt.UTC)
    assert found == [
        {"snapshot_id": 1001, "parent_id": None, "operation": "append", "committed_at": at},
        {"snapshot_id": 1002, "parent_id": 1001, "operation": "delete", "committed_at": at + dt.timedelta(minutes=1)},
    ]  # fmt: skip
    found = rows(catalog, "SELECT snapshot_id AS s, is_current_ancestor AS a FROM T.History ORDER BY 1", tmp_path)  # fmt: skip
    assert found == [{"s": 1001, "a": True}, {"s": 1002, "a": True}]
    found = rows(catalog, "SELECT content, record_count AS n FROM t.files ORDER BY 1", tmp_path)
    assert found == [{"content": 0, "n": 3}, {"content": 1, "n": 1}]
    assert rows(catalog, "SELECT count(*) AS n FROM t.files", tmp_path) == [{"n": 2}]
    sql = "SELECT r.name, s.operation FROM t.refs r JOIN t.snapshots s USING (snapshot_id)"
    assert {"name": "Q1", "operation": "append"} in rows(catalog, sql, tmp_path)
    taken = take_snapshot(catalog, ["t.snapshots"])
    assert Snapshot.from_json(taken.to_json()) == taken


def test_other_formats_have_metadata_too(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": [1, 2, 3]}), tmp_path / "p.parquet")
    (tmp_path / "catalog.yaml").write_text(
        "tables:\n  s.p: {location: p.parquet}\n  s.p.files: {location: p.parquet}\n"
    )
    catalog = load_catalog(tmp_path / "catalog.yaml")
    # A table of the catalog file comes first.
    assert len(rows(catalog, "SELECT k FROM s.p.files", tmp_path)) == 3
    with pytest.raises(CatalogError, match=r"'s.p' has no metadata table 'snapshots' \(it has: s.p.files\)"):  # fmt: skip
        plan_query("SELECT * FROM s.p.snapshots", catalog)


@pytest.mark.spark
@pytest.mark.slow
def test_spark_finds_names_of_several_parts(
    catalog: FileCatalog, spark: SparkSession, spark_settings: EngineSettings, tmp_path: Path
) -> None:
    settings = dataclasses.replace(spark_settings, storage_root=str(tmp_path / "store"))
    for sql, engine in (
        ("SELECT files.content AS c FROM t.files", "duckdb"),
        ("SELECT to_xml(named_struct('c', files.content)) AS c FROM t.files", "spark"),
    ):
        graph = plan_query(sql, catalog, FORCED, name="q")
        found, results = run_stages(new_context(graph, settings, catalog, lambda: spark))
        assert (len(found), {r.engine for r in results}) == (2, {engine})
