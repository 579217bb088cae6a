"""Tables that are published to Iceberg, read by name through the storage root, and by commands."""

from __future__ import annotations

import datetime as dt
import json
import math
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stagecoach.commands.main import cli
from stagecoach.infra.catalog.catalog import FileCatalog
from stagecoach.infra.catalog.planned import PlannedTable, PublishedCatalog
from stagecoach.infra.formats.publishing import PublishError, PublishTarget
from stagecoach.infra.publishing import jobs
from stagecoach.infra.publishing.publish import publish
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.planning import plan_query
from stagecoach.planner.types import BIGINT, INT, STRING, Field
from tests.contexts import new_context, run_stages
from tests.infra.formats.iceberg.answers import FORCED, as_set, files_read, rows, run
from tests.infra.formats.iceberg.lake import Lake, local_lake, stored_catalog
from tests.infra.formats.published.outputs import (
    fields_of,
    head_output,
    publish_rows,
    rows_of_every_type,
)
from tests.s3_server import S3Server
from tests.s3_server import s3_server as s3_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.infra.config.settings import EngineSettings


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return local_lake(tmp_path)


def numbered(*keys: int) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int32()), "name": [f"row {k}" for k in keys]})


def test_a_table_is_read_by_its_name(lake: Lake) -> None:
    catalog: Any = stored_catalog(lake)
    first = lake.publish(numbered(1, 2), partition_by=("k",), comments=(("k", "the key"),))
    lake.publish(numbered(3), mode="append")
    sql = "SELECT name FROM tpch.orders WHERE k = 3"
    found, stages = run(catalog, sql, lake.folder)
    assert (found, files_read(stages)) == ([{"name": "row 3"}], 1)
    info = catalog.table("tpch.orders")
    assert (info.format, info.notes["k"].comment) == ("iceberg", "the key")
    source = catalog.source("TPCH.Orders")
    assert (source.format, source.location) == ("iceberg", "lake:tpch.orders")
    old = f"SELECT k FROM tpch.orders VERSION AS OF {first.version.number}"
    assert as_set(rows(catalog, old, lake.folder)) == as_set([{"k": 1}, {"k": 2}])


def test_what_is_planned_and_what_is_there_agree(lake: Lake) -> None:
    tiny = pa.table({"k": pa.array([1], pa.int8()), "name": ["a"]})
    columns = (Field("k", INT), Field("name", STRING))
    planned = PlannedTable(
        name=lake.table,
        columns=(Field("k", INT), Field("name", STRING)),
        partition_by=("k",),
        estimated_rows=7,
        format="iceberg",
    )
    catalog = PublishedCatalog(FileCatalog([], origin="none"), lake.store, [planned])
    info = catalog.table(lake.table)
    assert info is not None
    assert (info.columns, info.stats and info.stats.num_rows) == (columns, 7)
    with pytest.raises(CatalogError, match="has no data yet"):
        catalog.state(lake.table)
    lake.publish(tiny, partition_by=("k",))
    assert catalog.state(lake.table).info.columns == columns
    other = PlannedTable(name=lake.table, columns=(Field("k", BIGINT),))  # as a run knows it
    catalog = PublishedCatalog(FileCatalog([], origin="none"), lake.store, [other])
    assert catalog.source(lake.table).format == "iceberg"
    with pytest.raises(CatalogError, match="column 'k' is int there and bigint here"):
        catalog.state(lake.table)


def test_a_name_is_a_table_of_one_format(lake: Lake) -> None:
    lake.publish(numbered(1))
    with pytest.raises(PublishError, match="is of the format 'iceberg', not 'published'; clear"):
        publish_rows(lake.store, numbered(1), lake.table)
    (lake.folder / "catalog.yaml").write_text("tables: {}\n")
    run_command(lake, "tables", "clear", lake.table, "--yes")
    assert lake.rows() == []
    publish_rows(lake.store, numbered(5), lake.table)
    catalog: Any = stored_catalog(lake)
    assert rows(catalog, "SELECT k FROM tpch.orders", lake.folder) == [{"k": 5}]


