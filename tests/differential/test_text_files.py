"""CSV, JSON and text files are read as `spark.read` reads them, whoever reads them."""

from __future__ import annotations

import dataclasses
import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.text_files.files import make_case
from benchmarks.text_files.trial import DIFFERS, EQUAL, try_case
from stagecoach.api.inferring import infer_columns
from stagecoach.api.session import Session
from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.errors import QueryFailedError
from stagecoach.infra.spark import session as session_module
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.planning import plan_query
from tests.contexts import new_context, run_stages
from tests.s3_server import S3Server, s3_server
from tests.share import share

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["s3_server"]

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FORCED = PlannerOptions(force_distribution=True, num_partitions=2, inline_bytes=0)
PLAIN = PlannerOptions()


def test_generated_files(spark: SparkSession, tmp_path: Path) -> None:
    """`make csv-files` reads thousands."""
    session = spark.newSession()
    outcomes = []
    for seed in share(range(1000), 25):
        case = make_case(seed)
        outcome = try_case(session, case, tmp_path)
        assert outcome.kind != DIFFERS, f"seed {seed}: {case}\n{outcome.detail}"
        outcomes.append(outcome.kind)
    assert outcomes.count(EQUAL) > len(outcomes) / 4


@dataclasses.dataclass(frozen=True)
class Files:
    """A table of text files: what the catalog says and what is in them."""

    format: str
    columns: Mapping[str, str]
    options: Mapping[str, Any]
    contents: Mapping[str, bytes]

    def write(self, folder: Path, location: str = "t", storage: Any = None) -> FileCatalog:
        for name, content in self.contents.items():
            path = folder / "t" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        columns = ", ".join(f"{name}: {dtype!r}" for name, dtype in self.columns.items())
        options = ", ".join(f"{name}: {value!r}" for name, value in self.options.items())
        (folder / "catalog.yaml").write_text(
            f"tables:\n  t:\n    location: {location}\n    format: {self.format}\n"
            f"    columns: {{{columns}}}\n    options: {{{options}}}\n"
        )
        return load_catalog(folder / "catalog.yaml", storage)

    def oracle(self, spark: SparkSession, folder: Path, sql: str) -> list[Any]:
        session = spark.newSession()
        ddl = ", ".join(f"`{name}` {dtype}" for name, dtype in self.columns.items())
        reader = session.read.schema(ddl).options(**dict(self.options)).format(self.format)
        reader.load(str(folder / "t")).createOrReplaceTempView("t")
        return [row.asDict() for row in session.sql(sql).collect()]


def answer(
    sql: str,
    catalog: FileCatalog,
    settings: EngineSettings,
    spark: SparkSession,
    folder: Path,
    options: PlannerOptions = FORCED,
) -> tuple[list[Any], set[str]]:
    """The rows and the engines of the stages."""
    changed = dataclasses.replace(
        settings, storage_root=str(folder / "store"), min_task_bytes=1, target_task_bytes=1
    )
    graph = plan_query(sql, catalog, options, name="q")
    found, results = run_stages(new_context(graph, changed, catalog, lambda: spark))
    return found.to_pylist(), {result.engine for result in results if not result.deferred}


COLUMNS = {"id": "int", "name": "string", "price": "decimal(10,2)"}
SUMS = (
    "SELECT name, count(*) AS n, sum(id) AS s, max(price) AS p FROM t GROUP BY name ORDER BY name"
)
TWO = {
    "a.csv": b'id,name,price\n1,"x, y",1.50\n2,,0.25\n',
    "b.csv.gz": gzip.compress(b"id,name,price\r\n3,x,7\r\n\r\n-4,y,abc"),
    "_hidden.csv": b"no rows",
    "empty.csv": b"",
}


@pytest.mark.parametrize("options", [PLAIN, FORCED], ids=["plain", "forced"])
def test_plain_csv_is_read_by_tasks(
    options: PlannerOptions,
    spark: SparkSession,
    spark_settings: EngineSettings,
    tmp_path: Path,
) -> None:
    files = Files("csv", COLUMNS, {"header": True}, TWO)
    found, engines = answer(SUMS, files.write(tmp_path), spark_settings, spark, tmp_path, options)
    assert engines == {"duckdb"}
    assert found == files.oracle(spark, tmp_path, SUMS)


