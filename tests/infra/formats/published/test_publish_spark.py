"""Published tables and Spark: written by its tasks, read by its reader, and by runs of queries."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.catalog.catalog import FileCatalog
from stagecoach.infra.catalog.planned import PlannedTable, PublishedCatalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.errors import ShuffleReadError
from stagecoach.infra.formats.published.log import read_current
from stagecoach.infra.publishing import jobs, merging
from stagecoach.infra.publishing import publish as module
from stagecoach.infra.publishing.publish import (
    Published,
    PublishError,
    PublishTarget,
    publish,
)
from stagecoach.infra.runtime.stages.run_stage import read_result, run_stage
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.planning import plan_query
from stagecoach.planner.types import BIGINT, DATE, STRING, Field
from tests.contexts import new_context
from tests.infra.formats.published.outputs import (
    fields_of,
    folder_of,
    head_output,
    paths_of,
    publish_rows,
    read_rows,
    rows_of_every_type,
)
from tests.infra.publishing.merge_model import Model, shown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DAY = datetime.date(2024, 1, 31)
COLUMNS = (Field("day", DATE), Field("n", BIGINT), Field("k", STRING))


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path))


@pytest.fixture
def on_spark(
    store: LocalStore,
    spark: SparkSession,
    spark_settings: EngineSettings,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Published]:
    """Publishes by a Spark job, however small the output is."""
    monkeypatch.setattr(jobs, "DRIVER_BYTES", -1)

    def run(manifest: Manifest, columns: tuple[Field, ...], **target: Any) -> Published:
        return publish(
            manifest,
            columns,
            PublishTarget(**{"table": "t", **target}),
            store=store,
            settings=spark_settings,
            spark=lambda: spark,
            run_id="run1",
        )

    return run


def many_rows(count: int) -> pa.Table:
    return pa.table(
        {
            "day": pa.array([DAY + datetime.timedelta(days=i % 3) for i in range(count)]),
            "n": pa.array([(i * 7919) % 100_003 for i in range(count)], pa.int64()),
            "k": pa.array([f"ü/{i % 2}" if i % 5 else None for i in range(count)]),
        }
    )


def test_tasks_write_files_in_the_order_of_the_rows(
    store: LocalStore, on_spark: Callable[..., Published]
) -> None:
    rows = many_rows(60_000)
    parts = [rows.slice(start, 10_000) for start in range(0, 60_000, 10_000)]
    manifest = head_output(store, parts)
    target_bytes = manifest.num_bytes // 3 + 1
    published = on_spark(manifest, COLUMNS, target_file_bytes=target_bytes)
    assert len(published.files) == 3
    found = [row["n"] for row in read_rows(store, published.version)]
    assert found == rows["n"].to_pylist()
    assert published.num_rows == 60_000
    assert on_spark(manifest, COLUMNS, target_file_bytes=target_bytes).reused
    empty = on_spark(head_output(store, [rows.slice(0, 0)] * 3), COLUMNS)
    assert [file.num_rows for file in empty.version.files] == [0]


def test_errors_keep_their_class_on_the_way_through_spark(
    store: LocalStore, on_spark: Callable[..., Published]
) -> None:
    manifest = head_output(store, [many_rows(100)])
    windows = (module.PartitionWindow("d", DAY, DAY + datetime.timedelta(days=1)),)
    with pytest.raises(PublishError, match=r"a row has '2024-02-01' in the partition column 'day'"):
        on_spark(manifest, COLUMNS, partition_keys=("d",), partition_column="day", windows=windows)
    path = Path(store.uri(layout.shuffle_file(manifest.fingerprint, manifest.files[0].name)))
    path.unlink()
    with pytest.raises(ShuffleReadError, match=r"lost output of q/stage_0"):
        on_spark(manifest, COLUMNS)


def test_tasks_merge_rows(
    store: LocalStore, on_spark: Callable[..., Published], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several tasks look at shares of the keys, and one at each file of the table."""
    monkeypatch.setattr(merging, "KEY_TASK_BYTES", 1)
    monkeypatch.setattr(merging, "TASK_BYTES", 1)
    rows = many_rows(20_000)
    parts = [rows.slice(start, 5_000) for start in range(0, 20_000, 5_000)]
    on_spark(head_output(store, parts), COLUMNS, target_file_bytes=1)
    late = many_rows(30_000).slice(15_000).set_column(2, "k", pa.array(["late"] * 15_000))
    late = late.append_column("gone", pa.array([i % 3 == 0 for i in range(15_000)]))
    changes = [late.slice(start, 3_000) for start in range(0, 15_000, 3_000)]
    merge: dict[str, Any] = {"mode": "merge", "key": ("n", "day"), "delete_column": "gone"}
    columns = fields_of(late)
    published = on_spark(head_output(store, changes), columns, **merge)
    model = Model(("n", "day"), rows.to_pylist())
    model.merge(late.to_pylist(), "gone")
    assert shown(read_rows(store, published.version)) == shown(model.rows)
    assert published.num_rows == 10_000
    # Two rows of one key, in map files that different tasks write.
    again = [late.slice(0, 10).set_column(2, "k", pa.array([str(i)] * 10)) for i in range(2)]
    with pytest.raises(PublishError, match=r"have the key n = \d+, day = 2024-02-0\d, and mode"):
        on_spark(head_output(store, again), columns, **merge)
    assert read_current(store, "t") == published.version


