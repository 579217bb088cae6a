"""A file of a known size that is read at any place: what Python and Arrow ask of one.

Worker code.
"""

from __future__ import annotations

import io
from typing import Any


class SizedFile(io.RawIOBase):
    """A file that can be read and sought in; `read` is left to those that know its bytes.

    Args:
        size: Its size in bytes.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return where the next read begins."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Set where the next read begins, and return it."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position

    def _advance(self, size: int | None) -> tuple[int, int]:
        """The range of the next `size` bytes (all if None or negative), which count as read."""
        start = self._position
        left = max(self._size - start, 0)
        end = start + (left if size is None or size < 0 else min(size, left))
        self._position = end
        return start, end


def read_into(source: Any, buffer: memoryview, offset: int) -> int:
    """Read a range of a file into memory, without a copy where the file can do that.

    Args:
        source: Has `read_at`, and perhaps `read_into`.
        buffer: As long as the range.
        offset: The first byte.

    Returns:
        How many bytes were read; fewer only where the file ends.
    """
    own = getattr(source, "read_into", None)
    if own is not None:
        count: int = own(buffer, offset)
        return count
    return copy_into(source, buffer, offset)


def copy_into(source: Any, buffer: memoryview, offset: int) -> int:
    """Do what `read_into` does, with `read_at` alone."""
    content = source.read_at(len(buffer), offset)
    buffer[: len(content)] = content
    return len(content)
