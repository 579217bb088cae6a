"""Ranges of sorted map files: ranks that order as Spark does, blocks, cuts; every row in one range."""

from __future__ import annotations

import datetime
import decimal
import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagecoach.infra.runtime.adaptive.ranges import choose_cuts, sorted_ranges
from stagecoach.infra.shuffle.commit import commit_manifest, load_blocks
from stagecoach.infra.shuffle.manifest import Manifest, ManifestError
from stagecoach.infra.shuffle.map_file import MapFile, OutputPartitioning
from stagecoach.infra.shuffle.reader import read_blocks, read_table
from stagecoach.infra.shuffle.row_order import TEXT_BYTES, RowOrder, has_ranks, ranks
from stagecoach.infra.shuffle.sorted_blocks import (
    Block,
    SampledBlock,
    SortedBlocks,
    SortedRange,
    append_blocks,
)
from stagecoach.infra.shuffle.writer import ShuffleWriter
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.storage.stores import open_store

FINGERPRINT = "5a" * 32
NAN, INF = float("nan"), float("inf")
D = decimal.Decimal
LONG = "x" * TEXT_BYTES

ASCENDING: dict[str, pa.Array] = {
    "boolean": pa.array([None, False, True]),
    "tinyint": pa.array([None, -128, -1, 0, 127], pa.int8()),
    "bigint": pa.array([None, -(2**63), -1, 0, 1, 2**63 - 1], pa.int64()),
    "float": pa.array([None, -INF, -1.5, -1e-45, 0.0, 1e-45, 3.0, INF, NAN], pa.float32()),
    "double": pa.array([None, -INF, -1e300, -5e-324, 0.0, 5e-324, 1.0, 1e300, INF, NAN]),
    "decimal": pa.array(
        [None, D("-" + "9" * 35 + ".999"), D("-0.001"), D(0), D("0.010"), D("9" * 35 + ".999")],
        pa.decimal128(38, 3),
    ),
    "string": pa.array([None, "", "A", "a", "a ", "ab", "b", "zz", "é", "\uffff", "\U0001f600"]),
    "binary": pa.array([None, b"", b"\x01", b"\x7f", b"\x80", b"\xff", b"\xff\x01"]),
    "date": pa.array([None, datetime.date.min, datetime.date(1969, 1, 1), datetime.date.max]),
    "timestamp": pa.array([None, -(2**60), -1, 0, 2**60], pa.timestamp("us", "UTC")),
    "interval": pa.array([None, -5, 0, 7], pa.duration("us")),
}


@pytest.mark.parametrize("name", ASCENDING)
def test_ranks_are_in_sparks_order(name: str) -> None:
    column = ASCENDING[name]
    everything = range(len(column))
    for part in (column, pa.concat_arrays([column[-1:], column]).slice(1)):
        up = ranks(part, everything, RowOrder(0))
        assert up == sorted(set(up)), "each value is above the one before"
        down = ranks(part, everything, RowOrder(0, ascending=False, nulls_first=False))
        assert down == sorted(down, reverse=True)
        nulls_last = ranks(part, everything, RowOrder(0, nulls_first=False))
        assert nulls_last == [max(nulls_last), *up[1:]]
        assert ranks(part, everything, RowOrder(0, ascending=False))[0] < min(down)


def test_equal_keys_have_one_rank_and_texts_are_compared_so_far() -> None:
    order = RowOrder(0)
    zero, minus = ranks(pa.array([0.0, -0.0]), [0, 1], order)
    assert zero == minus
    quiet, signed = ranks(pa.array([NAN, math.copysign(NAN, -1)]), [0, 1], order)
    assert quiet == signed
    texts = pa.array([LONG, LONG + "a", LONG + "b", LONG[:-1], LONG[:-1] + "y"])
    first, second, third, shorter, above = ranks(texts, range(5), order)
    assert shorter < first == second == third < above
    nested = (pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.month_day_nano_interval())
    assert not any(has_ranks(kind) for kind in nested)


# ---------------------------------------------------------------- cuts


def sampled(file: int, *found: int, length: int = 100) -> SampledBlock:
    return SampledBlock(Block(file, 0, length, len(found), 0), found)


def test_cuts_halve_the_bytes_and_a_dominant_key_stays_whole() -> None:
    even = [sampled(f, *range(f, 90 + f, 10)) for f in range(2)]
    assert choose_cuts(even, 1) == []
    (cut,) = choose_cuts(even, 2)
    assert 35 <= cut <= 45
    assert choose_cuts([sampled(0, *[7] * 9), sampled(1, *[7] * 9)], 4) == []
    hot = [sampled(0, 1, 7, 7, 7, 7, 7, 7, 7, 9)]
    assert choose_cuts(hot, 8) == [7]
    assert choose_cuts([], 3) == []
    # Bytes count, not samples.
    assert choose_cuts([sampled(0, 1, 2, length=1), sampled(0, 5, 6, 7, length=10**9)], 2) == [6]


