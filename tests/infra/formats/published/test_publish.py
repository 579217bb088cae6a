"""Publishing small results: what is written, what is refused, what is done once only."""

from __future__ import annotations

import datetime
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.errors import ShuffleReadError, StorageError
from stagecoach.infra.formats import result_files as parquet_files
from stagecoach.infra.formats.published import paths
from stagecoach.infra.formats.published.log import read_current, read_version, version_numbers
from stagecoach.infra.formats.published.version import TableVersion
from stagecoach.infra.formats.version_log import VersionLog
from stagecoach.infra.publishing.publish import (
    PartitionWindow,
    PublishError,
    PublishTarget,
    publish,
)
from stagecoach.infra.reading.footers import read_footer
from stagecoach.infra.shuffle.commit import is_lost
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.infra.storage.table_files import stat_file
from stagecoach.infra.upkeep.gc import collect_garbage
from stagecoach.planner.types import (
    BIGINT,
    DAY_TIME_INTERVAL,
    DOUBLE,
    INT,
    NULL,
    TIMESTAMP,
    Field,
    array_of,
    struct_of,
)
from tests.infra.formats.published.outputs import (
    SETTINGS,
    fields_of,
    folder_of,
    head_output,
    no_spark,
    objects_in,
    paths_of,
    publish_rows,
    read_rows,
    rows_of_every_type,
)

DAY = datetime.date(2024, 1, 31)
DAYS = [DAY + datetime.timedelta(days=n) for n in range(3)]


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path))


def numbers(*values: int) -> pa.Table:
    return pa.table({"n": pa.array(values, pa.int64())})


def daily(*rows: tuple[datetime.date | None, int]) -> pa.Table:
    days, values = zip(*rows, strict=True) if rows else ((), ())
    return pa.table({"day": pa.array(days, pa.date32()), "n": pa.array(values, pa.int64())})


def day_windows(*days: datetime.date) -> dict[str, Any]:
    """The target of a run for these days."""
    one = datetime.timedelta(days=1)
    return {
        "mode": "replace_partition",
        "partition_keys": tuple(str(d) for d in days),
        "partition_column": "day",
        "windows": tuple(PartitionWindow(str(d), d, d + one) for d in days),
    }


def current(store: LocalStore, table: str = "t") -> TableVersion:
    version = read_current(store, table)
    assert version is not None
    return version


def test_a_small_result_is_one_file_in_its_order(store: LocalStore) -> None:
    parts = [numbers(3, 1), numbers(), numbers(2, 9, 4)]
    published = publish_rows(store, parts)
    assert not published.reused
    assert (published.num_rows, len(published.files)) == (5, 1)
    assert published.partition_rows == {None: 5}
    assert current(store) == published.version
    assert [row["n"] for row in read_rows(store, published.version)] == [3, 1, 2, 9, 4]
    (file,) = published.files
    found = read_footer(stat_file(paths_of(store, published.version)[0]))
    assert found.checksum == file.footer_checksum
    assert (found.entry.num_bytes, found.row_groups) == (file.num_bytes, file.row_groups)
    metadata = pq.read_metadata(paths_of(store, published.version)[0])
    assert metadata.row_group(0).column(0).compression == "ZSTD"
    assert metadata.row_group(0).column(0).statistics.max == 9


def test_an_empty_result_is_readable(store: LocalStore) -> None:
    version = publish_rows(store, [numbers(), numbers()]).version
    (path,) = paths_of(store, version)
    assert pq.read_table(path).schema.names == ["n"]
    assert duckdb.sql(f"SELECT n FROM '{path}'").fetchall() == []
    assert version.num_rows == 0
    assert version.has_data


def test_files_and_row_groups_are_bounded(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_files, "ROW_GROUP_ROWS", 20_000)
    rows = pa.table({"n": pa.array([i * 7919 % 100_003 for i in range(100_000)], pa.int64())})
    parts = [rows.slice(start, 5_000) for start in range(0, 100_000, 5_000)]
    version = publish_rows(store, parts, target_file_bytes=100_000).version
    assert len(version.files) > 2
    assert all(max(file.row_groups) <= 30_000 for file in version.files)
    assert all(file.num_bytes < 250_000 for file in version.files)
    assert [row["n"] for row in read_rows(store, version)] == rows["n"].to_pylist()
    in_order_of_names = sorted(paths_of(store, version))
    assert in_order_of_names == paths_of(store, version)


