"""Tables that are published to Delta, read by name through the storage root, and by commands."""

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
from deltalake import write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stagecoach.commands.main import cli
from stagecoach.infra.catalog.catalog import FileCatalog
from stagecoach.infra.catalog.planned import PlannedTable, PublishedCatalog
from stagecoach.infra.formats.delta.opening import storage_options
from stagecoach.infra.formats.protocol import Access
from stagecoach.infra.formats.publishing import PublishError, PublishTarget
from stagecoach.infra.formats.registry import stored_format
from stagecoach.infra.publishing import jobs
from stagecoach.infra.publishing.publish import publish
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.planning import plan_query
from stagecoach.planner.types import BIGINT, STRING, TINYINT, Field
from tests.contexts import new_context, run_stages
from tests.infra.formats.delta.lake import DeltaLake, local_lake, stored_catalog
from tests.infra.formats.iceberg.answers import FORCED, as_set, files_read, rows, run
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
def lake(tmp_path: Path) -> DeltaLake:
    return local_lake(tmp_path)


def numbered(*keys: int) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int8()), "name": [f"row {k}" for k in keys]})


def test_a_table_is_read_by_its_name(lake: DeltaLake) -> None:
    catalog: Any = stored_catalog(lake)
    first = lake.publish(numbered(1, 2), partition_by=("k",), comments=(("k", "the key"),))
    lake.publish(numbered(3), mode="append")
    found, stages = run(catalog, "SELECT name FROM orders WHERE k = 3", lake.folder)
    assert (found, files_read(stages)) == ([{"name": "row 3"}], 1)
    info = catalog.table("orders")
    assert (info.format, info.notes["k"].comment) == ("delta", "the key")
    source = catalog.source("ORDERS")
    assert (source.format, source.location) == ("delta", lake.location)
    old = f"SELECT k FROM orders VERSION AS OF {first.version.number}"
    assert as_set(rows(catalog, old, lake.folder)) == as_set([{"k": 1}, {"k": 2}])


def test_what_is_planned_and_what_is_there_agree(lake: DeltaLake) -> None:
    columns = (Field("k", TINYINT), Field("name", STRING))
    planned = PlannedTable(
        name=lake.name, columns=columns, partition_by=("k",), estimated_rows=7, format="delta"
    )
    catalog = PublishedCatalog(FileCatalog([], origin="none"), lake.store, [planned])
    info = catalog.table(lake.name)
    assert info is not None
    assert (info.columns, info.stats and info.stats.num_rows) == (columns, 7)
    with pytest.raises(CatalogError, match="has no data yet"):
        catalog.state(lake.name)
    lake.publish(numbered(1), partition_by=("k",))
    assert catalog.state(lake.name).info.columns == columns
    other = PlannedTable(name=lake.name, columns=(Field("k", BIGINT),))  # as a run knows it
    catalog = PublishedCatalog(FileCatalog([], origin="none"), lake.store, [other])
    assert catalog.source(lake.name).format == "delta"
    with pytest.raises(CatalogError, match="column 'k' is tinyint there and bigint here"):
        catalog.state(lake.name)


def test_a_name_is_a_table_of_one_format(lake: DeltaLake) -> None:
    lake.publish(numbered(1))
    with pytest.raises(PublishError, match="is of the format 'delta', not 'published'; clear"):
        publish_rows(lake.store, numbered(1), lake.name)
    (lake.folder / "catalog.yaml").write_text("tables: {}\n")
    run_command(lake, "tables", "clear", lake.name, "--yes")
    assert lake.rows() == []
    publish_rows(lake.store, numbered(5), lake.name)
    catalog: Any = stored_catalog(lake)
    assert rows(catalog, "SELECT k FROM orders", lake.folder) == [{"k": 5}]


def run_command(lake: DeltaLake, *args: str) -> str:
    where = ("--catalog", str(lake.folder / "catalog.yaml"), "--storage", str(lake.folder / "root"))
    result = CliRunner().invoke(cli, [*args, *where])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_commands_show_it(lake: DeltaLake) -> None:
    (lake.folder / "catalog.yaml").write_text("tables: {}\n")
    lake.publish(numbered(1, 2), comments=(("k", "the key"),))
    last = lake.publish(numbered(3), mode="append").version
    write_deltalake(lake.opened, numbered(4, 5), mode="append")
    lake.opened.create_checkpoint()
    (shown,) = json.loads(run_command(lake, "tables", "--format", "json"))["tables"]
    assert (shown["name"], shown["location"], shown["rows"]) == (lake.name, lake.location, 5)
    expected = {"number": last.number + 1, "mode": "WRITE", "run_id": "", "rows": 5, "files": 3}
    assert expected.items() <= shown["version"].items()
    (Path(lake.location) / "_delta_log" / f"{0:020}.json").unlink()
    listed = json.loads(run_command(lake, "tables", "--versions", "--format", "json"))
    kept = [(v["mode"], v["rows"], v["files"]) for v in listed["versions"][lake.name]]
    assert kept == [("WRITE", 5, 3)]  # the versions before the checkpoint are gone


def test_versions_tell_what_they_had(lake: DeltaLake) -> None:
    lake.publish(numbered(1, 2))
    lake.publish(numbered(3), mode="append")
    lake.publish(numbered(7), mode="replace")
    table = stored_format("delta").stored(lake.store, lake.name, Access())
    found = [(v.mode, v.num_rows, v.num_files) for v in table.kept_versions()]
    modes = [("replace", 1, 1), ("append", 3, 2), ("replace", 2, 1), ("CREATE TABLE", 0, 0)]
    assert found == modes
    assert table.kept_versions()[0] == table.current()


