"""ORC files are read as `spark.read` reads them, whoever reads them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import orc

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.engines.spark.errors import SPARK_ERRORS
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.planning import plan_query
from tests.contexts import new_context, run_stages
from tests.differential.inprocess import multiset
from tests.s3_server import S3Server, s3_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["s3_server"]

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FORCED = PlannerOptions(force_distribution=True, num_partitions=2, inline_bytes=0)
NATIVE, SPARK = {"duckdb"}, {"spark"}

ROWS = """
SELECT id, CAST(id AS TINYINT) AS t, CAST(id AS SMALLINT) AS sm, CAST(id AS INT) AS i,
  CASE id WHEN 0 THEN CAST('NaN' AS FLOAT) WHEN 1 THEN -0.0F WHEN 2 THEN NULL ELSE 1.5F END AS f,
  CASE id WHEN 0 THEN -CAST('Infinity' AS DOUBLE) WHEN 1 THEN -0.0D WHEN 2 THEN NULL ELSE id END
    AS d,
  id % 2 = 0 AS b, CAST(id AS DECIMAL(12,2)) AS dec, CAST(id AS DECIMAL(38,10)) / 3 AS wide,
  IF(id = 3, '', concat('ü', id)) AS s, CAST(concat('x', id) AS BINARY) AS bin,
  date_add(DATE '1582-10-15', CAST(id * 100000 AS INT)) AS day,
  date_add(DATE '1500-01-01', CAST(id AS INT)) AS old_day,
  TIMESTAMP '1883-11-18 12:00:00' + make_dt_interval(CAST(id AS INT)) AS ts,
  TIMESTAMP_NTZ '0001-01-01 00:00:00' + make_dt_interval(CAST(id AS INT)) AS ntz,
  IF(id = 4, NULL, array(id, NULL)) AS a, map('k', id) AS m,
  named_struct('x', id, 'y', array(DATE '2024-01-31')) AS st,
  named_struct('x', TIMESTAMP_NTZ '2024-01-31 00:00:00') AS moments,
  make_dt_interval(CAST(id AS INT)) AS iv, CAST(NULL AS STRING) AS nothing