def run_command(lake: Lake, *args: str) -> str:
    where = ("--catalog", str(lake.folder / "catalog.yaml"), "--storage", str(lake.folder / "root"))
    result = CliRunner().invoke(cli, [*args, *where])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_commands_show_it(lake: Lake) -> None:
    (lake.folder / "catalog.yaml").write_text("tables: {}\n")
    lake.publish(numbered(1, 2), comments=(("k", "the key"),))
    last = lake.publish(numbered(3), mode="append").version
    (shown,) = json.loads(run_command(lake, "tables", "--format", "json"))["tables"]
    assert (shown["name"], shown["location"], shown["rows"]) == (lake.table, "lake:tpch.orders", 3)
    assert shown["version"] | {"committed_at": "", "bytes": 0} == {
        "number": last.number,
        "committed_at": "",
        "mode": "append",
        "run_id": "",
        "rows": 3,
        "bytes": 0,
        "files": 2,
        "partitions": [],
    }
    assert shown["version"]["bytes"] == last.num_bytes
    listed = run_command(lake, "tables", "--versions", "--format", "json")
    assert [v["mode"] for v in json.loads(listed)["versions"][lake.table]] == ["append", "replace"]
    storage = ("--storage", str(lake.folder / "root"))
    verified = CliRunner().invoke(cli, ["storage", "verify", *storage])
    assert verified.exit_code == 0, verified.output


@pytest.mark.s3
def test_a_lake_on_s3(s3_server: S3Server, tmp_path: Path) -> None:
    root = s3_server.new_root()
    properties = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/lake.db",
        "warehouse": f"{root}/lake",
        # rclone takes no uploads as pyarrow sends them.
        "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO",
        "s3.endpoint": s3_server.endpoint_url,
        "s3.region": "us-east-1",
    }
    store = open_store(f"{root}/root", s3_server.options)
    lake = Lake(tmp_path, store, properties)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in s3_server.environment.items():
            patch.setenv(name, value)
        lake.publish(numbered(1, 2), partition_by=("k",))
        lake.publish(numbered(3), mode="append")
        lake.publish(numbered(3), mode="append")
        assert sorted(row["k"] for row in lake.rows()) == [1, 2, 3]
        assert len(lake.data_files()) == 3
        state = stored_catalog(lake).state(lake.table)
        assert {file.num_rows for file in state.snapshot.files} == {1}
        late = numbered(2, 4).append_column("gone", pa.array([True, False]))
        lake.publish(late, mode="merge", key=("k",), delete_column="gone", partition_by=("k",))
        assert sorted(row["k"] for row in lake.rows()) == [1, 3, 4]
        lake.publish(numbered(3, 4), mode="append", name="again")
        names = numbered(4).set_column(1, "name", pa.array(["both"]))
        lake.publish(names, mode="merge", key=("k",))
        found = sorted((row["k"], row["name"]) for row in lake.rows())
        assert found == [(1, "row 1"), (3, "row 3"), (3, "row 3"), (4, "both")]


VALUES = {
    "i": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "x": (pa.float64(), st.floats() | st.sampled_from([math.nan, -0.0, 0.0, math.inf])),
    # A literal with a NUL in it is left to Spark.
    "s": (
        pa.string(),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
    ),
    "b": (pa.binary(), st.binary(max_size=20)),
    "d": (pa.date32(), st.dates()),
    "t": (
        pa.timestamp("us", tz="UTC"),
        st.datetimes(timezones=st.just(dt.UTC), min_value=dt.datetime(1, 1, 2)),
    ),
    "m": (pa.decimal128(20, 3), st.decimals(-(10**16), 10**16, places=3)),
}


ROWS = st.fixed_dictionaries({n: st.none() | s for n, (_, s) in VALUES.items()})


