"""The writer's hard cases: encodings, wide rows, many partitions, one partition, and its memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from stagecoach.infra.shuffle import encoding
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.shuffle.map_file import Codec, MapFile, OutputPartitioning
from stagecoach.infra.shuffle.partitioner import partition_ids
from stagecoach.infra.shuffle.reader import read_table, verify_files
from stagecoach.infra.shuffle.writer import ShuffleWriter
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.storage.stores import open_store
from tests.stage_outputs import commit_files, write_map_file

FINGERPRINT = "5a" * 32


def hashed(num_partitions: int) -> OutputPartitioning:
    return OutputPartitioning(kind="shuffle", keys=(0,), num_partitions=num_partitions)


def write(
    store: ObjectStore,
    batches: list[pa.RecordBatch],
    partitioning: OutputPartitioning,
    *,
    codec: Codec = "lz4",
    **options: Any,
) -> tuple[MapFile, Manifest]:
    """One map file of the batches, committed as a stage."""
    schema = batches[0].schema
    file = write_map_file(store, FINGERPRINT, batches, schema, partitioning, codec=codec, **options)
    return file, commit_files(store, FINGERPRINT, [file], schema, partitioning, codec=codec)


def check(store: ObjectStore, manifest: Manifest, batches: list[pa.RecordBatch]) -> None:
    """Every row is in its partition, in input order, whoever opens the file."""
    plain = [encoding.to_plain(batch, manifest.schema) for batch in batches]
    rows = [row for batch in plain for row in batch.to_pylist()]
    ids = np.concatenate(
        [
            partition_ids(batch, manifest.partitioning.keys, manifest.num_partitions)
            for batch in plain
        ]
    )
    expected: list[list[Any]] = [[] for _ in range(manifest.num_partitions)]
    for row, partition in zip(rows, ids, strict=True):
        expected[int(partition)].append(row)
    for partition, wanted in enumerate(expected):
        if wanted or partition < 3:
            found = read_table(store, manifest, partition, partition + 1)
            assert found.to_pylist() == wanted
    key = layout.shuffle_file(FINGERPRINT, manifest.files[0].name)
    with pa.memory_map(store.uri(key)) as source:
        whole = pa.ipc.open_file(source).read_all()
    assert whole.to_pylist() == [row for wanted in expected for row in wanted]
    verify_files(store, manifest)


TEXTS = ["a", None, "", "é" * 9, "a longer text than a view holds"]
ENCODINGS: dict[str, pa.Array] = {
    "dictionary": pa.array(TEXTS).dictionary_encode(),
    "dictionary in a struct": pa.StructArray.from_arrays(
        [pa.array(TEXTS).dictionary_encode(), pa.array(range(5))], names=["t", "n"]
    ),
    "dictionary in a list": pa.ListArray.from_arrays(
        [0, 2, 2, 3, 4, 5], pa.array(TEXTS).dictionary_encode()
    ),
    "string_view": pa.array(TEXTS, pa.string_view()),
    "binary_view": pa.array([t and t.encode() for t in TEXTS], pa.binary_view()),
    "views in a map": pa.array(
        [[("k", "v" * 20)], None, [], [("é", None)], [("a", "b"), ("c", "d")]],
        pa.map_(pa.string_view(), pa.string_view()),
    ),
    "large_string": pa.array(TEXTS, pa.large_string()),
    "large_binary": pa.array([t and t.encode() for t in TEXTS], pa.large_binary()),
    "large_list": pa.array([[1], None, [], [2, None], [3]], pa.large_list(pa.int32())),
    "fixed_size_list": pa.array([[1, 2], None, [3, 4], [5, None], [6, 7]], pa.list_(pa.int64(), 2)),
    "run_end_encoded": pa.RunEndEncodedArray.from_arrays([2, 5], pa.array(["x", None])),
    "nested": pa.array(
        [{"a": [{"b": "x", "c": 1.5}]}, None, {"a": None}, {"a": []}, {"a": [None, {"b": "yy"}]}],
        pa.struct([("a", pa.list_(pa.struct([("b", pa.string()), ("c", pa.float64())])))]),
    ),
    "decimals": pa.array([1, None, -3, 4, 5]).cast(pa.decimal128(38, 3)),
    "booleans": pa.array([True, None, False, True, None]),
    "nulls": pa.nulls(5),
}


@pytest.mark.parametrize("memory", [1 << 20, 2000])
@pytest.mark.parametrize("name", ENCODINGS)
def test_every_encoding_comes_back_plain(tmp_path: Path, name: str, memory: int) -> None:
    column = ENCODINGS[name]
    batches = [
        pa.record_batch([pa.array(range(5 * n, 5 * n + 5)), column], names=["c0", "c1"])
        for n in range(30)
    ]
    batches.append(batches[0].slice(2, 2))
    store = open_store(tmp_path / "root")
    file, manifest = write(
        store, batches, hashed(3), memory_bytes=memory, batch_rows=8, spill_dir=str(tmp_path)
    )
    check(store, manifest, batches)
    assert bool(file.spilled_bytes) == (memory == 2000)


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
@pytest.mark.parametrize("partitioning", [hashed(4), OutputPartitioning()], ids=["4", "1"])
def test_rows_wider_than_a_batch_and_than_the_memory(
    tmp_path: Path, partitioning: OutputPartitioning, codec: Codec
) -> None:
    texts = [chr(97 + n % 26) * (3_000_000 if n % 5 == 2 else n) for n in range(25)]
    batch = pa.record_batch([pa.array(range(25)), pa.array(texts)], names=["c0", "c1"])
    store = open_store(tmp_path / "root")
    _, manifest = write(
        store,
        [batch],
        partitioning,
        codec=codec,
        memory_bytes=256 << 10,
        batch_bytes=64 << 10,
        spill_dir=str(tmp_path),
    )
    check(store, manifest, [batch])


def numbers(num_rows: int, num_batches: int) -> list[pa.RecordBatch]:
    random = np.random.default_rng(5)
    return [
        pa.record_batch(
            [
                pa.array(random.integers(0, 1 << 40, num_rows)),
                pa.array([f"text {n}" for n in range(num_rows)]),
            ],
            names=["c0", "c1"],
        )
        for _ in range(num_batches)
    ]


@pytest.mark.parametrize("memory", [16 << 20, 100_000])
def test_1024_partitions(tmp_path: Path, memory: int) -> None:
    batches = numbers(3000, 4)
    store = open_store(tmp_path / "root")
    file, manifest = write(
        store, batches, hashed(1024), memory_bytes=memory, spill_dir=str(tmp_path)
    )
    assert bool(file.spilled_bytes) == (memory == 100_000)
    check(store, manifest, batches)
    # However often it was spilled, what is small is joined before it is written.
    key = layout.shuffle_file(FINGERPRINT, manifest.files[0].name)
    with pa.memory_map(store.uri(key)) as source:
        assert pa.ipc.open_file(source).num_record_batches <= 1024


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_all_rows_in_one_partition(tmp_path: Path, codec: Codec) -> None:
    batches = [
        batch.set_column(0, "c0", pa.array([7] * batch.num_rows)) for batch in numbers(5000, 8)
    ]
    store = open_store(tmp_path / "root")
    file, manifest = write(
        store,
        batches,
        hashed(64),
        codec=codec,
        memory_bytes=256 << 10,
        spill_dir=str(tmp_path),
    )
    assert file.spilled_bytes
    assert sum(rows > 0 for rows in manifest.partition_rows) == 1
    check(store, manifest, batches)


def test_nothing(tmp_path: Path) -> None:
    empty = numbers(1, 1)[0].slice(0, 0)
    store = open_store(tmp_path / "root")
    file, manifest = write(store, [empty, empty], hashed(16))
    assert (file.num_rows, file.spilled_bytes, manifest.partition_rows) == (0, 0, (0,) * 16)
    check(store, manifest, [empty])


def test_a_dictionary_of_long_texts_is_decoded_within_the_memory(tmp_path: Path) -> None:
    texts = pa.array(["x" * 10_000, "y" * 10_000]).dictionary_encode()
    column = pa.DictionaryArray.from_arrays(
        pa.array(np.arange(4000) % 2, pa.int8()), texts.dictionary
    )
    batch = pa.record_batch([pa.array(range(4000)), column], names=["c0", "c1"])
    store = open_store(tmp_path / "root")
    before = pa.total_allocated_bytes()
    pool = pa.default_memory_pool()
    limit = 24 << 20
    key = layout.map_file(FINGERPRINT, 0, layout.new_attempt())
    schema = pa.schema([("c0", pa.int64()), ("c1", pa.string())])
    peak = 0
    partitioning = hashed(4)
    with ShuffleWriter(
        store, key, schema, partitioning, memory_bytes=limit, spill_dir=str(tmp_path)
    ) as writer:
        for start in range(0, 4000, 2000):
            writer.write(batch.slice(start, 2000))
            peak = max(peak, pool.bytes_allocated() - before)
        file = writer.close()
    assert file.num_rows == 4000  # 40 MB of text
    assert file.spilled_bytes
    assert peak < limit


@pytest.mark.parametrize("name", ENCODINGS)
def test_sizes_of_partitions_are_those_of_their_slices(name: str) -> None:
    found = pa.record_batch([ENCODINGS[name]], names=["c0"])
    plain = encoding.to_plain(found, encoding.plain_schema(found.schema))
    # A slice, so that offsets and bitmaps do not begin at zero.
    batch = pa.concat_batches([plain] * 7).slice(3)
    bounds = np.array([0, 0, 4, 9, 10, 25, 32], dtype=np.int64)
    sizes = encoding.sizes(batch, bounds)
    for size, start, end in zip(sizes, bounds[:-1], bounds[1:], strict=True):
        # Bitmaps that begin within a byte, and the last offset of each level, are not counted.
        assert abs(int(size) - batch.slice(start, end - start).nbytes) <= 40