FROM range(6)
"""


def catalog_of(folder: Path, *, location: str = "t", columns: str = "", storage: Any = None) -> Any:
    declared = f", columns: {{{columns}}}" if columns else ""
    text = f"tables: {{t: {{location: {location}, format: orc{declared}}}}}\n"
    (folder / "catalog.yaml").write_text(text)
    return load_catalog(folder / "catalog.yaml", storage)


def answer(
    sql: str, catalog: FileCatalog, settings: EngineSettings, spark: SparkSession, folder: Path
) -> tuple[pa.Table, set[str]]:
    """The rows, and the engines of the stages that read files."""
    changed = dataclasses.replace(
        settings, storage_root=str(folder / "store"), min_task_bytes=1, target_task_bytes=1
    )
    graph = plan_query(sql, catalog, FORCED, name="q")
    found, results = run_stages(new_context(graph, changed, catalog, lambda: spark))
    return found, {r.engine for r, s in zip(results, graph.stages, strict=True) if s.tables}


def oracle(spark: SparkSession, folder: Path, sql: str, ddl: str = "") -> pa.Table:
    session = spark.newSession()
    reader = session.read.option("mergeSchema", "true")
    (reader.schema(ddl) if ddl else reader).orc(str(folder / "t")).createOrReplaceTempView("t")
    return session.sql(sql).toArrow()


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("orc")
    spark.sql(ROWS).repartition(2).write.orc(str(folder / "t"))
    return folder


@pytest.mark.parametrize(
    ("columns", "engines"),
    [
        ("id, t, sm, i, f, d, b, dec, wide, s, bin, nothing", NATIVE),
        ("day, ntz, a, st, map_values(m) AS m", NATIVE),
        ("id, ts", SPARK),
        ("id, iv", SPARK),
        ("id, moments", SPARK),
        ("id, old_day", SPARK),
        ("count(*) AS n", NATIVE),
        ("b, count(*) AS n, sum(wide) AS w, min(day) AS day", NATIVE),
    ],
)
def test_what_spark_wrote(
    columns: str,
    engines: set[str],
    written: Path,
    spark: SparkSession,
    spark_settings: EngineSettings,
    tmp_path: Path,
) -> None:
    group = " GROUP BY b" if columns.startswith("b,") else ""
    sql = f"SELECT {columns} FROM t{group}"
    found, used = answer(sql, catalog_of(written), spark_settings, spark, tmp_path)
    expected = oracle(spark, written, sql)
    assert multiset(found) == multiset(expected.cast(found.schema))
    assert used == engines


def test_stripes_are_shared_out(
    spark: SparkSession, spark_settings: EngineSettings, tmp_path: Path
) -> None:
    (tmp_path / "t").mkdir()
    ids = np.arange(200_000)
    table = pa.table(
        {"id": ids, "s": pa.array(np.char.add("v", (ids * 7919 % 199_999).astype(str)))}
    )
    orc.write_table(table, tmp_path / "t" / "a.orc", stripe_size=1 << 16, batch_size=1024)
    assert orc.ORCFile(tmp_path / "t" / "a.orc").nstripes > 3
    catalog = catalog_of(tmp_path)
    (file,) = catalog.state("t").snapshot.files
    assert len(file.row_groups) > 3
    sql = "SELECT count(*) AS n, sum(id) AS i, count(DISTINCT s) AS d FROM t WHERE id >= 5"
    found, used = answer(sql, catalog, spark_settings, spark, tmp_path)
    assert used == NATIVE
    assert found.to_pylist() == oracle(spark, tmp_path, sql).to_pylist()


def test_files_with_other_columns(
    spark: SparkSession, spark_settings: EngineSettings, tmp_path: Path
) -> None:
    folder = tmp_path / "t"
    first = "SELECT 1 AS a, 'x' AS b, 1L AS wider, DATE '2024-01-31' AS c"
    second = "SELECT 'y' AS B, 2 AS a, 2L AS wider UNION ALL SELECT NULL, NULL, NULL"
    spark.sql(first).write.orc(str(folder / "kind=1"))
    spark.sql(second).write.orc(str(folder / "kind=2"))
    sql = "SELECT a, b, c, kind FROM t"
    found, used = answer(sql, catalog_of(tmp_path), spark_settings, spark, tmp_path)
    assert used == NATIVE
    assert multiset(found) == multiset(oracle(spark, tmp_path, sql).cast(found.schema))
    # A type of a file's own is read by Spark, and only where it is asked for.
    spark.sql("SELECT 3 AS a, 3 AS wider").write.orc(str(folder / "kind=3"))
    with pytest.raises(CatalogError, match="'wider' is int, not bigint, which Spark does not"):
        catalog_of(tmp_path).state("t")
    columns = "a: INT, b: STRING, wider: BIGINT, c: DATE, kind: INT"
    declared = catalog_of(tmp_path, columns=columns)
    for name, engines in (("a", NATIVE), ("wider", SPARK)):
        sql = f"SELECT {name}, kind FROM t"
        found, used = answer(sql, declared, spark_settings, spark, tmp_path)
        expected = oracle(spark, tmp_path, sql, columns.replace(":", ""))
        assert multiset(found) == multiset(expected.cast(found.schema))
        assert used == engines


def test_a_column_that_only_spark_reads_may_come_after_planning(
    spark: SparkSession, spark_settings: EngineSettings, tmp_path: Path
) -> None:
    """What a task finds in the file counts, not what the plan was made for."""
    columns = "a: BIGINT"
    (tmp_path / "t").mkdir()
    catalog = catalog_of(tmp_path, columns=columns)
    graph = plan_query("SELECT sum(a) AS s FROM t", catalog, FORCED, name="q")
    assert {stage.engine for stage in graph.stages} == NATIVE
    orc.write_table(pa.table({"a": pa.array([1, 2], pa.int32())}), tmp_path / "t" / "a.orc")
    settings = dataclasses.replace(spark_settings, storage_root=str(tmp_path / "store"))
    found, results = run_stages(new_context(graph, settings, catalog, lambda: spark))
    assert found.to_pylist() == [{"s": 3}]
    assert "spark" in {result.engine for result in results}


@pytest.mark.s3
def test_files_on_s3(
    s3_server: S3Server,
    written: Path,
    spark: SparkSession,
    spark_settings: EngineSettings,
    tmp_path: Path,
) -> None:
    root = s3_server.new_root()
    store = open_store(root, s3_server.options)
    for file in (written / "t").glob("*.orc"):
        store.write_bytes(f"t/{file.name}", file.read_bytes())
    catalog = catalog_of(tmp_path, location=f"{root}/t", storage=s3_server.options)
    spill = tmp_path / "spill"
    settings = dataclasses.replace(
        spark_settings, storage_options=s3_server.options, spill_dir=str(spill)
    )
    for sql, engines in (("SELECT id, s FROM t", NATIVE), ("SELECT id, ts FROM t", SPARK)):
        found, used = answer(sql, catalog, settings, spark, tmp_path)
        assert multiset(found) == multiset(oracle(spark, written, sql).cast(found.schema))
        assert used == engines


def test_a_file_that_is_no_orc_is_named(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.orc").write_bytes(b"id,name\n1,x\n")
    with pytest.raises(CatalogError, match=r"table 't': .*a\.orc: its ORC footer cannot be read"):
        catalog_of(tmp_path).state("t")


@pytest.mark.parametrize("columns", ["", "a: BIGINT"])
def test_columns_of_one_name_are_refused_as_by_spark(
    columns: str, spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "t").mkdir()
    orc.write_table(pa.table({"a": [1]}), tmp_path / "t" / "a.orc")
    twice = pa.table([pa.array([3]), pa.array([5])], names=["a", "A"])
    orc.write_table(twice, tmp_path / "t" / "b.orc")
    with pytest.raises(CatalogError, match=r"b\.orc: columns 'a' and 'A' have the same name"):
        catalog_of(tmp_path, columns=columns).table("t")
    with pytest.raises(SPARK_ERRORS):
        oracle(spark, tmp_path, "SELECT a FROM t", columns.replace(":", ""))


def test_members_of_one_name_are_refused_as_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    table = pa.table({"s": pa.array([{"x": 1, "X": 2}]), "a": pa.array([1])})
    orc.write_table(table, tmp_path / "t" / "a.orc")
    with pytest.raises(CatalogError, match=r"members 's\.x' and 's\.X' have the same name"):
        catalog_of(tmp_path).table("t")
    with pytest.raises(SPARK_ERRORS):
        oracle(spark, tmp_path, "SELECT a FROM t")
    assert catalog_of(tmp_path, columns="a: BIGINT").table("t") is not None
