"""A remote file whose end is at hand, so that looking at its footer takes one request.

Worker code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stagecoach.infra.storage.sized_file import copy_into, read_into

if TYPE_CHECKING:
    import pyarrow as pa

TAIL_BYTES = 64 << 10
"""The end of a file in which most footers are whole."""


class TailedFile:
    """A file that keeps its last bytes in memory, and more of them once these are read.

    Args:
        source: The file, open.
        tail_bytes: How many are read at once; no more than the file has.
    """

    def __init__(self, source: pa.NativeFile, tail_bytes: int = TAIL_BYTES) -> None:
        self._source = source
        self._size: int = source.size()
        start = max(self._size - tail_bytes, 0)
        # Replaced as a whole: several threads read.
        self._tail = start, bytes(source.read_at(self._size - start, start))

    @property
    def is_at_hand(self) -> bool:
        """Whether all of the file is in memory."""
        return not self._tail[0]

    def size(self) -> int:
        """Bytes of the file."""
        return self._size

    def read_at(self, nbytes: int, offset: int) -> bytes:
        """Some bytes, as `pyarrow.NativeFile.read_at` reads them."""
        start, content = self._tail
        if offset >= start:
            return content[offset - start : offset - start + nbytes]
        found: bytes = self._source.read_at(nbytes, offset)
        if offset + nbytes >= self._size:
            self._tail = offset, found  # the footer is larger than was expected
        return found

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Read bytes into memory; return how many, fewer only where the file ends."""
        start, _ = self._tail
        if offset < start and offset + len(buffer) < self._size:
            return read_into(self._source, buffer, offset)
        return copy_into(self, buffer, offset)
