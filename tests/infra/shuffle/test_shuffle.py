"""Shuffle files from writer to reader: nothing lost, nothing twice, and damage is always found."""

from __future__ import annotations

import datetime
import errno
import json
import math
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagecoach.infra.errors import ShuffleReadError, StorageError
from stagecoach.infra.shuffle import index as index_file
from stagecoach.infra.shuffle import reader
from stagecoach.infra.shuffle.commit import (
    CommitError,
    commit_manifest,
    is_lost,
    load_index,
    load_manifest,
    mark_lost,
)
from stagecoach.infra.shuffle.encoding import BatchSchemaError, Piece, coalesce
from stagecoach.infra.shuffle.manifest import (
    FORMAT_VERSION,
    Manifest,
    ManifestError,
    ManifestVersionError,
)
from stagecoach.infra.shuffle.map_file import Codec, MapFile, OutputPartitioning
from stagecoach.infra.shuffle.partition_ranges import PartitionRanges
from stagecoach.infra.shuffle.partitioner import PartitionKeyError, partition_ids
from stagecoach.infra.shuffle.reader import (
    ReadRequestError,
    read_partitions,
    read_table,
    verify_files,
)
from stagecoach.infra.shuffle.writer import ShuffleWriter
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.errors import StagecoachError
from tests.s3_server import S3Server, s3_server

__all__ = ["s3_server"]

FINGERPRINT = "ab12" * 16
CODECS: list[Codec] = ["none", "lz4", "zstd"]


def hashed(num_partitions: int, keys: tuple[int, ...] = (0,)) -> OutputPartitioning:
    return OutputPartitioning(kind="shuffle", keys=keys, num_partitions=num_partitions)


def write_task(
    store: ObjectStore,
    table: pa.Table,
    partitioning: OutputPartitioning,
    *,
    task: int = 0,
    batch: int = 1000,
    fingerprint: str = FINGERPRINT,
    **options: Any,
) -> MapFile:
    key = layout.map_file(fingerprint, task, layout.new_attempt())
    with ShuffleWriter(store, key, table.schema, partitioning, **options) as writer:
        for part in table.to_batches(max_chunksize=batch):
            writer.write(part)
        return writer.close()


def commit(
    store: ObjectStore,
    files: list[MapFile],
    schema: pa.Schema,
    partitioning: OutputPartitioning,
    *,
    codec: Codec = "lz4",
    fingerprint: str = FINGERPRINT,
    created_at: str = "2024-01-01T00:00:00Z",
) -> Manifest:
    return commit_manifest(
        store,
        fingerprint,
        files,
        plan_hash="cd" * 32,
        query="q5",
        stage_id=2,
        engine="duckdb",
        schema=schema,
        partitioning=partitioning,
        codec=codec,
        created_at=created_at,
        metrics={"seconds": 1.5},
    )


def numbers(num_rows: int, start: int = 0) -> pa.Table:
    values = np.arange(start, start + num_rows)
    texts = pa.array([f"row {n}" for n in values], pa.string())
    return pa.table({"c0": values, "c1": texts, "c2": values * 0.5})


def written(
    store: ObjectStore, num_tasks: int = 3, num_partitions: int = 4, **options: Any
) -> tuple[Manifest, pa.Table]:
    tables = [numbers(500, 500 * task) for task in range(num_tasks)]
    files = [
        write_task(store, table, hashed(num_partitions), task=task, **options)
        for task, table in enumerate(tables)
    ]
    codec = options.get("codec", "lz4")
    manifest = commit(store, files, tables[0].schema, hashed(num_partitions), codec=codec)
    return manifest, pa.concat_tables(tables)


