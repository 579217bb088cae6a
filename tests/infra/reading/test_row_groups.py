"""Parquet files that are not local: what of them is asked for, when, and the rows that come."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagecoach.infra.engines.duckdb.engine import DuckDbEngine
from stagecoach.infra.engines.protocol import Fragment, Resources
from stagecoach.infra.errors import StorageError
from stagecoach.infra.reading import parquet, row_groups
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.inputs import ArrowInput, LeafColumn, ParquetInput
from stagecoach.infra.reading.row_groups import read_row_groups
from stagecoach.infra.storage.fsspec_store import FsspecStore
from stagecoach.planner.types import BIGINT
from tests.s3_server import S3Server, s3_server

__all__ = ["s3_server"]

MB = 1 << 20
ROWS = 10_000  # of a row group: 80 kB for each column


class Asked(io.BytesIO):
    """A file that notes what is read of it, as a store's random-access file is read."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.ranges: list[tuple[int, int]] = []
        self.fails_at = 1 << 60

    def read(self, size: int | None = -1, /) -> bytes:
        start = self.tell()
        if start >= self.fails_at:
            raise StorageError("the store is away")
        found = super().read(size)
        self.ranges.append((start, start + len(found)))
        return found

    @property
    def num_bytes(self) -> int:
        return sum(end - start for start, end in self.ranges)


def file_of(table: pa.Table, group_rows: int = ROWS, **options: Any) -> Asked:
    sink = io.BytesIO()
    options = {"compression": "none", "use_dictionary": False, **options}
    pq.write_table(table, sink, row_group_size=group_rows, **options)
    return Asked(sink.getvalue())


def noise(groups: int, columns: str = "kxv") -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table({name: rng.integers(0, 1 << 60, groups * ROWS) for name in columns})


def opened(file: Asked) -> tuple[pa.NativeFile, pq.FileMetaData]:
    source = pa.PythonFile(file, mode="r")
    metadata = pq.read_metadata(source)
    file.ranges.clear()
    return source, metadata


def read(file: Asked, columns: Sequence[str], memory_bytes: int) -> Iterator[pa.RecordBatch]:
    source, metadata = opened(file)
    groups = range(metadata.num_row_groups)
    return read_row_groups(source, metadata, list(groups), columns, memory_bytes)


# ---------------------------------------------------------------- memory and requests


def test_no_more_is_asked_for_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a scan, however large the file is: before the first batch leaves, and after each one."""
    file = file_of(noise(100))  # 24 MB
    source, metadata = opened(file)
    bound = 2 * MB

    monkeypatch.setattr(parquet, "opened_unchanged", lambda *_: nullcontext(source))
    columns = tuple(LeafColumn(f"c{i}", name, BIGINT) for i, name in enumerate("kxv"))
    rows = DataFile("s3://b/t/a.parquet", metadata.num_rows)
    data_bytes = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    asked = seen = 0
    for batch in parquet.read_parquet_batches(ParquetInput(columns, (rows,), memory_bytes=bound)):
        # The last of them are the footer's.
        asked = sum(end - start for start, end in file.ranges if start < data_bytes)
        assert asked - seen * 3 * 8 <= bound + ROWS * 3 * 8, seen
        seen += batch.num_rows
    assert seen == metadata.num_rows
    assert data_bytes <= asked < data_bytes * 1.02


def test_neighbours_are_one_request() -> None:
    """30 row groups of 240 kB within 2 MB: 8 of them make up a window, of which two may be there."""
    file = file_of(noise(30))
    for batch in read(file, "kxv", 4 * MB):
        assert batch.num_rows <= 30 * ROWS
    assert len(file.ranges) == 4
    assert file.num_bytes <= len(file.getvalue())


def test_columns_far_from_others_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_groups, "_HOLE_BYTES", 10_000)
    file = file_of(noise(6))
    table = pa.Table.from_batches(read(file, "k", 64 * MB))
    assert table.num_rows == 6 * ROWS
    assert len(file.ranges) == 6
    assert file.num_bytes < 6 * ROWS * 8 * 1.02
    # One request is cheaper than two and a small hole.
    monkeypatch.setattr(row_groups, "_HOLE_BYTES", ROWS * 9)
    pa.Table.from_batches(read(file, ["k", "v"], 64 * MB))
    assert len(file.ranges) == 1


def test_a_large_range_is_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_groups, "_REQUEST_BYTES", 100_000)
    table = noise(2)
    file = file_of(table)
    assert pa.Table.from_batches(read(file, "kxv", 64 * MB)).equals(table)
    in_order = sorted(file.ranges)  # threads send them: the last may be the first
    assert {end - start for start, end in in_order[:-1]} == {100_000}
    assert file.num_bytes < len(file.getvalue())


@pytest.mark.s3
def test_requests_are_under_way_at_the_same_time(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of one window: the first is answered only once the second is sent."""
    table = noise(2)
    store = FsspecStore(s3_server.new_root(), s3_server.options)
    store.write_bytes("t.parquet", file_of(table).getvalue())
    source = store.open_input("t.parquet")
    metadata = pq.read_metadata(source)
    both = threading.Barrier(2, timeout=120)
    real = FsspecStore._call

    def together(self: FsspecStore, *args: Any, **options: Any) -> Any:
        both.wait()
        return real(self, *args, **options)

    monkeypatch.setattr(FsspecStore, "_call", together)
    monkeypatch.setattr(row_groups, "_REQUEST_BYTES", 250_000)  # two for 480 kB
    batches = read_row_groups(source, metadata, [0, 1], list("kxv"))
    assert pa.Table.from_batches(batches).equals(table)