def test_the_same_result_is_published_once(store: LocalStore) -> None:
    first = publish_rows(store, numbers(1, 2))
    before = objects_in(store)
    again = publish_rows(store, numbers(1, 2))
    assert again.reused
    assert again.version == first.version
    assert (again.num_rows, again.files) == (2, first.version.files)
    assert objects_in(store) == before
    assert publish_rows(store, numbers(3)).version.number == 2
    # What was published before the last version is not what the table holds now.
    assert publish_rows(store, numbers(1, 2)).version.number == 3


def test_other_names_for_the_same_rows_are_another_result(store: LocalStore) -> None:
    publish_rows(store, numbers(1))
    renamed = publish_rows(store, numbers(1), columns=[Field("m", BIGINT)])
    assert renamed.version.number == 2
    assert read_rows(store, renamed.version) == [{"m": 1}]


def test_append_adds_and_the_same_is_not_added_twice(store: LocalStore) -> None:
    publish_rows(store, numbers(1), mode="append")
    second = publish_rows(store, numbers(2), mode="append")
    assert [row["n"] for row in read_rows(store, second.version)] == [1, 2]
    assert [row["n"] for row in read_rows(store, read_version(store, "t", 1))] == [1]
    assert publish_rows(store, numbers(1), mode="append").reused
    key = publish_rows(store, numbers(1), mode="append", partition_keys=("b",))
    assert not key.reused
    assert sorted(row["n"] for row in read_rows(store, key.version)) == [1, 1, 2]


def test_replace_partition_leaves_the_others(store: LocalStore) -> None:
    for day, value in zip(DAYS, (1, 2, 3), strict=True):
        publish_rows(store, daily((day, value)), **day_windows(day))
    changed = publish_rows(store, daily((DAYS[1], 20), (DAYS[1], 21)), **day_windows(DAYS[1]))
    assert sorted(row["n"] for row in read_rows(store, changed.version)) == [1, 3, 20, 21]
    assert changed.version.partition_keys == tuple(map(str, DAYS))
    assert {file.version for file in changed.version.files} == {1, 3, 4}
    assert publish_rows(store, daily((DAYS[0], 1)), **day_windows(DAYS[0])).reused


def test_a_range_is_split_by_the_column(store: LocalStore) -> None:
    publish_rows(store, daily((DAYS[1], -1)), **day_windows(DAYS[1]))
    rows = [daily((DAYS[2], 1), (DAYS[0], 2), (DAYS[2], 3)), daily((DAYS[0], 4))]
    published = publish_rows(store, rows, **day_windows(*DAYS))
    assert published.partition_rows == {"2024-01-31": 2, "2024-02-01": 0, "2024-02-02": 2}
    by_key = {file.partition_key: file for file in published.version.files}
    assert set(by_key) == {"2024-01-31", "2024-02-02"}
    path = store.uri(paths.table_file("t", by_key["2024-02-02"].path))
    assert pq.read_table(path)["n"].to_pylist() == [1, 3]
    # The day without rows counts as published: so it is not computed again.
    assert published.version.partition_keys == tuple(map(str, DAYS))
    assert publish_rows(store, rows, **day_windows(*DAYS)).reused


def test_hours_of_a_zone_as_instants(store: LocalStore) -> None:
    zone = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
    start = datetime.datetime(2024, 1, 31, 23, tzinfo=zone)
    hours = [start + datetime.timedelta(hours=n) for n in range(3)]
    moments = [hours[1], hours[0], hours[1] + datetime.timedelta(minutes=59, microseconds=59)]
    rows = pa.table({"at": pa.array(moments, pa.timestamp("us", tz="UTC"))})
    target = {
        "mode": "replace_partition",
        "partition_keys": ("h1", "h0"),
        "partition_column": "at",
        "windows": (
            PartitionWindow("h1", hours[1], hours[2]),
            PartitionWindow("h0", hours[0], hours[1]),
        ),
    }
    assert publish_rows(store, rows, **target).partition_rows == {"h0": 1, "h1": 2}


