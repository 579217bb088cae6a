"""Pages of a Parquet column chunk, checked against the checksums in their own headers.

Worker code. Writers such as parquet-mr (Spark, Hive, Flink) and pyarrow can put a CRC-32 of each
page's stored bytes into its header. This walks from header to header and compares, without
decompressing or decoding anything, which is several times faster than a pass with a Parquet reader.
A column chunk whose first page has no checksum has none at all and is left after its first header.

Headers themselves have no checksum. The walk finds those with which the pages do not fill the
column chunk exactly.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

_WINDOW_BYTES = 1 << 20
_FIRST_BYTES = 4 << 10
_MAX_HEADER_BYTES = 16 << 20
_PAGE_TYPES = 4

Read = Callable[[int, int], bytes]
"""Gives so many bytes (or fewer at the end of the file) from an offset on."""


class PageError(Exception):
    """A page is not what its header says."""


@dataclass(frozen=True)
class PageHeader:
    """What is needed of a page's header.

    Args:
        kind: Type of the page, as the format numbers them.
        num_bytes: Stored size of the page, without the header.
        checksum: CRC-32 of these bytes, or None.
        length: Size of the header.
    """

    kind: int
    num_bytes: int
    checksum: int | None
    length: int


def check_pages(read: Read, start: int, end: int) -> bool:
    """Check all pages of a column chunk.

    Args:
        read: Reads the file.
        start: First byte of the column chunk.
        end: The byte after its last one.

    Returns:
        Whether its pages have checksums.

    Raises:
        PageError: A page is damaged.
    """
    # Most files have no checksums: their column chunks are left after a few bytes.
    pages = _Bytes(read, start, end)
    number = 0
    while pages.position < end:
        header = pages.header(number)
        if header.checksum is None:
            if number == 0:
                return False
            raise PageError(f"the header of page {number} has lost its checksum")
        found = pages.skip(header.num_bytes, number)
        if found != header.checksum:
            raise PageError(
                f"page {number} does not have its checksum "
                f"({found:08x} instead of {header.checksum:08x})"
            )
        number += 1
    return True


class _Bytes:
    """A window on the bytes of a column chunk, which moves forward."""

    def __init__(self, read: Read, start: int, end: int) -> None:
        self.position = start
        self._read = read
        self._end = end
        self._window = b""
        self._start = start
        self._next_bytes = _FIRST_BYTES

    def header(self, number: int) -> PageHeader:
        """The header at the position, which moves to its end."""
        while True:
            offset = self.position - self._start
            try:
                found = read_header(self._window, offset)
                break
            except IndexError:
                have = len(self._window) - offset
                if have >= min(self._end - self.position, _MAX_HEADER_BYTES):
                    raise PageError(f"the header of page {number} cannot be read") from None
                self._fill(max(2 * have, self._next_bytes))
                if len(self._window) <= have:
                    raise PageError(f"the file ends within the header of page {number}") from None
            except ValueError as error:
                raise PageError(f"the header of page {number} cannot be read: {error}") from error
        self.position += found.length
        if self.position + found.num_bytes > self._end:
            raise PageError(f"page {number} goes beyond its column chunk")
        return found

    def skip(self, num_bytes: int, number: int) -> int:
        """Move over the bytes of a page and return their CRC-32."""
        checksum, left = 0, num_bytes
        while left:
            offset = self.position - self._start
            if offset >= len(self._window):
                self._fill(_WINDOW_BYTES)
                offset = 0
                if not self._window:
                    raise PageError(f"the file ends within page {number}")
            piece = memoryview(self._window)[offset : offset + left]
            checksum = zlib.crc32(piece, checksum)
            self.position += len(piece)
            left -= len(piece)
        return checksum

    def _fill(self, num_bytes: int) -> None:
        self._window = self._read(self.position, min(num_bytes, self._end - self.position))
        self._start = self.position
        self._next_bytes = _WINDOW_BYTES


def read_header(data: bytes, offset: int) -> PageHeader:
    """Return the page header at an offset: a struct of Thrift's compact protocol.

    Raises:
        IndexError: The data end within it.
        ValueError: It is not a page header.
    """
    start = offset
    values: dict[int, int] = {}
    number = 0
    while kind_byte := data[offset]:
        offset += 1
        kind, step = kind_byte & 15, kind_byte >> 4
        if step:
            number += step
        else:
            raw, offset = _varint(data, offset)
            number = _signed(raw)
        if kind in (4, 5, 6):
            raw, offset = _varint(data, offset)
            values[number] = _signed(raw)
        else:
            offset = _skip(data, offset, kind)
    kind, num_bytes, checksum = values.get(1, -1), values.get(3, -1), values.get(4)
    if not 0 <= kind < _PAGE_TYPES or num_bytes < 0:
        raise ValueError("it has no type or no size")
    if checksum is not None:
        checksum &= 0xFFFFFFFF
    return PageHeader(kind, num_bytes, checksum, offset + 1 - start)


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[offset]
        offset += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, offset
        shift += 7
        if shift > 63:
            raise ValueError("a number has too many bytes")


def _signed(value: int) -> int:
    return value >> 1 ^ -(value & 1)


def _skip(data: bytes, offset: int, kind: int, depth: int = 0) -> int:
    """The offset after a value that is not needed."""
    if depth > 16:
        raise ValueError("it is nested too deeply")
    match kind:
        case 1 | 2:  # a Boolean field, which is all in its type
            return offset
        case 3:
            return offset + 1
        case 4 | 5 | 6:
            return _varint(data, offset)[1]
        case 7:
            return offset + 8
        case 8:
            length, offset = _varint(data, offset)
            return offset + length
        case 9 | 10:
            return _skip_list(data, offset, depth)
        case 12:
            while head := data[offset]:
                offset += 1
                if not head >> 4:
                    offset = _varint(data, offset)[1]
                offset = _skip(data, offset, head & 15, depth + 1)
            return offset + 1
    raise ValueError(f"it has a value of the unknown type {kind}")


def _skip_list(data: bytes, offset: int, depth: int) -> int:
    head = data[offset]
    offset += 1
    length, kind = head >> 4, head & 15
    if length == 15:
        length, offset = _varint(data, offset)
    for _ in range(length):
        offset = offset + 1 if kind in (1, 2) else _skip(data, offset, kind, depth + 1)
        data[offset - 1]  # IndexError where the data end
    return offset