def test_every_reader_reads_the_same_of_every_type(store: LocalStore, spark: SparkSession) -> None:
    table = rows_of_every_type(single=1.5, real=-0.1, text="ü", day=datetime.date(1600, 2, 29))
    version = publish_rows(store, table).version
    (path,) = paths_of(store, version)
    assert pq.read_table(path).equals(table)

    frame = spark.read.parquet(path)
    types = [(name, kind) for name, kind in frame.dtypes]
    assert types == [(f.name, str(f.dtype)) for f in fields_of(table)]
    by_spark = frame.toArrow()
    for name in table.column_names:
        if name != "at":  # Arrow's zone is that of the session; the instant counts
            assert by_spark[name].to_pylist() == table[name].to_pylist(), name
    instants = by_spark["at"].cast(pa.timestamp("us", tz="UTC"))
    assert instants.to_pylist() == table["at"].to_pylist()

    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    by_duckdb = connection.sql(f"SELECT * FROM '{path}'").to_arrow_table()
    for name in table.column_names:
        expected = table[name].to_pylist()
        found = by_duckdb[name].cast(table.schema.field(name).type).to_pylist()
        assert found == expected, name


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_queries_read_a_table_of_several_versions_and_folders(
    store: LocalStore, spark: SparkSession, spark_settings: EngineSettings, engine: str
) -> None:
    rows = many_rows(1000)
    for start, mode in ((0, "replace"), (500, "append")):
        publish_rows(store, rows.slice(start, 500), mode=mode, partition_by=("day", "k"))
    planned = PlannedTable(name="t", columns=COLUMNS, partition_by=("day", "k"))
    tables = PublishedCatalog(FileCatalog([], origin="none"), store, [planned])
    sql = "SELECT day, k, sum(n) AS s, count(*) AS c FROM t WHERE day > DATE'2024-01-31' GROUP BY day, k ORDER BY day, k"
    graph = plan_query(sql, tables, PlannerOptions(engine=engine), name="q")
    assert {stage.engine for stage in graph.stages} == {engine}
    context = new_context(graph, spark_settings, tables, lambda: spark, store=store)
    for stage in graph.stages:
        result = run_stage(stage.stage_id, context)
        assert result.engine == engine, result.fallback_reason
    expected: dict[tuple[Any, Any], list[int]] = {}
    for day, n, k in zip(*(rows[c].to_pylist() for c in ("day", "n", "k")), strict=True):
        if day > DAY:
            expected.setdefault((day, k), []).append(n)
    ordered = sorted(expected.items(), key=lambda item: (item[0][0], item[0][1] or ""))
    found = read_result(context).to_pylist()
    assert found == [{"day": day, "k": k, "s": sum(v), "c": len(v)} for (day, k), v in ordered]
    # Any other Spark reads it as the documentation says.
    base = str(folder_of(store) / "files")
    snapshot = tables.state("t").snapshot
    paths = [file.uri for file in snapshot.files]
    assert spark.read.option("basePath", base).parquet(*paths).count() == 1000
