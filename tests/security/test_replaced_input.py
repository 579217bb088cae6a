"""A table file that another one takes the place of, with the same size, time and footer.

`cp -p` of such a file over an input was not noticed: one run read two versions of it, and later
runs took over what the earlier ones had computed.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.errors import ConfigError, InputLostError
from stagecoach.infra.formats.parquet_footers import FooterCache, read_footers
from stagecoach.infra.formats.snapshot import Snapshot, take_snapshot
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.input_files import check_file, opened_unchanged
from stagecoach.infra.reading.inputs import LeafColumn, ParquetInput, ScanInput
from stagecoach.infra.reading.parquet import read_parquet_batches
from stagecoach.infra.runtime.stages.run_stage import run_stage
from stagecoach.infra.shuffle.map_file import OutputPartitioning
from stagecoach.infra.shuffle.writer import ShuffleWriter
from stagecoach.infra.storage.file_identity import difference, local_version
from stagecoach.infra.storage.object_store import ObjectChangedError, StorageOptions
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.storage.table_files import list_files, read_tail
from stagecoach.infra.worker.spec import TaskSettings, TaskSpec
from stagecoach.infra.worker.task import run_task
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.planning import plan_query
from stagecoach.planner.types import BIGINT
from tests.contexts import new_context, run_stages
from tests.infra.spark_runs import run_tasks_here
from tests.moto_server import BUCKET, moto_options
from tests.s3_server import S3Server, s3_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["moto_options", "s3_server"]

ROWS = 300_000  # several batches of a task's result, several reads of a file
LONG_AGO = 1_600_000_000
FORCED = PlannerOptions(
    force_distribution=True, num_partitions=2, inline_bytes=0, broadcast_bytes=0
)
# The two scans have different columns, so that they are two stages.
DIFFERENCE = (
    "SELECT sum(a.x) - sum(b.x + 0 * b.z) AS d FROM t AS a JOIN t AS b ON a.k = b.k WHERE b.z >= 0"
)

Replace = Callable[[Path, Path], None]


def write(path: Path, first: int) -> None:
    """A file of which nothing but the values tells what `first` was."""
    table = pa.table(
        {
            "k": np.arange(ROWS),
            "x": np.arange(first, first + ROWS),
            "z": np.zeros(ROWS, dtype=np.int64),
        }
    )
    path.parent.mkdir(exist_ok=True, parents=True)
    pq.write_table(table, path, compression="none", use_dictionary=False, write_statistics=False)
    os.utime(path, (LONG_AGO, LONG_AGO))


def copy_over(source: Path, target: Path) -> None:
    """What `cp -p` does: the same inode has other bytes, and the old modification time."""
    shutil.copyfile(source, target)
    shutil.copystat(source, target)


def rename_over(source: Path, target: Path) -> None:
    """What `mv` and `rsync -t` do: another inode takes the name."""
    beside = target.with_name(".beside")
    shutil.copy2(source, beside)
    os.replace(beside, target)


@pytest.fixture(params=[copy_over, rename_over])
def replace(request: pytest.FixtureRequest) -> Replace:
    found: Replace = request.param
    return found


@dataclasses.dataclass(frozen=True)
class Files:
    """The file of a table, and one that may take its place."""

    table: Path
    other: Path
    catalog_file: Path

    def catalog(self, options: StorageOptions | None = None) -> FileCatalog:
        return load_catalog(self.catalog_file, options)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    found = Files(tmp_path / "t" / "a.parquet", tmp_path / "other", tmp_path / "catalog.yaml")
    write(found.table, 0)
    write(found.other, 7)
    found.catalog_file.write_text("tables: {t: {location: t}}")
    return found


def rows_of(file: DataFile, **changes: Any) -> DataFile:
    whole = DataFile(file.uri, file.num_rows, num_bytes=file.num_bytes, version=file.version)
    return dataclasses.replace(whole, **changes)


def test_nothing_but_inode_and_change_time_tells_them_apart(files: Files, replace: Replace):
    before = take_snapshot(files.catalog(), ["t"]).table("t").files[0]
    status = os.stat(files.table)
    replace(files.other, files.table)
    after = take_snapshot(files.catalog(), ["t"]).table("t").files[0]
    now = os.stat(files.table)
    assert (status.st_size, status.st_mtime_ns) == (now.st_size, now.st_mtime_ns)
    assert before.footer_checksum == after.footer_checksum
    assert before.version != after.version
    with pytest.raises(InputLostError, match=r"a\.parquet .* it has changed since \(change time"):
        check_file(rows_of(before))
    check_file(rows_of(after))


def test_a_file_that_is_left_alone_is_the_same(files: Files):
    first, second = (take_snapshot(files.catalog(), ["t"]) for _ in range(2))
    assert first == second
    files.table.read_bytes()
    assert take_snapshot(files.catalog(), ["t"]) == first


def test_writes_within_a_tick_of_the_clock_are_told_apart(tmp_path: Path):
    """A listing waits until the clock has moved on, so what is written after it has another time."""
    path = tmp_path / "t" / "a.parquet"
    path.parent.mkdir()
    path.write_bytes(b"0000")
    for i in range(1, 50):
        os.utime(path, (LONG_AGO, LONG_AGO))
        (listed,) = list_files(str(path.parent))
        with open(path, "r+b") as file:
            file.write(b"%04d" % i)
        os.utime(path, (LONG_AGO, LONG_AGO))
        (again,) = list_files(str(path.parent))
        assert listed != again, i


def test_kept_footers_are_of_the_file_that_is_there(files: Files, replace: Replace):
    cache = FooterCache()
    (entry,) = list_files(str(files.table.parent))
    read_footers([entry], cache=cache)
    assert cache.get(entry) is not None
    replace(files.other, files.table)
    (entry,) = list_files(str(files.table.parent))
    assert cache.get(entry) is None


def test_portable_identity_has_times_and_sizes_only(files: Files):
    portable = StorageOptions(file_identity="portable")
    file = take_snapshot(files.catalog(portable), ["t"]).table("t").files[0]
    assert file.version == str(LONG_AGO * 10**9)
    rename_over(files.table, files.table)  # another inode, as another host may see it
    check_file(rows_of(file))
    assert take_snapshot(files.catalog(portable), ["t"]).table("t").files[0] == file
    os.utime(files.table)
    with pytest.raises(InputLostError, match="modification time"):
        check_file(rows_of(file))


def test_the_setting_reaches_the_catalog(monkeypatch: pytest.MonkeyPatch):
    from stagecoach.infra.config.settings import load_settings

    assert load_settings().storage_options.file_identity == "strict"
    monkeypatch.setenv("STAGECOACH_STORAGE_OPTIONS", '{"file_identity": "portable"}')
    assert load_settings().storage_options.file_identity == "portable"
    monkeypatch.setenv("STAGECOACH_STORAGE_OPTIONS", '{"file_identity": "lax"}')
    with pytest.raises(ConfigError, match=r"file_identity.*strict"):
        load_settings()


@pytest.mark.parametrize(
    ("expected", "found", "changed"),
    [
        ("5:6:7", "5:6:7", None),
        ("5:6:7", "5:8:9", "change time, inode"),
        ("5", "5:8:9", None),  # a portable one, or of a snapshot of an earlier version
        ("5", "6:8:9", "modification time"),
        ("abc;1700000000", "abc;1700000001", None),  # one rounds, the other cuts
        ("abc;1700000000", "abc;1700000002", "time of the last write"),
        ("abc;1700000000", "abd;1700000000", "ETag"),
        ("123;1700000000", "124;1700000000", "ETag"),
        ("abc", "abc;1700000000", None),
        ("abc", "abd;1700000000", "ETag"),
    ],
)
def test_differences(expected: str, found: str, changed: str | None):
    assert difference(expected, found) == changed


def test_a_version_tells_inode_and_change_time(files: Files):
    status = os.stat(files.table)
    assert local_version(status) == f"{LONG_AGO * 10**9}:{status.st_ctime_ns}:{status.st_ino}"


def union_of_scans(files: Files, tmp_path: Path) -> TaskSpec:
    """A task that scans the table twice, one scan after the other."""
    identity = take_snapshot(files.catalog(), ["t"]).table("t").files[0]
    columns = (LeafColumn("c0", "x", BIGINT),)
    scan = ScanInput(columns=columns, files=(rows_of(identity),))
    settings = TaskSettings(
        store=open_store(tmp_path / "store").to_dict(),
        time_zone="UTC",
        memory_bytes=256 << 20,
        writer_memory_bytes=64 << 20,
        max_spill_bytes=0,
        spill_dir=str(tmp_path / "spill"),
        codec="none",
        directories=(str(files.table.parent),),
    )
    return TaskSpec(
        query="q",
        stage_id=0,
        fingerprint="a" * 64,
        task_index=0,
        sql="SELECT c0 FROM in_0 UNION ALL SELECT -c0 FROM in_1",
        inputs=(scan, scan),
        types=(BIGINT,),
        output=OutputPartitioning(),
        settings=settings,
    )


def map_files(tmp_path: Path) -> list[Path]:
    return [p for p in (tmp_path / "store").rglob("*") if p.is_file()]


def test_between_two_scans_of_a_task(
    files: Files, replace: Replace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    spec = union_of_scans(files, tmp_path)
    done = run_task(spec)
    assert done.failure is None
    written = map_files(tmp_path)
    real = ShuffleWriter.write

    def write_then_replace(self: ShuffleWriter, batch: pa.RecordBatch) -> None:
        real(self, batch)
        if files.other.exists():
            replace(files.other, files.table)
            files.other.unlink()

    monkeypatch.setattr(ShuffleWriter, "write", write_then_replace)
    report = run_task(spec)
    assert not files.other.exists()
    assert report.failure is not None
    assert report.failure.kind == "input_lost"
    assert "it has changed since" in str(report.failure.to_error("q/stage_0", 0))
    assert report.file is None
    assert map_files(tmp_path) == written


def test_a_file_that_looks_damaged_because_it_changes(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """What DuckDB says of it would be misleading, and Spark would only be asked in vain."""
    spec = union_of_scans(files, tmp_path)
    real = ShuffleWriter.write

    def write_then_truncate(self: ShuffleWriter, batch: pa.RecordBatch) -> None:
        real(self, batch)
        os.truncate(files.table, 1000)

    monkeypatch.setattr(ShuffleWriter, "write", write_then_truncate)
    report = run_task(spec)
    assert report.failure is not None
    assert report.failure.kind == "input_lost"


class Project:
    """A storage root to run queries over the table with."""

    def __init__(self, files: Files, settings: EngineSettings, spark: SparkSession) -> None:
        self._files = files
        root = str(files.catalog_file.parent / "store")
        self._settings = dataclasses.replace(settings, storage_root=root, min_task_bytes=0)
        self._spark = spark
        self.graph = plan_query(DIFFERENCE, files.catalog(), FORCED, name="q")

    def context(self) -> Any:
        catalog = self._files.catalog()
        return new_context(self.graph, self._settings, catalog, lambda: self._spark)

    def committed(self) -> list[str]:
        store = self._settings.open_store()
        return [key for key in store.list("") if key.endswith("manifest.json")]


@pytest.fixture
def project(
    files: Files,
    spark_settings: EngineSettings,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Project]:
    run_tasks_here(monkeypatch)  # in this process, whose databases serve all runs
    yield Project(files, spark_settings, spark)


@pytest.mark.spark
def test_between_two_stages(project: Project, files: Files, replace: Replace):
    scans = [s.stage_id for s in project.graph.stages if s.tables]
    assert len(scans) == 2
    context = project.context()
    run_stage(scans[0], context)
    committed = project.committed()
    replace(files.other, files.table)
    with pytest.raises(
        InputLostError, match=r"a\.parquet of table 't' of the run's snapshot.*start a new run"
    ):
        run_stage(scans[1], context)
    assert project.committed() == committed
    table, _ = run_stages(project.context())
    assert table.to_pylist() == [{"d": 0}]


@pytest.mark.spark
def test_between_two_runs(project: Project, files: Files, replace: Replace):
    first, _ = run_stages(project.context())
    assert first.to_pylist() == [{"d": 0}]
    again, results = run_stages(project.context())
    assert again.to_pylist() == [{"d": 0}]
    assert all(result.reused for result in results)
    replace(files.other, files.table)
    project.graph = plan_query("SELECT sum(x) AS s FROM t", files.catalog(), FORCED, name="s")
    total = sum(range(7, 7 + ROWS))
    table, results = run_stages(project.context())
    assert table.to_pylist() == [{"s": total}]
    assert not any(result.reused for result in results)
    write(files.other, 11)
    replace(files.other, files.table)
    table, results = run_stages(project.context())
    assert table.to_pylist() == [{"s": total + 4 * ROWS}]
    assert not any(result.reused for result in results)


@pytest.mark.spark
def test_while_spark_reads_it(
    project: Project, files: Files, replace: Replace, monkeypatch: pytest.MonkeyPatch
):
    from stagecoach.infra.runtime.stages import attempt as execution

    graph = plan_query(
        "SELECT sum(x) AS s FROM t",
        files.catalog(),
        dataclasses.replace(FORCED, engine="spark"),
        name="s",
    )
    project.graph = graph
    real = execution.run_sql

    def replace_then_run(*args: Any, **more: Any) -> Any:
        replace(files.other, files.table)
        return real(*args, **more)

    monkeypatch.setattr(execution, "run_sql", replace_then_run)
    context = project.context()
    with pytest.raises(InputLostError, match="it has changed since"):
        run_stages(context)
    assert not project.committed()


# ---------------------------------------------------------------- S3


@dataclasses.dataclass(frozen=True)
class Bucket:
    """A table on S3, whose only object is replaced by one of the same size."""

    root: str
    options: StorageOptions
    catalog_file: Path
    sources: tuple[bytes, bytes]

    def put(self, which: int) -> None:
        open_store(self.root, self.options).write_bytes("t/a.parquet", self.sources[which])

    def snapshot(self) -> Snapshot:
        return take_snapshot(load_catalog(self.catalog_file, self.options), ["t"])

    def leaf(self, file: DataFile) -> ParquetInput:
        columns = (LeafColumn("c0", "x", BIGINT),)
        return ParquetInput(columns, (rows_of(file),), self.options.to_dict(), memory_bytes=1 << 20)


@pytest.fixture(params=["honours If-Match", "ignores If-Match"])
def bucket(request: pytest.FixtureRequest, files: Files, tmp_path: Path) -> Bucket:
    if request.param == "honours If-Match":
        options: StorageOptions = request.getfixturevalue("moto_options")
        root = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    else:
        server: S3Server = request.getfixturevalue("s3_server")
        options, root = server.options, server.new_root()
    catalog_file = tmp_path / "s3.yaml"
    catalog_file.write_text(f"tables: {{t: {{location: '{root}/t'}}}}")
    sources = files.table.read_bytes(), files.other.read_bytes()
    assert len(sources[0]) == len(sources[1])
    found = Bucket(root, options, catalog_file, sources)
    found.put(0)
    return found


@pytest.mark.s3
def test_an_object_of_the_same_size(bucket: Bucket):
    before = bucket.snapshot().table("t").files[0]
    assert bucket.snapshot().table("t").files[0] == before
    check_file(rows_of(before), bucket.options)
    whole = pa.Table.from_batches(read_parquet_batches(bucket.leaf(before)))
    assert whole.column(0).to_pylist() == list(range(ROWS))
    bucket.put(1)
    after = bucket.snapshot().table("t").files[0]
    assert before.footer_checksum == after.footer_checksum
    assert before.version != after.version
    with pytest.raises(InputLostError, match=r"it has changed since \(ETag\)"):
        check_file(rows_of(before), bucket.options)
    with pytest.raises(InputLostError, match=r"it has changed since \(ETag\)"):
        list(read_parquet_batches(bucket.leaf(before)))


@pytest.mark.s3
def test_an_object_that_is_replaced_while_it_is_read(bucket: Bucket):
    file = bucket.snapshot().table("t").files[0]
    with (
        pytest.raises(InputLostError, match=r"it has changed since \(ETag\)"),
        opened_unchanged(rows_of(file), bucket.options) as source,
    ):
        assert len(source.read_at(1000, 0)) == 1000
        bucket.put(1)
        source.read_at(1000, 1000)


@pytest.mark.s3
def test_a_scan_gives_rows_of_one_object_or_fails(bucket: Bucket):
    file = bucket.snapshot().table("t").files[0]
    batches = read_parquet_batches(bucket.leaf(file))
    first = next(batches)
    assert first.column(0).to_pylist() == list(range(first.num_rows))
    bucket.put(1)
    seen = first.num_rows
    with pytest.raises(InputLostError, match=r"it has changed since \(ETag\)"):
        for batch in batches:
            assert batch.column(0)[0].as_py() == seen
            seen += batch.num_rows


@pytest.mark.s3
def test_a_footer_is_of_the_object_that_was_listed(bucket: Bucket):
    (entry,) = list_files(f"{bucket.root}/t", bucket.options)
    assert read_tail(entry, 100, bucket.options)[1] == bucket.sources[0][-100:]
    bucket.put(1)
    with pytest.raises(ObjectChangedError, match="was replaced by another object"):
        read_tail(entry, 100, bucket.options)
