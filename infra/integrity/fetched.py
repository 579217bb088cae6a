"""Files that are fetched in ranges, checked on the very bytes that are decoded afterwards.

Worker code. For object storage, and for compaction wherever a table is: what it reads wrongly would
be wrong for good.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from stagecoach.infra.integrity import arrow, parquet
from stagecoach.infra.integrity.checksums import unpack_chunks
from stagecoach.infra.integrity.errors import DamagedFileError
from stagecoach.infra.integrity.parquet import REMOTE_PIECE_BYTES, ColumnChunk, Reader
from stagecoach.infra.storage.sized_file import SizedFile

_KEPT_BATCHES = 2  # the first one, which has the schema, and the one that is read


class FetchedChecks:
    """Checks of one Parquet file.

    Args:
        uri: The file.
        checksums: Those of its column chunks, packed; empty to look at the checksums of pages.
        num_chunks: How many column chunks its footer names.

    Raises:
        DamagedFileError: It has another number of column chunks than of checksums.
    """

    def __init__(self, uri: str, checksums: str, num_chunks: int) -> None:
        self._uri = uri
        self._expected = unpack_chunks(checksums) if checksums else None
        if self._expected is not None and len(self._expected) != num_chunks:
            raise DamagedFileError(uri, "its column chunks are not those that have checksums")

    @property
    def by_checksum(self) -> bool:
        """Whether column chunks are compared with checksums of their own."""
        return self._expected is not None

    def check(self, reader: Reader, chunks: Sequence[ColumnChunk]) -> None:
        """Check some column chunks.

        Raises:
            DamagedFileError: One is damaged.
        """
        for chunk in chunks:
            checksum = None if self._expected is None else self._expected[chunk.index]
            problem = parquet.chunk_problem(reader, chunk, checksum, REMOTE_PIECE_BYTES)
            if problem is not None:
                raise DamagedFileError(self._uri, problem, chunk.column, chunk.row_group)


class _CheckedArrowFile(SizedFile):
    """An Arrow file whose segments are fetched whole, checked, and read from memory.

    Args:
        source: The file.
        uri: Its name, for messages.
        segments: What it consists of.

    Raises:
        DamagedFileError: A segment is damaged (also while it is read).
    """

    def __init__(self, source: pa.NativeFile, uri: str, segments: Sequence[arrow.FileSegment]):
        super().__init__(segments[-1].end)
        self._source = source
        self._uri = uri
        self._segments = segments
        self._kept: dict[int, pa.Buffer] = {}

    def read(self, size: int | None = -1, /) -> bytes | pa.Buffer:
        """The next bytes, without a copy where they are of one segment."""
        start, end = self._advance(size)
        parts = []
        for segment in self._segments:
            low, high = max(start, segment.start), min(end, segment.end)
            if low < high:
                content = self._content(segment)
                parts.append(content.slice(low - segment.start, high - low))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    read_buffer = read

    def _content(self, segment: arrow.FileSegment) -> pa.Buffer:
        found = self._kept.pop(segment.index, None)
        if found is None:
            found = pa.py_buffer(self._source.read_at(segment.end - segment.start, segment.start))
            whole = arrow.FileSegment(segment.index, segment.batch, 0, len(found), segment.checksum)
            reader = pa.BufferReader(found)
            if (problem := arrow.segment_problem(reader, whole, max(len(found), 1))) is not None:
                raise DamagedFileError(self._uri, problem, row_group=segment.batch)
        self._kept[segment.index] = found  # the one that was used last is the last
        batches = [i for i in self._kept if i < len(self._segments) - 1]
        for index in batches[:-_KEPT_BATCHES]:
            del self._kept[index]
        return found


def open_checked_arrow(
    source: pa.NativeFile, uri: str, num_bytes: int, checksum: str, segments: str
) -> pa.NativeFile:
    """Return an Arrow file of which nothing unchecked is read.

    Args:
        source: The file.
        uri: Its name, for messages.
        num_bytes: Its size.
        checksum: CRC-32C of the whole file, 8 hex digits.
        segments: Checksums of its segments, packed; empty if there are none.

    Raises:
        DamagedFileError: It has another size.
    """
    try:
        known = arrow.file_segments(num_bytes, checksum, segments)
    except ValueError as error:
        raise DamagedFileError(uri, str(error)) from error
    return pa.PythonFile(_CheckedArrowFile(source, uri, known), mode="r")