def test_static_keys_are_the_text_of_the_column(store: LocalStore) -> None:
    rows = pa.table({"region": ["eu", "us", "eu"], "n": [1, 2, 3]})
    target = {"mode": "replace_partition", "partition_column": "region"}
    published = publish_rows(store, rows, partition_keys=("us", "eu"), **target)
    assert published.partition_rows == {"us": 1, "eu": 2}
    with pytest.raises(PublishError, match=r"a row has 'us' in the partition column 'region'"):
        publish_rows(store, rows, partition_keys=("eu",), name="other", **target)


@pytest.mark.parametrize("value", [DAYS[2], None])
def test_rows_of_other_partitions_are_refused(
    store: LocalStore, value: datetime.date | None
) -> None:
    rows = daily((DAYS[0], 1), (value, 2))
    with pytest.raises(PublishError, match=r"outside of the partitions .*:partition_start"):
        publish_rows(store, rows, **day_windows(*DAYS[:2]))
    assert read_current(store, "t") is None


def test_partition_folders_as_every_reader_knows_them(store: LocalStore, tmp_path: Path) -> None:
    texts = ["a/b", "50% = half", "ü ", None, "a/b", "plain", "x:y?z*[]'\"{}^\\"]
    rows = pa.table(
        {
            "k": pa.array(texts, pa.string()),
            "n": pa.array(range(7), pa.int64()),
            "day": pa.array([DAY] * 7, pa.date32()),
        }
    )
    version = publish_rows(store, rows, partition_by=("day", "k")).version
    assert [f.name for f in version.columns] == ["n", "day", "k"]
    assert pq.ParquetFile(paths_of(store, version)[0]).schema_arrow.names == ["n"]
    assert {file.partition for file in version.files} == {(str(DAY), text) for text in texts}
    paths = paths_of(store, version)
    expected = sorted(zip(texts, range(7), strict=True), key=lambda r: r[1])

    sql = "SELECT k, n FROM read_parquet($paths, hive_partitioning = true, hive_types_autocast = false) ORDER BY n"
    assert duckdb.execute(sql, {"paths": paths}).fetchall() == expected

    hive = ds.HivePartitioning(pa.schema([("day", pa.string()), ("k", pa.string())]))
    base = str(folder_of(store) / "files")
    found = ds.dataset(paths, format="parquet", partitioning=hive, partition_base_dir=base)
    read = found.to_table().sort_by("n")
    assert list(zip(read["k"].to_pylist(), read["n"].to_pylist(), strict=True)) == expected


def test_an_empty_partitioned_table_has_its_folder(store: LocalStore) -> None:
    rows = pa.table({"k": pa.array([], pa.string()), "n": pa.array([], pa.int64())})
    version = publish_rows(store, rows, partition_by=("k",)).version
    assert [file.partition for file in version.files] == [(None,)]
    assert "/k=__HIVE_DEFAULT_PARTITION__/" in version.files[0].path


@pytest.mark.parametrize("value", ["", "__HIVE_DEFAULT_PARTITION__", "x" * 300])
def test_values_that_name_no_folder(store: LocalStore, value: str) -> None:
    rows = pa.table({"k": [value], "n": [1]})
    with pytest.raises(StorageError, match=r"partition column 'k' has the value .*partition_by"):
        publish_rows(store, rows, partition_by=("k",))
    assert not [key for key in objects_in(store) if key.endswith(".parquet")]