@pytest.mark.parametrize(
    ("options", "more", "sql"),
    [
        ({}, b"5,z\n6,z,2,more\n", SUMS),
        ({"escape": "/"}, b'5,"a/"b",2\n', SUMS),
        ({"mode": "DROPMALFORMED"}, b"5,z\n6,z,x\n", "SELECT id FROM t ORDER BY id"),
        ({"mode": "DROPMALFORMED"}, b"5,z\n6,z,x\n", "SELECT count(*) AS n FROM t"),
        ({"mode": "DROPMALFORMED"}, b"5,z\nq,z,1\n", SUMS),
        ({"quote": "'", "multiLine": True}, b"5,'a\nb',2\n", SUMS),
    ],
)  # fmt: skip
def test_other_csv_is_read_by_spark(
    options: dict[str, Any],
    more: bytes,
    sql: str,
    spark: SparkSession,
    spark_settings: EngineSettings,
    tmp_path: Path,
) -> None:
    contents = {"a.csv": b"1,x,1.50\n2,,0.25\n", "c.csv": more}
    files = Files("csv", COLUMNS, options, contents)
    catalog = files.write(tmp_path)
    found, _ = answer(sql, catalog, spark_settings, spark, tmp_path)
    assert found == files.oracle(spark, tmp_path, sql)


CORRUPT = {**COLUMNS, "_corrupt_record": "string"}


@pytest.mark.parametrize(
    ("more", "engines"), [(b"", {"duckdb"}), (b"x,b,1\n9,b\n10,b,z\n", {"spark"})]
)
def test_corrupt_records(
    more: bytes,
    engines: set[str],
    spark: SparkSession,
    spark_settings: EngineSettings,
    tmp_path: Path,
) -> None:
    """Which records are corrupt depends on the columns of the whole query."""
    files = Files("csv", CORRUPT, {}, {"a.csv": b"1,x,1.50\n2,,0.25\n" + more})
    sql = "SELECT _corrupt_record AS c, count(*) AS n, sum(id) AS s FROM t GROUP BY 1 ORDER BY 1"
    found, used = answer(sql, files.write(tmp_path), spark_settings, spark, tmp_path)
    assert used == engines
    assert found == files.oracle(spark, tmp_path, sql)


def test_a_corrupt_record_fails_a_query_that_asked_for_it(
    spark: SparkSession, spark_settings: EngineSettings, tmp_path: Path
) -> None:
    files = Files("csv", COLUMNS, {"mode": "FAILFAST"}, {"a.csv": b"1,x,1.50\n2,y\n"})
    catalog = files.write(tmp_path)
    with pytest.raises(QueryFailedError, match="MALFORMED_RECORD_IN_PARSING"):
        answer("SELECT * FROM t WHERE id > 0", catalog, spark_settings, spark, tmp_path)


def test_partition_folders(
    spark: SparkSession, spark_settings: EngineSettings, tmp_path: Path
) -> None:
    columns = {"id": "int", "name": "string", "day": "date", "kind": "string"}
    contents = {
        "day=2024-01-31/kind=a/1.csv": b"1,x\n2,y\n",
        "day=2024-02-01/kind=b%20c/1.csv": b"3,x\n",
        "day=2024-02-01/kind=b%20c/2.csv": b"4,q,more\n",
    }
    sql = "SELECT day, kind, sum(id) AS s FROM t GROUP BY day, kind ORDER BY day, kind"
    one = "SELECT id, day FROM t WHERE day = DATE '2024-01-31' ORDER BY id"
    files = Files("csv", columns, {}, contents)
    catalog = files.write(tmp_path)
    expected = files.oracle(spark, tmp_path, sql)
    assert answer(sql, catalog, spark_settings, spark, tmp_path) == (expected, {"duckdb", "spark"})
    # The ragged line is in a file that the filter leaves out.
    expected = files.oracle(spark, tmp_path, one)
    assert answer(one, catalog, spark_settings, spark, tmp_path) == (expected, {"duckdb"})


JSON_COLUMNS = {"id": "int", "tags": "array<string>", "s": "struct<x: bigint>"}
JSON_SQL = "SELECT id, tags[0] AS t, s.x AS x FROM t ORDER BY id"


@pytest.mark.parametrize(
    ("more", "engines"),
    [
        (b'{"s": {"x": 5}, "more": [1]}\n\n \n', {"duckdb"}),
        (b'{"id": "7"}\n[{"id": 8}, {"id": 9}]\n{"id": 1\n', {"duckdb", "spark"}),
    ],
)
def test_json_lines(
    more: bytes,
    engines: set[str],
    spark: SparkSession,
    spark_settings: EngineSettings,
    tmp_path: Path,
) -> None:
    contents = {"a.json": b'{"id": 1, "tags": ["a", null]}\r\n', "b.json": more}
    files = Files("json", JSON_COLUMNS, {}, contents)
    catalog = files.write(tmp_path)
    found, used = answer(JSON_SQL, catalog, spark_settings, spark, tmp_path)
    assert used <= engines
    assert found == files.oracle(spark, tmp_path, JSON_SQL)


def test_lines(spark: SparkSession, spark_settings: EngineSettings, tmp_path: Path) -> None:
    files = Files("text", {"value": "string"}, {}, {"a.txt": "a\n\n ü \r\nlast".encode()})
    sql = "SELECT value, length(value) AS n FROM t ORDER BY value"
    found, engines = answer(sql, files.write(tmp_path), spark_settings, spark, tmp_path)
    assert engines == {"duckdb"}
    assert found == files.oracle(spark, tmp_path, sql)