@pytest.fixture(params=["local", "memory", pytest.param("s3", marks=pytest.mark.s3)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    if request.param == "local":
        return open_store(tmp_path / "root")
    if request.param == "memory":
        return open_store(f"memory://{tmp_path.name}/root")
    server: S3Server = request.getfixturevalue("s3_server")
    return open_store(server.new_root(), server.options)


# --- round trips ---------------------------------------------------------------------------------

COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "bool": (pa.bool_(), st.booleans()),
    "int8": (pa.int8(), st.integers(-128, 127)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "double": (pa.float64(), st.floats(allow_nan=False)),
    "decimal": (pa.decimal128(20, 3), st.decimals(-(10**12), 10**12, places=3)),
    "decimal64": (pa.decimal64(15, 2), st.decimals(-(10**9), 10**9, places=2)),
    "date": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(datetime.UTC))),
    "string": (pa.string(), st.text(max_size=12)),
    "view": (pa.string_view(), st.text(max_size=20)),
    "large": (pa.large_string(), st.text(max_size=12)),
    "binary": (pa.binary(), st.binary(max_size=12)),
    "list": (pa.list_(pa.int32()), st.lists(st.none() | st.integers(-9, 9), max_size=3)),
    "list_view_text": (pa.list_(pa.string_view()), st.lists(st.text(max_size=15), max_size=3)),
    "struct": (
        pa.struct([("x", pa.int32()), ("y", pa.string())]),
        st.fixed_dictionaries({"x": st.integers(0, 9), "y": st.none() | st.text(max_size=3)}),
    ),
    "map": (
        pa.map_(pa.string(), pa.int32()),
        st.dictionaries(st.text(max_size=2), st.integers(0, 9), max_size=2).map(
            lambda found: list(found.items())
        ),
    ),
    "null": (pa.null(), st.none()),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["a", "b", "é"])),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    names = draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=4, unique=True))
    num_rows = draw(st.integers(0, 60))
    arrays = [pa.array(range(num_rows), pa.int32())]
    for name in names:
        kind, strategy = COLUMNS[name]
        rows = st.lists(st.none() | strategy, min_size=num_rows + 2, max_size=num_rows + 2)
        # A slice, so that offsets and validity bitmaps do not begin at zero.
        arrays.append(pa.array(draw(rows), kind).slice(2))
    return pa.table(arrays, names=["c0", *(f"c{n + 1}" for n in range(len(names)))])


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_round_trip_of_every_type(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    table = data.draw(tables())
    num_partitions = data.draw(st.sampled_from([1, 2, 3, 50]))
    codec = data.draw(st.sampled_from(CODECS))
    memory_bytes = data.draw(st.sampled_from([1, 2000, 256 << 20]))  # 1: a run for every few rows
    batch = data.draw(st.integers(1, 70))
    root = tmp_path_factory.mktemp("round-trip")
    store = open_store(root / "root")
    partitioning = hashed(num_partitions)
    half = data.draw(st.integers(0, table.num_rows))
    files = [
        write_task(
            store,
            part,
            partitioning,
            task=task,
            batch=batch,
            codec=codec,
            memory_bytes=memory_bytes,
            spill_dir=str(root / "spill"),
        )
        for task, part in enumerate([table.slice(0, half), table.slice(half)])
    ]
    manifest = commit(store, files, table.schema, partitioning, codec=codec)
    found = read_table(store, manifest)
    expected = table.cast(manifest.schema)
    assert found.sort_by("c0").to_pylist() == expected.to_pylist()
    assert found.schema == manifest.schema
    assert manifest.num_rows == table.num_rows
    for partition in range(num_partitions):
        rows = read_table(store, manifest, partition, partition + 1)
        assert rows.num_rows == manifest.partition_rows[partition]
        # Each row is where the partitioner says, and rows keep the order of their input.
        for part in rows.to_batches():
            assert set(partition_ids(part, (0,), num_partitions).tolist()) <= {partition}
        assert rows.column("c0").to_pylist() == sorted(rows.column("c0").to_pylist())
    assert not list((root / "spill").glob("*"))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("num_partitions", [1, 7, 300])
def test_spilling_changes_nothing(tmp_path: Path, codec: Codec, num_partitions: int) -> None:
    store = open_store(tmp_path / "root")
    table = numbers(20_000)
    contents = []
    for memory_bytes in (100_000, 256 << 20):
        file = write_task(
            store, table, hashed(num_partitions), codec=codec, memory_bytes=memory_bytes,
            spill_dir=str(tmp_path / "spill"), batch_rows=512,
        )  # fmt: skip
        assert (file.spilled_bytes > 0) == (memory_bytes == 100_000 and num_partitions > 1)
        key = layout.shuffle_file(FINGERPRINT, file.name)
        contents.append(pa.ipc.open_file(store.open_input(key)).read_all())
    assert contents[0].equals(contents[1])
    assert contents[0].num_rows == 20_000


def test_any_arrow_reader_opens_the_file_and_the_ranges_are_right(store: ObjectStore) -> None:
    table = numbers(5000)
    file = write_task(store, table, hashed(5), batch_rows=300)
    content = store.read_bytes(layout.shuffle_file(FINGERPRINT, file.name))
    assert len(content) == file.num_bytes
    assert google_crc32c.value(content) == file.checksum
    opened = pa.ipc.open_file(content)
    rows = [0] * 5
    for number in range(opened.num_record_batches):
        found = opened.get_batch_with_custom_metadata(number)
        text = found.custom_metadata["stagecoach"].decode()
        assert text.startswith("partition=0000")
        assert len(text) == len("partition=00000;crc32c=00000000")
        rows[int(text[10:15])] += found.batch.num_rows
    assert tuple(rows) == file.ranges.column("rows")
    for _, offset, length, _, checksum in file.ranges.table.tolist():
        assert google_crc32c.value(content[offset : offset + length]) == checksum


def test_no_rows_is_a_file_with_every_partition_listed(store: ObjectStore) -> None:
    empty = numbers(0)
    file = write_task(store, empty, hashed(3))
    assert file.ranges == PartitionRanges(3, b"")
    manifest = commit(store, [file], empty.schema, hashed(3))
    assert read_table(store, manifest).equals(empty)
    assert (
        pa.ipc.open_file(
            store.read_bytes(layout.shuffle_file(FINGERPRINT, file.name))
        ).num_record_batches
        == 0
    )
    verify_files(store, manifest)


def test_no_tasks(store: ObjectStore) -> None:
    manifest = commit(store, [], numbers(0).schema, hashed(3))
    assert manifest.partition_rows == (0, 0, 0)
    assert read_table(store, manifest).num_rows == 0


def test_rows_without_columns(store: ObjectStore) -> None:
    schema = pa.schema([])
    key = layout.map_file(FINGERPRINT, 0, 0)
    with ShuffleWriter(store, key, schema, OutputPartitioning()) as writer:
        for num_rows in (5, 7, 300_000):
            writer.write(pa.record_batch([pa.nulls(num_rows)], names=["x"]).select([]))
        file = writer.close()
    manifest = commit(store, [file], schema, OutputPartitioning())
    _, batches = read_partitions(store, manifest, 0, 1)
    assert sum(batch.num_rows for batch in batches) == file.num_rows == 300_012


def test_one_partition_streams_in_input_order(store: ObjectStore) -> None:
    table = numbers(30_000)
    file = write_task(store, table, OutputPartitioning(kind="gather"), batch=7, batch_rows=1000)
    manifest = commit(store, [file], table.schema, OutputPartitioning(kind="gather"))
    found = read_table(store, manifest)
    assert found.equals(table)
    assert {len(chunk) for chunk in found.column(0).chunks[:-1]} == {1001}


def test_columns_and_files_and_partition_ranges(store: ObjectStore) -> None:
    for codec in CODECS:
        fingerprint = f"{codec.encode().hex():0>16}"
        files = [
            write_task(store, numbers(500, 500 * task), hashed(4), task=task, codec=codec,
                       fingerprint=fingerprint)
            for task in range(3)
        ]  # fmt: skip
        manifest = commit(
            store, files, numbers(0).schema, hashed(4), codec=codec, fingerprint=fingerprint
        )
        whole = read_table(store, manifest)
        for columns in (["c2"], ["c1", "c0"], ["c2", "c1", "c0"], []):
            assert read_table(store, manifest, columns=columns).equals(whole.select(columns))
        one = [read_table(store, manifest, files=range(n, n + 1)) for n in range(3)]
        assert pa.concat_tables(one).equals(whole)
        assert set(one[1].column("c0").to_pylist()) == set(range(500, 1000))
        parts = [read_table(store, manifest, 0, 1), read_table(store, manifest, 1, 4)]
        assert pa.concat_tables(parts).num_rows == 1500
        assert read_table(store, manifest, 2, 2).num_rows == 0
    with pytest.raises(ReadRequestError, match=r"column 'nope' of q5/stage_2; available: c0"):
        read_table(store, manifest, columns=["nope"])
    with pytest.raises(ReadRequestError, match=r"partitions 3 to 5 of q5/stage_2, which has 4"):
        read_table(store, manifest, 3, 5)
    with pytest.raises(ReadRequestError, match=r"which has 3"):
        read_table(store, manifest, files=range(3, 4))


@pytest.mark.parametrize("columns", [None, ["c1"]])
@pytest.mark.parametrize("codec", CODECS)
def test_large_ranges_are_read_in_parts(
    store: ObjectStore, codec: Codec, columns: list[str] | None
) -> None:
    manifest, _ = written(store, codec=codec, batch_rows=50)
    expected = read_table(store, manifest, columns=columns)
    assert read_table(store, manifest, columns=columns, memory_bytes=666).equals(expected)


def test_local_reads_are_not_copied(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    table = numbers(100_000)
    file = write_task(store, table, OutputPartitioning(), codec="none")
    manifest = commit(store, [file], table.schema, OutputPartitioning(), codec="none")
    before = pa.total_allocated_bytes()
    found = read_table(store, manifest)
    assert pa.total_allocated_bytes() - before < 100_000
    assert found.num_rows == 100_000


def test_neighbouring_ranges_are_one_request(tmp_path: Path) -> None:
    store = open_store(f"memory://{tmp_path.name}/requests")
    manifest, _ = written(store, num_tasks=3, num_partitions=8)
    calls: list[str] = []

    class Counting:
        is_local = False

        def to_dict(self) -> dict[str, Any]:
            return store.to_dict()

        def __getattr__(self, name: str) -> Any:
            def call(key: str, *arguments: Any) -> Any:
                calls.append(f"{name} {key.rsplit('/', 1)[-1][:5]}")
                return getattr(store, name)(key, *arguments)

            return call

    read_table(Counting(), manifest, 2, 7)
    assert sorted(calls) == ["read_bytes " + name for name in ("00000", "00001", "00002", "index")]


def test_large_index_is_read_by_slices(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_file, "_SLICE_ROWS", 10)
    manifest, table = written(store, num_tasks=3, num_partitions=20)
    assert len(manifest.index_slices) == 7
    whole = load_index(store, manifest)
    assert whole.num_rows == 60
    assert whole.column("partition").to_pylist() == [n // 3 for n in range(60)]
    assert whole.column("file").to_pylist() == [0, 1, 2] * 20
    assert load_index(store, manifest, 4, 11).equals(whole.slice(12, 21))
    assert read_table(store, manifest).num_rows == table.num_rows


# --- writer: refusals and failures ---------------------------------------------------------------


def test_aborted_writer_leaves_nothing(store: ObjectStore, tmp_path: Path) -> None:
    for partitioning in (hashed(3), OutputPartitioning()):
        key = layout.map_file(FINGERPRINT, 0, 0)
        options: dict[str, Any] = {"memory_bytes": 10_000, "spill_dir": str(tmp_path / "spill")}
        writer = ShuffleWriter(store, key, numbers(0).schema, partitioning, **options)
        with pytest.raises(RuntimeError, match=r"killed"), writer:
            for batch in numbers(5000).to_batches(max_chunksize=100):
                writer.write(batch)
            raise RuntimeError("killed")
        assert list(store.list("shuffle")) == []
        assert not list((tmp_path / "spill").glob("*"))
        with pytest.raises(StagecoachError, match=r"closed already"):
            writer.write(numbers(1).to_batches()[0])
        writer.abort()


def test_wrong_batches_are_refused(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    key = layout.map_file(FINGERPRINT, 0, 0)
    with ShuffleWriter(store, key, numbers(0).schema, hashed(2)) as writer:
        with pytest.raises(BatchSchemaError, match=r"has 1 columns .*expected 3"):
            writer.write(pa.record_batch([pa.array([1])], names=["c0"]))
        wrong = numbers(3).set_column(2, "c2", pa.array([1, 2, 3])).to_batches()[0]
        with pytest.raises(BatchSchemaError, match=r"column 'c2' has type int64, expected double"):
            writer.write(wrong)


def test_encodings_of_one_sql_type_may_differ_between_batches(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    schema = pa.schema([("c0", pa.string()), ("c1", pa.decimal128(15, 2))])
    text = pa.array(["a", None, "b"])
    money = pa.array([Decimal("1.50"), None, Decimal("-2.00")], pa.decimal128(15, 2))
    with ShuffleWriter(store, layout.map_file(FINGERPRINT, 0, 0), schema, hashed(2)) as writer:
        writer.write(pa.record_batch([text, money], names=["x", "y"]))
        writer.write(
            pa.record_batch(
                [text.dictionary_encode(), money.cast(pa.decimal64(15, 2))], names=["c0", "c1"]
            )
        )
        writer.write(pa.record_batch([text.cast(pa.string_view()), money], names=["c0", "c1"]))
        file = writer.close()
    found = read_table(store, commit(store, [file], schema, hashed(2)))
    assert found.schema == schema
    assert sorted(map(str, found.column("c0").to_pylist())) == ["None"] * 3 + ["a"] * 3 + ["b"] * 3


def test_bad_partitioning_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PartitionKeyError, match=r"only a shuffle has more"):
        OutputPartitioning(kind="gather", num_partitions=2)
    schema = pa.schema([("c0", pa.list_(pa.int32()))])
    with pytest.raises(PartitionKeyError, match=r"column 'c0' of type list"):
        ShuffleWriter(open_store(tmp_path), layout.map_file(FINGERPRINT, 0, 0), schema, hashed(2))


class FullStore:
    """A store whose device is full after some bytes."""

    is_local = True

    def __init__(self, store: ObjectStore, room: int) -> None:
        self._store = store
        self._room = room

    def uri(self, key: str) -> str:
        return self._store.uri(key)

    @contextmanager
    def open_output(self, key: str) -> Iterator[Any]:
        with self._store.open_output(key) as sink:
            outer = self

            class Sink:
                def write(self, data: Any) -> int:
                    outer._room -= len(data)
                    if outer._room < 0:
                        raise StorageError(f"cannot write {outer.uri(key)}: no space left")
                    return sink.write(data)

            yield Sink()


@pytest.mark.parametrize("partitioning", [hashed(4), OutputPartitioning()])
@pytest.mark.parametrize("room", [0, 100, 2000, 100_000])
def test_full_store_fails_the_task_and_leaves_nothing(
    tmp_path: Path, partitioning: OutputPartitioning, room: int
) -> None:
    store = open_store(tmp_path)
    full: Any = FullStore(store, room)
    with pytest.raises(StorageError, match=r"no space left"):
        write_task(full, numbers(50_000), partitioning, batch_rows=1000)
    assert list(store.list("")) == []


def test_full_spill_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("stagecoach.infra.shuffle.spill.open", full, raising=False)
    store = open_store(tmp_path / "root")
    with pytest.raises(StorageError, match=r"cannot spill to .*spill.*no space left on the device"):
        write_task(
            store, numbers(5000), hashed(2), memory_bytes=1000, spill_dir=str(tmp_path / "spill")
        )
    assert list(store.list("")) == []
    assert not list((tmp_path / "spill").glob("*"))


def test_unwritable_spill_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = open_store(tmp_path / "root")
    with pytest.raises(StorageError, match=r"cannot spill to .*file"):
        write_task(
            store, numbers(5000), hashed(2), memory_bytes=1000, spill_dir=str(tmp_path / "file")
        )


def test_memory_is_bounded(tmp_path: Path) -> None:
    store = open_store(tmp_path / "root")
    table = numbers(400_000)
    before = pa.total_allocated_bytes()
    key = layout.map_file(FINGERPRINT, 0, 0)
    peak = 0
    limit = 2 << 20
    with ShuffleWriter(
        store, key, table.schema, hashed(16), memory_bytes=limit, spill_dir=str(tmp_path)
    ) as writer:
        for batch in table.to_batches(max_chunksize=5000):
            writer.write(batch)
            peak = max(peak, pa.total_allocated_bytes() - before)
        file = writer.close()
    assert table.nbytes > 5 * limit
    assert file.spilled_bytes > 0
    assert peak < 1.5 * limit


def test_coalesce_joins_small_and_splits_large() -> None:
    batches = numbers(10_000).to_batches(max_chunksize=10) + numbers(5000).to_batches()
    pieces = [Piece(batch, batch.nbytes) for batch in batches]
    sizes = [piece.batch.num_rows for piece in coalesce(pieces, 1000, 1 << 20)]
    assert sum(sizes) == 15_000
    assert set(sizes) == {1000}


# --- manifest ------------------------------------------------------------------------------------


def test_manifest_round_trip_and_hash(store: ObjectStore) -> None:
    assert load_manifest(store, FINGERPRINT) is None
    manifest, _ = written(store)
    loaded = load_manifest(store, FINGERPRINT)
    assert loaded == manifest
    assert loaded.manifest_hash == manifest.manifest_hash
    assert manifest.stage_name == "q5/stage_2"
    assert json.loads(manifest.to_json())["format_version"] == FORMAT_VERSION
    assert replace(manifest, created_at="later").manifest_hash != manifest.manifest_hash
    assert sorted(manifest.file_keys()) == sorted(store.list("shuffle"))
    file = write_task(store, numbers(3), hashed(2))
    assert MapFile.from_dict(json.loads(json.dumps(file.to_dict()))) == file


def test_second_commit_adopts_the_first(store: ObjectStore) -> None:
    first, table = written(store)
    again = [write_task(store, numbers(500, 500 * task), hashed(4), task=task) for task in range(3)]
    second = commit(store, again, table.schema, hashed(4), created_at="2030-01-01T00:00:00Z")
    assert second == first
    assert read_table(store, second).num_rows == table.num_rows


def test_racing_commits_without_put_if_absent_are_both_whole(tmp_path: Path) -> None:
    """A store that ignores the condition: the later one wins, and both can still be read."""
    store = open_store(tmp_path)

    class Ignoring:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def exists(self, key: str) -> bool:
            return False  # both looked before either wrote

        def put_if_absent(self, key: str, data: bytes, *, looked: bool = False) -> bool:
            store.write_bytes(key, data)
            return True

    first, table = written(Ignoring())
    second, _ = written(Ignoring())
    assert first.manifest_hash != second.manifest_hash
    assert load_manifest(store, FINGERPRINT) == second
    assert not set(first.file_keys()[:-1]) & set(second.file_keys()[:-1])
    for manifest in (first, second):
        verify_files(store, manifest)
        assert read_table(store, manifest).num_rows == table.num_rows


def test_commit_needs_one_file_of_each_task(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    files = [write_task(store, numbers(5), hashed(2), task=task) for task in (0, 1, 1, 3)]
    schema = numbers(0).schema
    for wrong in (files[1:2], files[:3], [files[0], files[3]]):
        with pytest.raises(CommitError, match=r"one file of each task"):
            commit(store, wrong, schema, hashed(2))
    with pytest.raises(CommitError, match=r"has 2 partitions, expected 3"):
        commit(store, files[:2], schema, hashed(3))
    with pytest.raises(CommitError, match=r"has other columns than the manifest"):
        commit(store, files[:2], pa.schema([("c0", pa.int64())]), hashed(2))
    assert load_manifest(store, FINGERPRINT) is None


def test_unknown_version_is_clear(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.write_bytes(layout.manifest(FINGERPRINT), b'{"format_version": 99, "fingerprint": "f"}')
    with pytest.raises(
        ManifestVersionError, match=r"has format version 99, this Stagecoach reads 2"
    ):
        load_manifest(store, FINGERPRINT)


def test_manifest_of_another_stage_is_refused(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    manifest, _ = written(store)
    other = "ff" * 16
    store.write_bytes(layout.manifest(other), manifest.to_json())
    with pytest.raises(ManifestError, match=r"the manifest of another stage"):
        load_manifest(store, other)


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "text"])
def test_damaged_manifest_is_found_and_replaced_by_the_next_commit(
    tmp_path: Path, damage: str
) -> None:
    store = open_store(tmp_path)
    manifest, table = written(store)
    text = manifest.to_json()
    position = text.index(b'"num_rows":') + len(b'"num_rows":')
    broken = {
        "flip": text[:position] + bytes([text[position] ^ 1]) + text[position + 1 :],
        "cut": text[:-20],
        "empty": b"",
        "text": b"[1, 2]",
    }[damage]
    store.write_bytes(layout.manifest(FINGERPRINT), broken)
    with pytest.raises(ManifestError, match=r"damaged manifest .*; run q5/stage_2 again") as caught:
        load_manifest(store, FINGERPRINT, stage="q5/stage_2")
    assert pickle.loads(pickle.dumps(caught.value)).problem == caught.value.problem
    again, _ = written(store)
    assert load_manifest(store, FINGERPRINT) == again
    assert read_table(store, again).num_rows == table.num_rows


def test_a_commit_that_is_marked_as_lost_is_replaced_by_the_next(store: ObjectStore) -> None:
    manifest, _ = written(store)
    assert not mark_lost(store, FINGERPRINT, "0" * 64)
    again, _ = written(store)
    assert again == manifest, "another commit than the one that is lost stays"
    assert mark_lost(store, FINGERPRINT, manifest.manifest_hash)
    assert is_lost(store, manifest)
    assert load_manifest(store, FINGERPRINT) == manifest, "it stays until there is another"
    new, table = written(store)
    assert new.manifest_hash != manifest.manifest_hash
    assert load_manifest(store, FINGERPRINT) == new
    assert not is_lost(store, new)
    assert read_table(store, new).num_rows == table.num_rows
    assert not mark_lost(store, FINGERPRINT, manifest.manifest_hash)
    assert load_manifest(store, FINGERPRINT) == new


# --- damage to files -----------------------------------------------------------------------------


def flip(content: bytes, position: int) -> bytes:
    return content[:position] + bytes([content[position] ^ 0x10]) + content[position + 1 :]


DAMAGE: dict[str, Callable[[bytes, int, int], bytes | None]] = {
    "flipped first byte": lambda content, start, end: flip(content, start),
    "flipped length": lambda content, start, end: flip(content, start + 4),
    "flipped metadata": lambda content, start, end: flip(content, start + 60),
    "flipped body": lambda content, start, end: flip(content, end - 20),
    "truncated": lambda content, start, end: content[: end - 5],
    "truncated before": lambda content, start, end: content[: start - 5],
    "emptied": lambda content, start, end: b"",
    "missing": lambda content, start, end: None,
}


@pytest.mark.parametrize("in_parts", [False, True])
@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_found_and_names_the_stage(
    store: ObjectStore, damage: str, in_parts: bool
) -> None:
    manifest, _ = written(store, batch_rows=60)
    memory = 1000 if in_parts else 1 << 20
    index = load_index(store, manifest, 2, 3)
    start = index.column("offset")[1].as_py()
    end = start + index.column("length")[1].as_py()
    name = manifest.files[1].name
    key = layout.shuffle_file(FINGERPRINT, name)
    broken = DAMAGE[damage](store.read_bytes(key), start, end)
    if broken is None:
        store.delete([key])
    else:
        store.write_bytes(key, broken)
    with pytest.raises(ShuffleReadError) as caught:
        read_table(store, manifest, 2, 3, memory_bytes=memory)
    assert caught.value.stage == "q5/stage_2"
    assert caught.value.task == 1
    assert caught.value.partition == 2
    assert name in str(caught.value)
    assert "run q5/stage_2 again" in str(caught.value)
    with pytest.raises(ShuffleReadError, match=name):
        verify_files(store, manifest)
    if damage.startswith("flipped"):  # other partitions of the file are still whole
        assert read_table(store, manifest, 0, 2).num_rows == sum(manifest.partition_rows[:2])


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_no_flipped_bit_goes_unnoticed(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    store = open_store(tmp_path_factory.mktemp("flip"))
    manifest, _ = written(store, num_tasks=1, num_partitions=1, batch_rows=100)
    key = layout.shuffle_file(FINGERPRINT, manifest.files[0].name)
    content = store.read_bytes(key)
    index = load_index(store, manifest)
    start, length = index.column("offset")[0].as_py(), index.column("length")[0].as_py()
    bit = data.draw(st.integers(8 * start, 8 * (start + length) - 1))
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << (bit % 8)
    store.write_bytes(key, bytes(changed))
    with pytest.raises(ShuffleReadError), pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "WHOLE_RANGE_BYTES", data.draw(st.sampled_from([1, 32 << 20])))
        read_table(store, manifest)


def test_swapped_files_are_found(store: ObjectStore) -> None:
    table = numbers(400)
    parts = [numbers(400), numbers(400, 400)]
    files = [
        write_task(store, part.drop_columns("c1"), hashed(2), task=task, codec="none")
        for task, part in enumerate(parts)
    ]
    schema = table.drop_columns("c1").schema
    manifest = commit(store, files, schema, hashed(2), codec="none")
    keys = [layout.shuffle_file(FINGERPRINT, file.name) for file in files]
    contents = [store.read_bytes(key) for key in keys]
    for key, content in zip(keys, reversed(contents), strict=True):
        store.write_bytes(key, content)
    with pytest.raises(ShuffleReadError, match=r"run q5/stage_2 again"):
        read_table(store, manifest)


def test_no_row_of_swapped_rows_leaves_a_large_range(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two files, and two partitions of a file, that differ in nothing but the numbers in them."""
    monkeypatch.setattr(reader, "WHOLE_RANGE_BYTES", 1)
    schema = pa.schema([("n", pa.int64())])
    dealt = OutputPartitioning(kind="shuffle", num_partitions=2)
    files = []
    for task in range(2):
        table = pa.table({"n": range(1000 * task, 1000 * task + 1000)}, schema=schema)
        files.append(write_task(store, table, dealt, task=task, codec="none", batch_rows=100))
    manifest = commit(store, files, schema, dealt, codec="none")
    keys = [layout.shuffle_file(FINGERPRINT, file.name) for file in files]
    contents = [store.read_bytes(key) for key in keys]
    (first, second), (length, _) = (files[0].ranges.column(n) for n in ("offset", "length"))
    for name in ("offset", "length", "rows"):
        assert files[0].ranges.column(name) == files[1].ranges.column(name)
    turned = bytearray(contents[0])
    turned[first : first + length] = contents[0][second : second + length]
    turned[second : second + length] = contents[0][first : first + length]
    for replaced in (contents[1], bytes(turned)):
        store.write_bytes(keys[0], replaced)
        _, batches = read_partitions(store, manifest, 0, 2)
        with pytest.raises(ShuffleReadError, match=r"run q5/stage_2 again"):
            next(batches)


@pytest.mark.parametrize("damage", ["missing", "cut", "flip"])
def test_damaged_index_is_found(store: ObjectStore, damage: str) -> None:
    manifest, _ = written(store)
    key = layout.shuffle_file(FINGERPRINT, manifest.index_name)
    content = store.read_bytes(key)
    if damage == "missing":
        store.delete([key])
    else:
        cut = manifest.index_slices[0].offset + 40
        store.write_bytes(key, content[:cut] if damage == "cut" else flip(content, cut))
    with pytest.raises(ManifestError, match=r"index-.*\.arrow: .*; run q5/stage_2 again"):
        read_table(store, manifest)


def test_abandoned_read_stops(tmp_path: Path) -> None:
    store = open_store(f"memory://{tmp_path.name}/abandoned")
    manifest, _ = written(store, num_tasks=5)
    _, batches = read_partitions(store, manifest, 0, 4)
    assert next(batches).num_rows > 0
    batches.close()  # type: ignore[attr-defined]
    assert math.isclose(manifest.metrics["seconds"], 1.5)
