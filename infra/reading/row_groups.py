"""Reads row groups of a remote Parquet file within a bound of memory.

Worker code. Neighbouring row groups make a window. The chosen columns of a window are fetched with
few requests, several at a time, while the rows of the window before are decoded:

    row groups   | 0  1  2 | 3  4  5 | 6 …
    requests     | ═══════ | ═══════ |        small holes between column chunks are read, too

What is fetched stays within a bound, whatever the file: a row group of more than half of it is not
fetched ahead, and one of more than all of it is read page by page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from stagecoach.infra.integrity.fetched import FetchedChecks
from stagecoach.infra.integrity.parquet import ColumnChunk, Reader, chunk_range
from stagecoach.infra.storage.sized_file import SizedFile, read_into

DEFAULT_MEMORY_BYTES = 128 << 20
"""Bound of the bytes that are fetched and not yet decoded, if none is given."""

_WINDOW_BYTES = 16 << 20  # that small row groups are put together to
_REQUEST_BYTES = 8 << 20  # the parts of a larger range come over several connections
_MAX_REQUESTS = 4  # at a time: one connection to S3 gives less than 100 MB a second
_HOLE_BYTES = 1 << 20  # another request takes longer than these
_PAGE_BYTES = 1 << 20  # read at once of a column that is read page by page, at least
_BATCH_BYTES = 16 << 20
_BATCH_ROWS = 1 << 17
_WIDE_BATCH_ROWS = 1 << 14  # where a dictionary may hide how long values are
_VECTOR_ROWS = 1 << 11  # that DuckDB handles at once

_Range = tuple[int, int]  # the first byte and the one after the last


@dataclass(frozen=True)
class Window:
    """Neighbouring row groups that are fetched together.

    Args:
        groups: Their numbers.
        ranges: Bytes of the file that hold the chosen columns, in order.
        chunks: Chosen columns of each of them, each member of nested ones.
        batch_rows: Rows to decode at once.
    """

    groups: tuple[int, ...]
    ranges: tuple[_Range, ...]
    chunks: tuple[ColumnChunk, ...]
    batch_rows: int

    @property
    def num_bytes(self) -> int:
        """Bytes of all ranges."""
        return sum(end - start for start, end in self.ranges)

    def with_next(self, following: Window) -> Window:
        """Both windows as one."""
        return Window(
            (*self.groups, *following.groups),
            _merged((*self.ranges, *following.ranges)),
            (*self.chunks, *following.chunks),
            min(self.batch_rows, following.batch_rows),
        )


def read_row_groups(
    source: pa.NativeFile,
    metadata: pq.FileMetaData,
    groups: Sequence[int],
    columns: Sequence[str],
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    checks: FetchedChecks | None = None,
    ahead_bytes: int = 0,
) -> Iterator[pa.RecordBatch]:
    """The rows of some row groups, in that order.

    Args:
        source: The file, open until the last batch is given.
        metadata: Its footer.
        groups: Numbers of the row groups.
        columns: Top-level columns as the file spells them; none gives batches of the right length.
        memory_bytes: Bound of the bytes that are fetched and not yet decoded.
        checks: Checks what is fetched before it is decoded.
        ahead_bytes: The first window is requested immediately if it is not larger than this, and
            otherwise when the first batch is read.

    Raises:
        DamagedFileError: The file is damaged, which the checks found.
        pa.ArrowException: The file is damaged, which decoding found.
        StorageError: The store refuses or fails.
    """
    windows = windows_of(metadata, groups, columns, memory_bytes)
    pool = ThreadPoolExecutor(_MAX_REQUESTS, "parquet-read")
    first: list[Part] | None = None
    if windows and windows[0].num_bytes <= min(ahead_bytes, memory_bytes):
        first = fetch(pool, source, windows[0].ranges)
    return _rows(source, metadata, windows, columns, memory_bytes, checks, pool, first)


def _rows(
    source: pa.NativeFile,
    metadata: pq.FileMetaData,
    windows: Sequence[Window],
    columns: Sequence[str],
    memory_bytes: int,
    checks: FetchedChecks | None,
    pool: ThreadPoolExecutor,
    ahead: list[Part] | None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of windows; `ahead` holds the first one if it was requested already."""
    file = _FetchedFile(source)
    try:
        for position, window in enumerate(windows):
            page_bytes = 0
            if window.num_bytes > memory_bytes:
                page_bytes = _page_bytes(window, memory_bytes)
            else:
                file.parts = ahead or fetch(pool, source, window.ranges)
            ahead = None
            following = windows[position + 1 : position + 2]
            if following and window.num_bytes + following[0].num_bytes <= memory_bytes:
                ahead = fetch(pool, source, following[0].ranges)
            if checks is not None and not page_bytes:
                checks.check(file, window.chunks)
            elif checks is not None and checks.by_checksum:
                # Twice as much is fetched, of row groups that our own writers do not make.
                checks.check(source, window.chunks)
            verify = page_bytes > 0 and checks is not None
            yield from _decode(file, metadata, window, columns, page_bytes, verify=verify)
            file.parts = []
    finally:
        pool.shutdown(cancel_futures=True)


def _decode(
    file: _FetchedFile,
    metadata: pq.FileMetaData,
    window: Window,
    columns: Sequence[str],
    page_bytes: int,
    *,
    verify: bool,
) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(
        pa.PythonFile(file, mode="r"),
        metadata=metadata,
        buffer_size=page_bytes,
        pre_buffer=False,
        coerce_int96_timestamp_unit="us",
        page_checksum_verification=verify,
    ) as parquet:
        yield from parquet.iter_batches(
            window.batch_rows, row_groups=list(window.groups), columns=list(columns)
        )