@given(st.lists(ROWS, max_size=6))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_rows_are_read_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, made: list[dict[str, Any]]
) -> None:
    lake = local_lake(tmp_path_factory.mktemp("lake"))
    table = pa.Table.from_pylist(made, pa.schema([(n, kind) for n, (kind, _) in VALUES.items()]))
    lake.publish(table, partition_by=("i",))
    expected = as_set(table.to_pylist())
    catalog: Any = stored_catalog(lake)
    found = rows(catalog, "SELECT * FROM tpch.orders", lake.folder)
    assert as_set(found) == expected
    values = [row["s"] for row in made if row["s"] is not None]
    if values:
        wanted = max(values)
        quoted = wanted.replace("\\", "\\\\").replace("'", "\\'")
        sql = f"SELECT count(*) AS n FROM tpch.orders WHERE s = '{quoted}'"
        assert rows(catalog, sql, lake.folder) == [{"n": values.count(wanted)}]


@pytest.mark.slow
@pytest.mark.spark
def test_spark_reads_the_rows_that_were_published(lake: Lake, spark: SparkSession) -> None:
    """Plain Spark over the rows, and Spark over the table's data files."""
    given = rows_of_every_type(single=math.nan, real=-0.0, text="ü", day=dt.date(1969, 12, 31))
    lake.publish([given, given.slice(0, 1)], partition_by=("whole",))
    files = lake.opened.inspect.files()["file_path"].to_pylist()
    name = f"given_{uuid.uuid4().hex[:8]}"
    spark.createDataFrame(pa.concat_tables([given, given.slice(0, 1)])).createOrReplaceTempView(
        name
    )
    columns = "CAST(tiny AS INT) tiny, CAST(small AS INT) small, whole, single, real, text, bytes, day, at, local, cents, wide, list, map, pair"  # fmt: skip
    expected = spark.sql(f"SELECT {columns} FROM {name}").collect()
    found = spark.read.parquet(*files).selectExpr(
        *[c.strip().split()[-1] for c in columns.split(",")]
    )
    assert sorted(map(repr, found.collect())) == sorted(map(repr, expected))


@pytest.mark.slow
@pytest.mark.spark
def test_tasks_of_spark_write_it_and_queries_read_it(
    lake: Lake,
    spark: SparkSession,
    spark_settings: EngineSettings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Written by a Spark job in many files, read by both engines, beside plain Spark."""
    monkeypatch.setattr(jobs, "DRIVER_BYTES", -1)
    count = 20_000
    given = pa.table(
        {
            "k": pa.array([k % 3 for k in range(count)], pa.int16()),
            "name": [None if k % 7 == 0 else f"n{k % 100}" for k in range(count)],
            "x": pa.array([math.nan if k % 11 == 0 else k / 4 for k in range(count)]),
        }
    )
    published = publish(
        head_output(lake.store, [given.slice(0, 12_000), given.slice(12_000)]),
        fields_of(given),
        PublishTarget(
            table=lake.table,
            format="iceberg",
            place=lake.place,
            partition_by=("k",),
            target_file_bytes=20_000,
        ),
        store=lake.store,
        settings=spark_settings,
        spark=lambda: spark,
        run_id="run1",
    )
    assert (published.num_rows, published.version.run_id) == (count, "run1")
    assert len(published.files) > 3
    name = f"given_{uuid.uuid4().hex[:8]}"
    spark.createDataFrame(given).createOrReplaceTempView(name)
    catalog: Any = stored_catalog(lake)
    for sql in (
        "SELECT k, name, count(*) AS n, max(x) AS x FROM {} WHERE k > 0 GROUP BY k, name",
        "SELECT count(*) AS n FROM {} WHERE x > 4000 OR name IS NULL",
        "SELECT k, to_xml(named_struct('n', name)) AS t FROM {} WHERE x < 10",  # Spark alone
    ):
        graph = plan_query(sql.format(lake.table), catalog, FORCED, name="q")
        context = new_context(graph, spark_settings, catalog, lambda: spark, store=lake.store)
        found, _ = run_stages(context)
        expected = spark.sql(sql.format(name)).toArrow().cast(found.schema)
        assert as_set(found.to_pylist()) == as_set(expected.to_pylist()), sql