def test_a_row_group_beyond_the_bound_is_read_by_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_groups, "_PAGE_BYTES", 4096)
    table = noise(2)
    file = file_of(table, data_page_size=2048, write_batch_size=128)
    bound = 60_000
    first = True
    found = []
    for batch in read(file, "kxv", bound):
        if first:
            # What a batch takes, for it is all decoded, and a piece of each column.
            assert file.num_bytes < batch.num_rows * 3 * 8 + 2 * bound
            first = False
        found.append(batch)
    assert max(end - start for start, end in file.ranges) <= bound // 2
    assert pa.Table.from_batches(found).equals(table)


def test_wide_rows_come_in_small_batches() -> None:
    """10 kB a row: 131,072 of them would be 1.3 GB."""
    texts = pa.table({"s": ["x" * 10_000 + str(i) for i in range(5000)]})
    batches = list(read(file_of(texts, 5000), "s", 128 * MB))
    assert max(batch.nbytes for batch in batches) < 32 * MB
    short = pa.table({"s": ["same"] * 40_000, "l": [[1]] * 40_000})
    found = [b.num_rows for b in read(file_of(short, 40_000, use_dictionary=True), "sl", 128 * MB)]
    assert max(found) == 1 << 14
    found = [b.num_rows for b in read(file_of(noise(40), 40 * ROWS), "k", 128 * MB)]
    assert max(found) == 1 << 17


# ---------------------------------------------------------------- rows

TABLE = pa.table(
    {
        "a": pa.array(range(97), pa.int32()),
        "b.c": [None if i % 3 else f"text {i}" for i in range(97)],
        "s": [{"x": i, "y": [i] * (i % 4)} if i % 5 else None for i in range(97)],
        "m": pa.array([[(f"k{i}", i)] for i in range(97)], pa.map_(pa.string(), pa.int64())),
        "b": [i % 2 == 0 for i in range(97)],
    }
)


@settings(max_examples=80, deadline=None)
@given(
    group_rows=st.integers(1, 50),
    columns=st.lists(st.sampled_from(TABLE.column_names), unique=True),
    memory_bytes=st.sampled_from([1, 300, 2_000, 1 << 20]),
    cuts=st.lists(st.integers(0, 97), max_size=6),
    dictionary=st.booleans(),
)
def test_any_rows_and_columns(
    group_rows: int, columns: list[str], memory_bytes: int, cuts: list[int], dictionary: bool
) -> None:
    """Ranges of rows that may share a row group, through windows of any size."""
    file = file_of(TABLE, group_rows, use_dictionary=dictionary)
    source, metadata = opened(file)
    ends = sorted(set(cuts))
    ranges = list(zip(ends[::2], ends[1::2], strict=False))
    files = [DataFile("f", 97, rows=(low, high)) for low, high in ranges]
    every = [True] * metadata.num_row_groups
    groups, meant = parquet.select_groups(metadata, files, every)
    assert groups == sorted(set(groups))
    batches = list(
        parquet._cut(read_row_groups(source, metadata, groups, columns, memory_bytes), meant)
    )
    expected = pa.concat_tables([TABLE.slice(a, b - a) for a, b in ranges] or [TABLE.slice(0, 0)])
    assert sum(batch.num_rows for batch in batches) == expected.num_rows
    if columns and batches:
        found = pa.Table.from_batches(batches)
        assert found.select(columns).to_pylist() == expected.select(columns).to_pylist()


# ---------------------------------------------------------------- failures and the end


def test_what_fails_ahead_of_the_reader_reaches_it() -> None:
    file = file_of(noise(20))
    batches = read(file, "kxv", MB)
    file.fails_at = 2 * MB
    seen = 0
    with pytest.raises(StorageError, match="away"):
        for batch in batches:
            seen += batch.num_rows
    assert seen > 0


def test_a_reader_that_has_enough_leaves_nothing_behind() -> None:
    before = set(threading.enumerate())
    file = file_of(noise(40))
    batches = read(file, "kxv", MB)
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    asked = file.num_bytes
    assert not set(threading.enumerate()) - before  # those of other tests may end meanwhile
    assert asked <= MB


def test_an_input_that_is_not_streamed_may_spill(tmp_path: Path) -> None:
    """The second side of a join is a table of DuckDB's own where it is large, not one of Arrow's."""
    batches_of = pa.table({"c0": range(10)}).to_batches
    database = Resources(time_zone="UTC", memory_bytes=64 * MB, spill_dir=str(tmp_path / "spill"))
    columns = (LeafColumn("c0", "k", BIGINT),)
    sql = (
        "SELECT (SELECT count(*) FROM duckdb_tables() WHERE table_name = 'in_1') AS n, count(*) "
        "AS m FROM in_0, in_1 WHERE in_0.c0 = in_1.c0"
    )
    schema = pa.schema([("n", pa.int64()), ("m", pa.int64())])
    for num_bytes, tables in ((4 * MB, 0), (160 * MB, 1)):
        leaf = ArrowInput(columns, lambda: iter(batches_of()), num_bytes)
        with DuckDbEngine().run(Fragment.of(sql, [leaf, leaf], schema), database) as batches:
            rows = pa.Table.from_batches(batches).to_pylist()
        assert rows == [{"n": tables, "m": 10}]