@pytest.mark.s3
def test_a_lake_on_s3(s3_server: S3Server, tmp_path: Path) -> None:
    root = s3_server.new_root()
    store = open_store(f"{root}/root", s3_server.options)
    options = storage_options(s3_server.options)
    lake = DeltaLake(tmp_path, store, f"{root}/lake/orders", options)
    lake.publish(numbered(1, 2), partition_by=("k",))
    lake.publish(numbered(3), mode="append")
    assert lake.publish(numbered(3), mode="append").reused
    # deltalake's own engine cannot read from rclone.
    assert (lake.live_files(), len(lake.data_files())) == (lake.data_files(), 3)
    state = stored_catalog(lake).state(lake.name)
    assert {file.num_rows for file in state.snapshot.files} == {1}
    how: dict[str, Any] = {"storage_options": s3_server.options}
    catalog: Any = stored_catalog(lake)
    sql = "SELECT k FROM orders ORDER BY k"
    assert rows(catalog, sql, tmp_path, **how) == [{"k": 1}, {"k": 2}, {"k": 3}]
    lake.publish(numbered(9))
    assert rows(stored_catalog(lake), sql, tmp_path, **how) == [{"k": 9}]  # type: ignore[arg-type]
    assert lake.pending() == []


VALUES = {
    "i": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "x": (pa.float64(), st.floats() | st.sampled_from([math.nan, -0.0, 0.0, math.inf])),
    # A literal with a NUL in it is left to Spark.
    "s": (
        pa.string(),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40),
    ),
    "b": (pa.binary(), st.binary(max_size=20)),
    "d": (pa.date32(), st.dates()),
    "t": (
        pa.timestamp("us", tz="UTC"),
        st.datetimes(timezones=st.just(dt.UTC), min_value=dt.datetime(1, 1, 2)),
    ),
    "m": (pa.decimal128(15, 3), st.decimals(-(10**11), 10**11, places=3)),
}


@given(st.lists(st.fixed_dictionaries({n: st.none() | s for n, (_, s) in VALUES.items()})))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_rows_are_read_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, made: list[dict[str, Any]]
) -> None:
    lake = local_lake(tmp_path_factory.mktemp("lake"))
    table = pa.Table.from_pylist(made, pa.schema([(n, kind) for n, (kind, _) in VALUES.items()]))
    lake.publish(table, partition_by=("i",))
    catalog: Any = stored_catalog(lake)
    assert as_set(rows(catalog, "SELECT * FROM orders", lake.folder)) == as_set(table.to_pylist())
    for name in ("s", "m", "t"):  # bounds rule no row out
        values = [row[name] for row in made if row[name] is not None]
        if values:
            wanted = max(values)
            literal = str(wanted).replace("\\", "\\\\").replace("'", "\\'")
            kind = {"s": "STRING", "m": "DECIMAL(15,3)", "t": "TIMESTAMP"}[name]
            sql = f"SELECT count(*) AS n FROM orders WHERE {name} = CAST('{literal}' AS {kind})"
            assert rows(catalog, sql, lake.folder) == [{"n": values.count(wanted)}], sql


def test_texts_may_hold_what_unicode_calls_the_end_of_a_line(tmp_path: Path) -> None:
    """JSON does not escape these, and the log has the bounds of the files in JSON."""
    lake = local_lake(tmp_path)
    ends = ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\r\n"]
    lake.publish(pa.table({"i": range(len(ends)), "s": ends}), partition_by=("i",))
    catalog: Any = stored_catalog(lake)
    read = rows(catalog, "SELECT s FROM orders", lake.folder)
    assert {row["s"] for row in read} == set(ends)


@pytest.mark.slow
@pytest.mark.spark
def test_spark_reads_the_rows_that_were_published(lake: DeltaLake, spark: SparkSession) -> None:
    """Plain Spark over the rows, and Spark over the table's data files."""
    given = rows_of_every_type(single=math.nan, real=-0.0, text="ü", day=dt.date(1969, 12, 31))
    both = pa.concat_tables([given, given.slice(0, 1)])
    lake.publish([given, given.slice(0, 1)])
    name = f"given_{uuid.uuid4().hex[:8]}"
    spark.createDataFrame(both).createOrReplaceTempView(name)
    expected = spark.sql(f"SELECT * FROM {name}").collect()
    found = spark.read.parquet(*lake.opened.file_uris()).collect()
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


@pytest.mark.slow
@pytest.mark.spark
def test_tasks_of_spark_write_it_and_queries_read_it(
    lake: DeltaLake,
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
        PublishTarget(table=lake.name, format="delta", place=lake.place, partition_by=("k",)),
        store=lake.store,
        settings=spark_settings,
        spark=lambda: spark,
    )
    assert (published.num_rows, len(published.files) >= 3) == (count, True)
    name = f"given_{uuid.uuid4().hex[:8]}"
    spark.createDataFrame(given).createOrReplaceTempView(name)
    catalog: Any = stored_catalog(lake)
    for sql in (
        "SELECT k, count(*) AS n, count(name) AS named FROM {} WHERE x > 100 GROUP BY k",
        "SELECT to_json(named_struct('k', k, 'n', name)) AS t FROM {} WHERE x < 10",  # Spark alone
    ):
        graph = plan_query(sql.format(lake.name), catalog, FORCED, name="q")
        context = new_context(graph, spark_settings, catalog, lambda: spark, store=lake.store)
        found, _ = run_stages(context)
        expected = spark.sql(sql.format(name)).toArrow().cast(found.schema)
        assert as_set(found.to_pylist()) == as_set(expected.to_pylist()), sql