@pytest.mark.s3
@pytest.mark.parametrize("options", [{"header": True}, {"header": True, "multiLine": True}])
def test_files_on_s3(
    options: dict[str, Any],
    s3_server: S3Server,
    spark: SparkSession,
    spark_settings: EngineSettings,
    tmp_path: Path,
) -> None:
    """Tasks read ranges of them; those that Spark must read are copied for it."""
    root = s3_server.new_root()
    contents = {"day=2024-01-31/a.csv": TWO["a.csv"], "day=2024-02-01/b.csv.gz": TWO["b.csv.gz"]}
    files = Files("csv", {**COLUMNS, "day": "date"}, options, contents)
    store = open_store(root, s3_server.options)
    for name, content in contents.items():
        store.write_bytes(f"t/{name}", content)
    catalog = files.write(tmp_path, f"{root}/t", s3_server.options)
    spill = tmp_path / "spill"
    settings = dataclasses.replace(
        spark_settings, storage_options=s3_server.options, spill_dir=str(spill)
    )
    sql = "SELECT day, count(*) AS n, sum(id) AS s FROM t GROUP BY day ORDER BY day"
    found, engines = answer(sql, catalog, settings, spark, tmp_path)
    assert found == files.oracle(spark, tmp_path, sql)
    assert ("spark" in engines) == ("multiLine" in options)
    assert not list(spill.glob("fetched-*"))


def test_columns_are_inferred(
    spark: SparkSession,
    spark_settings: EngineSettings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_module, "get_session", lambda settings: spark)
    contents = {
        "day=2024-01-31": b"id;yes;a b;at\n1;1.5;true;2024-01-31 10:11:12\n",
        "day=2024-02-01": b"id;yes;a b;at\n3000000000;x;;\n",
    }
    for folder, content in contents.items():
        (tmp_path / "t" / folder).mkdir(parents=True)
        (tmp_path / "t" / folder / "a.csv").write_bytes(content)
    text = "tables:\n  t:\n    location: t\n    format: csv\n    options: {header: true, sep: ;}\n"
    (tmp_path / "catalog.yaml").write_text(text)
    found = infer_columns("t", tmp_path / "catalog.yaml", spark_settings)
    assert found == [
        ("id", "bigint"),
        ("yes", "string"),
        ("a b", "boolean"),
        ("at", "timestamp"),
        ("day", "date"),
    ]
    pasted = "".join(f"      {json.dumps(name)}: {dtype}\n" for name, dtype in found)
    (tmp_path / "catalog.yaml").write_text(f"{text}    columns:\n{pasted}")
    catalog = load_catalog(tmp_path / "catalog.yaml")
    sql = "SELECT id, day FROM t ORDER BY id"
    rows, _ = answer(sql, catalog, spark_settings, spark, tmp_path, PLAIN)
    assert [row["id"] for row in rows] == [1, 3_000_000_000]


def test_only_files_that_tell_no_columns_are_inferred(
    spark_settings: EngineSettings, tmp_path: Path
) -> None:
    (tmp_path / "catalog.yaml").write_text(
        "tables: {t: {location: t}, u: {location: u, format: csv}}"
    )
    with pytest.raises(CatalogError, match="known without Spark"):
        infer_columns("t", tmp_path / "catalog.yaml", spark_settings)
    with pytest.raises(CatalogError, match="does not exist"):
        infer_columns("u", tmp_path / "catalog.yaml", spark_settings)


def test_a_result_that_is_written_can_be_read(
    spark: SparkSession, spark_settings: EngineSettings, tmp_path: Path
) -> None:
    contents = {"a.csv": b'1,"x, y",1.50\n2,,0.25\n3,"say ""hi""",\n'}
    options = {"escape": '"'}
    files = Files("csv", COLUMNS, options, contents)
    settings = dataclasses.replace(spark_settings, storage_root=str(tmp_path / "store"))
    # Not closed: that would stop the Spark of all tests.
    session = Session(catalog=files.write(tmp_path), settings=settings, options=PLAIN)
    result = session.query("SELECT * FROM t ORDER BY id")
    assert result.write(tmp_path / "out.csv") == 3
    assert result.write(tmp_path / "out", "json") == 3
    with pytest.raises(ValueError, match="none of parquet"):
        result.write(tmp_path / "out.orc", "orc")  # type: ignore[arg-type]
    expected = result.to_arrow()
    ddl = ", ".join(f"{name} {dtype}" for name, dtype in COLUMNS.items())
    read = spark.newSession().read.schema(ddl)
    assert (
        read.options(header=True, escape='"').csv(str(tmp_path / "out.csv")).toArrow() == expected
    )
    assert read.json(str(tmp_path / "out")).toArrow() == expected