def windows_of(
    metadata: pq.FileMetaData, groups: Sequence[int], columns: Sequence[str], memory_bytes: int
) -> list[Window]:
    """Row groups in windows that are fetched together, in their order.

    Args:
        metadata: The footer.
        groups: Numbers of the row groups.
        columns: Top-level columns as the file spells them.
        memory_bytes: Bound of what is fetched and not yet decoded.
    """
    leaves = _leaves(metadata.schema, columns)
    goal = min(_WINDOW_BYTES, memory_bytes // 2)
    windows: list[Window] = []
    for number in groups:
        group = metadata.row_group(number)
        columns_of = [group.column(leaf) for leaf in leaves]
        chunks = tuple(
            ColumnChunk(
                number * metadata.num_columns + leaf,
                number,
                stored.path_in_schema,
                *chunk_range(stored),
            )
            for leaf, stored in zip(leaves, columns_of, strict=True)
        )
        found = Window(
            (number,),
            _merged((chunk.start, chunk.end) for chunk in chunks),
            chunks,
            _batch_rows(group, columns_of),
        )
        both = windows[-1].with_next(found) if windows else found
        if windows and both.num_bytes <= goal:
            windows[-1] = both
        else:
            windows.append(found)
    return windows


def _page_bytes(window: Window, memory_bytes: int) -> int:
    """How much is read at once of each column of a window that is read page by page."""
    share = memory_bytes // 2 // max(len(window.chunks), 1)
    return min(_REQUEST_BYTES, max(_PAGE_BYTES, share))


def _leaves(schema: pq.ParquetSchema, columns: Sequence[str]) -> list[int]:
    """The leaf columns of some top-level ones, as pyarrow finds them."""
    inner = tuple(f"{name}." for name in columns)
    paths = [schema.column(i).path for i in range(len(schema))]
    return [i for i, path in enumerate(paths) if path in columns or path.startswith(inner)]


def _merged(ranges: Iterable[_Range]) -> tuple[_Range, ...]:
    """The ranges in order, those with a small hole between them as one."""
    merged: list[_Range] = []
    for start, end in sorted(ranges):
        if merged and start - merged[-1][1] <= _HOLE_BYTES:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return tuple(merged)


def _batch_rows(group: pq.RowGroupMetaData, chunks: Sequence[pq.ColumnChunkMetaData]) -> int:
    """How many rows of a row group to decode at once."""
    num_bytes = sum(chunk.total_uncompressed_size for chunk in chunks)
    rows = _BATCH_BYTES * max(group.num_rows, 1) // max(num_bytes, 1)
    fixed = all(c.physical_type != "BYTE_ARRAY" and c.num_values <= group.num_rows for c in chunks)
    most = _BATCH_ROWS if fixed else _WIDE_BATCH_ROWS
    return max(_VECTOR_ROWS, min(rows // _VECTOR_ROWS * _VECTOR_ROWS, most))


def fetch(pool: ThreadPoolExecutor, source: Reader, ranges: Sequence[_Range]) -> list[Part]:
    """Ask for ranges of a file; they are there once their requests are answered."""
    return [Part(pool, source, start, end) for start, end in ranges if start < end]


class Part:
    """A range of a file that arrives in answers to several requests.

    Args:
        pool: Asks for it.
        source: The file.
        start: Its first byte.
        end: The byte after its last one.
    """

    def __init__(self, pool: ThreadPoolExecutor, source: Reader, start: int, end: int) -> None:
        self.start = start
        self.end = end
        self._source = source
        self._bytes = pa.allocate_buffer(end - start)
        self._requests: list[Future[None]] = [
            pool.submit(self._request, low, min(low + _REQUEST_BYTES, end))
            for low in range(start, end, _REQUEST_BYTES)
        ]

    def read(self, start: int, length: int) -> pa.Buffer:
        """Some of its bytes, without a copy, once all of them are there.

        Raises:
            EOFError: The file ends before the range does.
            StorageError: The store refuses or fails.
        """
        for request in self._requests:
            request.result()
        self._requests = []
        return self._bytes.slice(start - self.start, length)

    def _request(self, start: int, end: int) -> None:
        place = memoryview(self._bytes).cast("B")[start - self.start : end - self.start]
        count = read_into(self._source, place, start)
        if count != end - start:
            raise EOFError(f"the file ends at byte {start + count}, its footer tells more")


class _FetchedFile(SizedFile):
    """A file of which some parts are at hand; others are read when they are asked for.

    Args:
        source: The file.

    Attributes:
        parts: What is at hand, or asked for.
    """

    def __init__(self, source: pa.NativeFile) -> None:
        super().__init__(source.size())
        self.parts: list[Part] = []
        self._source = source

    def read(self, size: int | None = -1, /) -> pa.Buffer:
        """The next bytes, without a copy where they are at hand."""
        start, end = self._advance(size)
        for part in self.parts:
            if part.start <= start and end <= part.end:
                return part.read(start, end - start)
        return pa.py_buffer(self._source.read_at(end - start, start))

    read_buffer = read

    def read_at(self, nbytes: int, offset: int) -> pa.Buffer:
        """Bytes from an offset on, without a copy where they are at hand."""
        self._position = offset
        return self.read(nbytes)