FILES = st.lists(
    st.lists(
        st.one_of(st.none(), st.integers(-4, 4), st.integers(-(2**63), 2**63 - 1)), max_size=40
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=150, deadline=None)
@given(
    files=FILES,
    count=st.integers(1, 7),
    rows=st.integers(1, 9),
    ascending=st.booleans(),
    nulls_first=st.booleans(),
)
def test_every_row_is_in_one_range_and_ranges_are_in_order(
    files: list[list[int | None]], count: int, rows: int, ascending: bool, nulls_first: bool
) -> None:
    order = RowOrder(0, ascending, nulls_first)
    blocks: list[SampledBlock] = []
    content: dict[Block, pa.RecordBatch] = {}
    for position, values in enumerate(files):
        column = pa.array(values, pa.int64())
        places = ranks(column, range(len(column)), order)
        column = column.take(
            pa.array(sorted(range(len(column)), key=places.__getitem__), pa.int64())
        )
        for start in range(0, len(column), rows):
            batch = pa.record_batch([column.slice(start, rows)], names=["c0"])
            last = batch.num_rows - 1
            found = ranks(batch.column(0), [last * i // 8 for i in range(9)], order)
            block = Block(position, start, 8 * batch.num_rows, batch.num_rows, 0)
            blocks.append(SampledBlock(block, tuple(found)))
            content[block] = batch
    known = SortedBlocks(order, tuple(blocks))
    cuts = choose_cuts(known.blocks, count)
    assert len(cuts) < max(count, 2) and cuts == sorted(set(cuts))
    seen: list[int] = []
    for part in sorted_ranges(known, cuts):
        part = SortedRange.from_dict(json.loads(json.dumps(part.to_dict())))
        found = [
            rank
            for block in part.blocks
            for batch in [part.rows_of(content[block])]
            for rank in ranks(batch.column(0), range(batch.num_rows), order)
        ]
        assert found or not blocks, "no range is without a row"
        assert not seen or not found or max(seen) < min(found)
        seen += sorted(found)
    expected = [
        r
        for values in files
        for r in ranks(pa.array(values, pa.int64()), range(len(values)), order)
    ]
    assert seen == sorted(expected)


# ---------------------------------------------------------------- files


def write(
    store: ObjectStore, files: list[list[Any]], order: RowOrder | None, kind: Any = None
) -> tuple[list[MapFile], Manifest]:
    schema = pa.schema([("c0", pa.int64()), ("c1", kind or pa.string())])
    written = []
    for task, keys in enumerate(files):
        key = layout.map_file(FINGERPRINT, task, layout.new_attempt(0))
        with ShuffleWriter(
            store, key, schema, OutputPartitioning(), batch_rows=8, order=order
        ) as writer:
            columns = [pa.array(range(len(keys)), pa.int64()), pa.array(keys, schema.types[1])]
            batch = pa.RecordBatch.from_arrays(columns, schema=schema)
            for start in range(0, len(keys), 20):
                writer.write(batch.slice(start, 20))
            written.append(MapFile.from_dict(json.loads(json.dumps(writer.close().to_dict()))))
    manifest = commit_manifest(
        store,
        FINGERPRINT,
        written,
        plan_hash="plan",
        query="q",
        stage_id=0,
        engine="duckdb",
        schema=schema,
        partitioning=OutputPartitioning(),
        codec="lz4",
        created_at="2026-01-01T00:00:00Z",
    )
    return written, Manifest.from_json(manifest.to_json(), stage="q", uri="")


def test_a_sorted_file_is_read_by_ranges(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    files: list[list[Any]] = [
        [None, *(f"{n:04}" for n in range(0, 900, 3))],
        [f"{n:04}" for n in range(1, 700, 2)],
        [],
    ]
    _, manifest = write(store, files, RowOrder(1))
    known = load_blocks(store, manifest)
    assert known is not None and known.order == RowOrder(1)
    assert len(known.blocks) > 80
    cuts = choose_cuts(known.blocks, 4)
    parts = sorted_ranges(known, cuts)
    assert len(parts) == 4
    read = []
    for part in parts:
        batches = [part.rows_of(b) for b in read_blocks(store, manifest, part.blocks)]
        keys = [k for b in batches for k in b.column(1).to_pylist()]
        assert len(part.blocks) < len(known.blocks) / 3, "few blocks are read in vain"
        assert abs(len(keys) - 163) < 30
        read += sorted(keys, key=lambda k: (k is not None, k))
    assert read == sorted((k for f in files for k in f), key=lambda k: (k is not None, k))
    assert read_table(store, manifest).num_rows == len(read)


def test_no_blocks_without_an_order_or_where_rows_are_not_in_it(tmp_path: Path) -> None:
    in_order: list[list[Any]] = [[1, 2, 3], [1, 5]]
    cases: list[tuple[list[list[Any]], RowOrder | None, pa.DataType]] = [
        (in_order, None, pa.int64()),
        (in_order, RowOrder(1, ascending=False), pa.int64()),
        ([[3, 2, 1], [1, 5]], RowOrder(1), pa.int64()),
        ([[[1], [2]], [[1]]], RowOrder(1), pa.list_(pa.int64())),
    ]
    for number, (files, order, kind) in enumerate(cases):
        store = open_store(tmp_path / str(number))
        _, manifest = write(store, files, order, kind)
        assert manifest.blocks is None
        assert load_blocks(store, manifest) is None
        assert "blocks" not in manifest.to_dict()["index"]


def test_blocks_of_files_sorted_otherwise_or_of_another_version_are_none(tmp_path: Path) -> None:
    (file,), manifest = write(open_store(tmp_path), [[1, 2]], RowOrder(1), pa.int64())
    assert file.blocks is not None
    assert append_blocks(b"index", [file.blocks, None]) == (b"index", None)
    values = manifest.to_dict()
    values["index"]["blocks"] = {"version": 2, "what": "ever"}
    assert Manifest.from_dict(values).blocks is None


def test_damaged_blocks_are_a_lost_output(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    _, manifest = write(store, [[1, 2]], RowOrder(1), pa.int64())
    assert manifest.blocks is not None
    key = layout.shuffle_file(FINGERPRINT, manifest.index_name)
    content = bytearray(store.read_bytes(key))
    content[manifest.blocks.offset + 3] ^= 1
    store.write_bytes(key, bytes(content))
    with pytest.raises(ManifestError, match="sorted rows is damaged"):
        load_blocks(store, manifest)
    store.delete([key])
    with pytest.raises(ManifestError, match="index not found"):
        load_blocks(store, manifest)