def test_many_folders_within_few_open_files(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_files, "MAX_OPEN_LOCAL", 3)
    monkeypatch.setattr(parquet_files, "BUFFER_BYTES", 20_000)
    rows = pa.table(
        {
            "k": pa.array([i % 17 for i in range(20_000)], pa.int32()),
            "n": pa.array(range(20_000), pa.int64()),
        }
    )
    version = publish_rows(store, rows, partition_by=("k",)).version
    found: dict[str | None, list[int]] = {}
    for file, path in zip(version.files, paths_of(store, version), strict=True):
        values = pq.ParquetFile(path).read()["n"].to_pylist()
        found.setdefault(file.partition[0], []).extend(values)
    assert found == {str(k): list(range(k, 20_000, 17)) for k in range(17)}


@pytest.mark.parametrize(
    ("columns", "partition_by", "message"),
    [
        ([Field("a", INT), Field("a", INT)], (), r"columns 'a' and 'a'.*a AS a_2"),
        ([Field("a", INT), Field("A", INT)], (), r"'a' and 'A', but .*alias"),
        ([Field("a", NULL)], (), r"column 'a' is void.*CAST"),
        ([Field("a", array_of(NULL))], (), r"column 'a' is array<void>.*CAST"),
        ([Field("a", DAY_TIME_INTERVAL)], (), r"column 'a' is interval day to second.*extract"),
        ([Field("a", struct_of((Field("x", INT), Field("X", INT))))], (), r"two members"),
        ([], (), r"no columns"),
        ([Field("a", INT)], ("b",), r"partition_by names 'b', which is not a column .*\(a\)"),
        ([Field("a", INT)], ("a",), r"all columns"),
        ([Field("a", INT), Field("b", INT)], ("a", "a"), r"'a' twice"),
        ([Field("a", DOUBLE), Field("b", INT)], ("a",), r"'a', which is double"),
        ([Field("a", TIMESTAMP), Field("b", INT)], ("a",), r"which is timestamp.*AS DATE"),
    ],
)
def test_columns_that_are_no_table(
    store: LocalStore, columns: list[Field], partition_by: tuple[str, ...], message: str
) -> None:
    manifest = head_output(store, [numbers(1)])
    target = PublishTarget(table="t", partition_by=partition_by)
    with pytest.raises(PublishError, match=f"table 't': .*{message}"):
        publish(manifest, columns, target, store=store, settings=SETTINGS, spark=no_spark)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({"mode": "replace_partition"}, r"needs a partitioned run"),
        ({"partition_keys": ("a", "b")}, r"run of 2 partitions needs a column"),
        ({"partition_keys": ("a", "a")}, r"given twice"),
        ({"partition_keys": ("a",), "partition_column": "x"}, r"'x' is not a column .*\(day, n\)"),
        (
            {**day_windows(DAY), "partition_column": "n"},
            r"'n' is bigint; rows are told apart by a date",
        ),
        (
            {
                **day_windows(*DAYS),
                "windows": tuple(
                    PartitionWindow(str(d), d, d + datetime.timedelta(days=2)) for d in DAYS
                ),
            },
            r"windows of the partitions .* overlap",
        ),
        ({**day_windows(*DAYS), "windows": day_windows(DAY)["windows"]}, r"one window per"),
    ],
)
def test_targets_that_do_not_say_enough(
    store: LocalStore, target: dict[str, Any], message: str
) -> None:
    with pytest.raises(PublishError, match=message):
        publish_rows(store, daily((DAY, 1)), **target)


def test_a_table_keeps_its_columns_unless_all_of_it_is_replaced(store: LocalStore) -> None:
    publish_rows(store, daily((DAYS[0], 1)), **day_windows(DAYS[0]))
    wider = daily((DAYS[1], 1)).append_column("more", pa.array(["x"]))
    with pytest.raises(PublishError, match=r"kept from version 1 .*'more' is missing there.*clear"):
        publish_rows(store, wider, **day_windows(DAYS[1]))
    assert version_numbers(store, "t") == [1]
    # The only partition may change, for nothing else stays.
    same_day = daily((DAYS[0], 1)).append_column("more", pa.array(["x"]))
    assert publish_rows(store, same_day, **day_windows(DAYS[0])).version.number == 2
    assert publish_rows(store, numbers(1)).version.columns == (Field("n", BIGINT),)
    with pytest.raises(PublishError, match=r"without partition keys"):
        publish_rows(store, numbers(2), mode="replace_partition", partition_keys=("k",))


