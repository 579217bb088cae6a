"""Any thread may read anything of a remote file, and no more of it is held than is allowed."""

from __future__ import annotations

import io
import itertools
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.errors import InputLostError
from stagecoach.infra.integrity.errors import DamagedFileError
from stagecoach.infra.integrity.fetched import FetchedChecks
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.row_groups import windows_of
from stagecoach.infra.reading.tailed_file import TailedFile
from stagecoach.infra.reading.windowed_file import WindowCache, WindowedFile
from stagecoach.infra.storage.object_store import ObjectMissingError

ROWS = 2_000
GROUPS = 40


class Source:
    """A file that notes what is asked of it."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.asked: list[tuple[int, int]] = []
        self.error: Exception | None = None
        self._lock = threading.Lock()

    def size(self) -> int:
        return len(self.content)

    def read_at(self, nbytes: int, offset: int) -> bytes:
        if self.error is not None:
            raise self.error
        with self._lock:
            self.asked.append((offset, nbytes))
        return self.content[offset : offset + nbytes]


def parquet_bytes(columns: str = "abcd", *, checksums: bool = False) -> bytes:
    rng = np.random.default_rng(5)
    table = pa.table({name: rng.integers(0, 1 << 60, GROUPS * ROWS) for name in columns})
    sink = io.BytesIO()
    pq.write_table(
        table,
        sink,
        row_group_size=ROWS,
        compression="none",
        use_dictionary=False,
        write_page_checksum=checksums,
    )
    return sink.getvalue()


def windowed(
    source: Source, cache: WindowCache, columns: str, checks: FetchedChecks | None = None
) -> WindowedFile:
    metadata = pq.read_metadata(io.BytesIO(source.content))
    windows = windows_of(metadata, range(GROUPS), list(columns), cache.memory_bytes)
    file = DataFile("s3://bucket/t.parquet", GROUPS * ROWS, num_bytes=source.size())
    opened = TailedFile(cast("Any", source))
    source.asked.clear()
    return WindowedFile(file, None, opened, windows, cache, checks)


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[WindowCache]:
    """One whose bound is looked at whenever something is held."""
    found = WindowCache(400_000)
    ask = found._ask

    def watched(*args: Any) -> Any:
        result = ask(*args)
        assert found._num_bytes == sum(one.num_bytes for one in found._held.values())
        assert found._num_bytes <= found.memory_bytes
        return result

    monkeypatch.setattr(found, "_ask", watched)
    yield found
    found.close()


@pytest.mark.parametrize("columns", ["a", "bd", "abcd", ""])
def test_all_that_is_read_is_what_the_file_has(columns: str, cache: WindowCache) -> None:
    source = Source(parquet_bytes())
    file = windowed(source, cache, columns)

    def read(seed: int) -> None:
        chosen = random.Random(seed)
        for _ in range(200):
            start = chosen.randrange(len(source.content))
            size = chosen.choice([1, 100, 16_000, 100_000])
            assert bytes(file.read_at(size, start)) == source.content[start : start + size]

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(read, seed) for seed in range(8)]:
            done.result()


def chunk_ranges(content: bytes, columns: str) -> list[tuple[int, int]]:
    """Where the column chunks are, in the order in which a scan reads them."""
    metadata = pq.read_metadata(io.BytesIO(content))
    chunks = []
    for group in range(GROUPS):
        for name in columns:
            column = metadata.row_group(group).column("abcd".index(name))
            chunks.append((column.data_page_offset, column.total_compressed_size))
    return chunks


def test_a_scan_asks_for_everything_once_and_ahead(cache: WindowCache) -> None:
    source = Source(parquet_bytes())
    file = windowed(source, cache, "bd")
    file.begin(1 << 20)
    for start, size in chunk_ranges(source.content, "bd"):
        assert bytes(file.read_at(size, start)) == source.content[start : start + size]
    ranges = sorted(source.asked)
    assert all(a + n <= b for (a, n), (b, _) in itertools.pairwise(ranges))
    assert len(ranges) < GROUPS, "neighbouring row groups are fetched together"


def test_a_row_group_that_is_too_large_is_read_piece_by_piece() -> None:
    source = Source(parquet_bytes())
    cache = WindowCache(20_000)
    file = windowed(source, cache, "ab")
    for start, size in chunk_ranges(source.content, "ab"):
        assert bytes(file.read_at(size, start)) == source.content[start : start + size]
    assert not cache._held
    in_tail = len(source.content) - (64 << 10)
    assert source.asked == [one for one in chunk_ranges(source.content, "ab") if one[0] < in_tail]


@pytest.mark.parametrize("memory_bytes", [400_000, 20_000])
def test_damage_is_found_before_a_byte_of_it_is_given(memory_bytes: int) -> None:
    content = bytearray(parquet_bytes("abcd", checksums=True))
    (start, size), *_ = chunk_ranges(bytes(content), "c")
    content[start + size // 2] ^= 1
    source = Source(bytes(content))
    cache = WindowCache(memory_bytes)
    file = windowed(source, cache, "abcd", FetchedChecks("s3://bucket/t.parquet", "", 0))
    for _ in range(2):  # it stays damaged
        with pytest.raises(DamagedFileError, match=r"column 'c', row group 0"):
            file.read_at(100, start)
    (good, size), *_ = chunk_ranges(bytes(content), "c")[GROUPS - 1 :]
    assert bytes(file.read_at(size, good)) == content[good : good + size]
    cache.close()


@pytest.mark.parametrize("memory_bytes", [400_000, 20_000])
def test_a_read_across_columns_gives_no_unchecked_byte(memory_bytes: int) -> None:
    """DuckDB may read over what lies between two chosen columns, and over two windows at once."""
    content = bytearray(parquet_bytes("abcd", checksums=True))
    ranges = chunk_ranges(bytes(content), "ad")
    (first, _), (damaged, size), *_ = ranges
    content[damaged + size // 2] ^= 1
    cache = WindowCache(memory_bytes)
    checks = FetchedChecks("s3://bucket/t.parquet", "", 0)
    file = windowed(Source(bytes(content)), cache, "ad", checks)
    with pytest.raises(DamagedFileError, match=r"column 'd', row group 0"):
        file.read_at(damaged + size - first, first)
    with pytest.raises(DamagedFileError, match=r"column 'd', row group 0"):
        file.read_at(len(content), 0)
    cache.close()


def test_a_file_that_goes_is_a_lost_input(cache: WindowCache) -> None:
    source = Source(parquet_bytes())
    file = windowed(source, cache, "a")
    source.error = ObjectMissingError("gone")
    with pytest.raises(InputLostError, match="there is no such file"):
        file.read_at(100, 10)
