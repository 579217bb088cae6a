"""`VERSION AS OF` and `TIMESTAMP AS OF`: of Iceberg tables, and of those that queries publish."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from stagecoach.infra.catalog.catalog import FileCatalog
from stagecoach.infra.catalog.planned import PlannedTable, PublishedCatalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.planning import plan_query
from stagecoach.planner.syntax.parse import read_query, spark_text
from tests.contexts import new_context, run_stages
from tests.infra.formats.iceberg.answers import FORCED, catalog_of, rows
from tests.infra.formats.iceberg.handmade import HandmadeTable
from tests.infra.formats.published.outputs import publish_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def numbers(name: str, *values: int) -> pa.Table:
    return pa.table({name: pa.array(values, pa.int64())})


def column(number: int, name: str) -> dict[str, Any]:
    return {"id": number, "name": name, "type": "long"}


@pytest.fixture
def catalog(tmp_path: Path) -> FileCatalog:
    """Snapshots 1001 to 1003, a minute apart; the column is renamed before the last."""
    table = HandmadeTable(tmp_path / "t")
    table.schema(column(1, "k"))
    table.commit(table.data(numbers("k", 1)))
    table.commit(table.data(numbers("k", 2)))
    table.schema(column(1, "n"), column(2, "more"))
    table.commit(table.data(numbers("n", 3)))
    kinds = {"main": (1003, "branch"), "Dev": (1002, "branch"), "Q1": (1001, "tag")}
    table.refs = {name: {"snapshot-id": n, "type": kind} for name, (n, kind) in kinds.items()}
    return catalog_of(tmp_path, t=table.save())


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("t", [{"n": 1, "more": None}, {"n": 2, "more": None}, {"n": 3, "more": None}]),
        ("t VERSION AS OF 1001", [{"k": 1}]),
        ("t FOR VERSION AS OF 1002", [{"k": 1}, {"k": 2}]),
        ("t VERSION AS OF 'Q1'", [{"k": 1}]),
        ("t VERSION AS OF 'Dev'", [{"n": 1, "more": None}, {"n": 2, "more": None}]),
        ("t TIMESTAMP AS OF '2023-11-14 22:15:19.999Z'", [{"k": 1}]),
        ("t FOR TIMESTAMP AS OF '2023-11-14 23:15:20+01:00'", [{"k": 1}, {"k": 2}]),
    ],
)
def test_versions_of_an_iceberg_table(
    source: str, expected: list[dict[str, Any]], catalog: FileCatalog, tmp_path: Path
) -> None:
    found = rows(catalog, f"SELECT * FROM {source} ORDER BY 1", tmp_path)
    assert found == expected


def test_two_versions_in_a_query(catalog: FileCatalog, tmp_path: Path) -> None:
    sql = "SELECT n FROM t LEFT ANTI JOIN t VERSION AS OF 1002 AS old ON t.n = old.k"
    assert rows(catalog, sql, tmp_path) == [{"n": 3}]
    sql = "WITH a AS (SELECT t.k FROM T VERSION AS OF 1001) SELECT a.k, b.k AS j FROM a, t VERSION AS OF 1002 b ORDER BY 2"  # fmt: skip
    assert rows(catalog, sql, tmp_path) == [{"k": 1, "j": 1}, {"k": 1, "j": 2}]


@pytest.mark.parametrize(
    ("clause", "problem"),
    [
        ("VERSION AS OF 7", "no snapshot, branch or tag for VERSION AS OF '7'"),
        ("VERSION AS OF 'dev'", "no snapshot, branch or tag for VERSION AS OF 'dev'"),
        ("TIMESTAMP AS OF '2001-01-01Z'", "TIMESTAMP AS OF '2001-01-01Z' is not a valid time"),
        ("TIMESTAMP AS OF '2001-01-01 00:00:00Z'", "no snapshot, branch or tag for TIMESTAMP"),
        ("TIMESTAMP AS OF '2024-01-01'", "has no time zone; add its offset"),
    ],
)
def test_a_version_that_is_not_there_is_refused(
    clause: str, problem: str, catalog: FileCatalog
) -> None:
    with pytest.raises(CatalogError, match=problem):
        plan_query(f"SELECT * FROM t {clause}", catalog)


def test_tables_of_files_have_no_versions(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    from stagecoach.infra.catalog.catalog import load_catalog

    pq.write_table(numbers("k", 1), tmp_path / "p.parquet")
    (tmp_path / "catalog.yaml").write_text("tables:\n  p: {location: p.parquet}\n")
    catalog = load_catalog(tmp_path / "catalog.yaml")
    with pytest.raises(CatalogError, match="table 'p': Parquet files have no versions"):
        plan_query("SELECT * FROM p VERSION AS OF 1", catalog)
    with pytest.raises(CatalogError, match=r"table 'p': .* go by their numbers"):
        plan_query("SELECT * FROM p TIMESTAMP AS OF '2024-01-01 00:00:00Z'", catalog)


def test_versions_of_a_published_table(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store"))
    for value in (1, 2):
        publish_rows(store, numbers("k", value), mode="append")
    catalog = PublishedCatalog(FileCatalog([], origin="none"), store, [PlannedTable(name="t")])

    def total(source: str) -> Any:
        return rows(catalog, f"SELECT sum(k) AS s FROM {source}", tmp_path)[0]["s"]  # type: ignore[arg-type]

    assert [total("t"), total("t VERSION AS OF 1"), total("t VERSION AS OF 2")] == [3, 1, 3]
    assert total("t TIMESTAMP AS OF '2999-01-01 00:00:00Z'") == 3
    for clause in ("VERSION AS OF 3", "TIMESTAMP AS OF '2001-01-01 00:00:00Z'"):
        with pytest.raises(CatalogError, match=r"table 't': .* is not kept"):
            plan_query(f"SELECT * FROM t {clause}", catalog)


def test_spark_reads_views_of_versions() -> None:
    sql = "SELECT t.k, 'x VERSION AS OF 1' FROM a.`t` /* c */ VERSION AS OF 'Q1' JOIN u FOR TIMESTAMP AS OF '2024-01-01 00:00:00Z' x ON 1=1, v"
    assert spark_text(sql).text == (
        "SELECT t.k, 'x VERSION AS OF 1' FROM `a.t@version=~511` AS `t` JOIN "
        "`u@timestamp=2024-01-01~2000~3a00~3a00~5a` x ON 1=1, v"
    )
    assert [name for name, _ in read_query(sql).tables] == [
        "a.t@version=~511", "u@timestamp=2024-01-01~2000~3a00~3a00~5a", "v"
    ]  # fmt: skip
    assert spark_text("SELECT k FROM a.b JOIN c USING (k)").text == (
        "SELECT k FROM `a.b` AS `b` JOIN c USING (k)"
    )
    for sql in ("SELECT * FROM t TIMESTAMP AS OF current_timestamp()", "SELECT a.b.k FROM a.b"):
        assert spark_text(sql).text == sql


@pytest.mark.spark
@pytest.mark.slow
def test_spark_runs_a_query_of_versions(
    catalog: FileCatalog, spark: SparkSession, spark_settings: EngineSettings, tmp_path: Path
) -> None:
    settings = dataclasses.replace(spark_settings, storage_root=str(tmp_path / "store"))
    sql = "SELECT to_xml(named_struct('k', t.k)) AS x FROM t VERSION AS OF 'Q1'"
    for engine, text in (("auto", "SELECT t.k AS x FROM t VERSION AS OF 1001"), ("spark", sql)):
        graph = plan_query(text, catalog, FORCED, name="q")
        found, results = run_stages(new_context(graph, settings, catalog, lambda: spark))
        assert len(found) == 1
        assert {r.engine for r in results} == {"duckdb" if engine == "auto" else "spark"}