def test_every_type_comes_back(store: LocalStore) -> None:
    table = rows_of_every_type(
        single=float("nan"), real=-0.0, text="ü\0", day=datetime.date(1, 1, 1)
    )
    version = publish_rows(store, table).version
    assert version.columns == fields_of(table)
    (path,) = paths_of(store, version)
    found = read_footer(stat_file(path))
    assert found.columns == fields_of(table)
    assert found.native_reason is None
    read = pq.read_table(path)
    assert read.schema.equals(table.schema)
    assert repr(read.to_pydict()) == repr(table.to_pydict())
    stored = TableVersion.from_json(store.read_bytes(paths.table_version("t", 1)), uri="there")
    assert stored == version


def test_lost_output_is_named_and_forgotten(store: LocalStore) -> None:
    manifest = head_output(store, [numbers(1, 2)])
    path = Path(store.uri(layout.shuffle_file(manifest.fingerprint, manifest.files[0].name)))
    path.write_bytes(path.read_bytes()[:-20])
    target = PublishTarget(table="t")
    with pytest.raises(ShuffleReadError, match=r"lost output of q/stage_0.*run q/stage_0 again"):
        publish(
            manifest, [Field("n", BIGINT)], target, store=store, settings=SETTINGS, spark=no_spark
        )
    assert is_lost(store, manifest)
    assert not objects_in(store)


def test_threads_that_publish_lose_no_partition(store: LocalStore) -> None:
    keys = [f"k{n}" for n in range(12)]
    errors: list[BaseException] = []

    def run(key: str) -> None:
        try:
            rows = pa.table({"k": [key], "n": [1]})
            publish_rows(store, rows, mode="replace_partition", partition_keys=(key,))
        except BaseException as error:  # noqa: BLE001 -- shown by the test's thread
            errors.append(error)

    threads = [threading.Thread(target=run, args=(key,)) for key in keys * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    version = current(store)
    assert version.partition_keys == tuple(sorted(keys))
    assert sorted(row["k"] for row in read_rows(store, version)) == sorted(keys)
    assert version_numbers(store, "t") == list(range(1, 13))
    # Files of publications that came second are gone.
    assert len([k for k in objects_in(store) if k.endswith(".parquet")]) == 12


def test_a_reader_never_sees_a_mixture(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path), StorageOptions(fsync="never"))
    done = threading.Event()
    problems: list[str] = []
    seen: set[int] = set()

    def read() -> None:
        last = 0
        while not done.is_set():
            version = read_current(store, "t")
            if version is None:
                continue
            values = {row["n"] for row in read_rows(store, version)}
            if values != {version.number} or len(version.files) != 1:
                problems.append(f"version {version.number} has {values}")
            if version.number < last:
                problems.append(f"version {version.number} after {last}")
            last = version.number
            seen.add(last)
            time.sleep(0.002)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for number in range(1, 201):
            publish_rows(store, numbers(*[number] * 3))
    finally:
        done.set()
        reader.join()
    assert not problems
    assert len(seen) > 1


def test_a_crash_between_files_and_commit_changes_nothing(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = publish_rows(store, numbers(1)).version
    before = objects_in(store)

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(VersionLog, "commit", crash)
        with pytest.raises(KeyboardInterrupt):
            publish_rows(store, numbers(2))
    (orphan,) = objects_in(store) - before
    assert current(store) == first
    again = publish_rows(store, numbers(2))
    assert not again.reused
    assert again.version.number == 2
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=30)
    report = collect_garbage(store, older_than=datetime.timedelta(days=7), now=later)
    assert report.orphans[-1:] == (orphan,)
    assert read_rows(store, current(store)) == [{"n": 2}]


def test_what_tasks_run_loads_no_spark() -> None:
    code = "import sys, stagecoach.infra.publishing.merge_tasks, stagecoach.infra.publishing.write_task; assert not {'pyspark', 'dagster'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[4])
