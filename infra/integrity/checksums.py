"""CRC-32C of the parts of a file, computed while it is written and kept in the table's version.

Worker code. A Parquet file has one checksum for each column chunk (its dictionary page, page
headers and data pages), row group by row group; its footer has a checksum of its own. An Arrow file
is a row of segments: what stands before the first record batch, each record batch, and the rest.

The bounds of a column chunk are known only from the footer, after its bytes have passed. So a sink
keeps the checksum of everything up to the end of each write, and the checksum of a range follows
from those at its two ends.
"""

from __future__ import annotations

import base64
import binascii
import bisect
import functools
import struct
from collections.abc import Iterable
from typing import Any

import google_crc32c
import pyarrow as pa

_CHUNKS = "crc32c:"
_SEGMENTS = "crc32c-segments:"
_SEGMENT = struct.Struct("<QI")
_POLYNOMIAL = 0x82F63B78
_ONE = 1 << 31  # the polynomial 1, bits reversed

Segment = tuple[int, int]
"""Length and CRC-32C of a part of a file."""


def pack_chunks(checksums: Iterable[int]) -> str:
    """Return checksums of column chunks as one short text."""
    values = list(checksums)
    return _CHUNKS + base64.b64encode(struct.pack(f"<{len(values)}I", *values)).decode()


def unpack_chunks(text: str) -> tuple[int, ...]:
    """Return the checksums that `pack_chunks` packed.

    Raises:
        ValueError: The text is something else.
    """
    content = _content(text, _CHUNKS)
    if len(content) % 4:
        raise ValueError("the checksums of column chunks are cut short")
    return struct.unpack(f"<{len(content) // 4}I", content)


def pack_segments(segments: Iterable[Segment]) -> str:
    """Return lengths and checksums of the segments of a file as one short text."""
    content = b"".join(_SEGMENT.pack(*segment) for segment in segments)
    return _SEGMENTS + base64.b64encode(content).decode()


def unpack_segments(text: str) -> tuple[Segment, ...]:
    """Return the segments that `pack_segments` packed.

    Raises:
        ValueError: The text is something else.
    """
    content = _content(text, _SEGMENTS)
    if len(content) % _SEGMENT.size:
        raise ValueError("the checksums of segments are cut short")
    return tuple((length, crc) for length, crc in _SEGMENT.iter_unpack(content))


def _content(text: str, prefix: str) -> bytes:
    if not text.startswith(prefix):
        raise ValueError(f"{text[:20]!r} does not start with {prefix!r}")
    try:
        return base64.b64decode(text.removeprefix(prefix), validate=True)
    except binascii.Error as error:
        raise ValueError(f"checksums cannot be decoded: {error}") from error


class RunningChecksums:
    """CRC-32C of ranges of a stream whose bounds are named later.

    A bound must be where a piece of the stream ended. pyarrow writes each page by itself, so the
    bounds of column chunks are.
    """

    def __init__(self) -> None:
        self._ends = [0]
        self._crcs = [0]

    @property
    def num_bytes(self) -> int:
        """Bytes so far."""
        return self._ends[-1]

    @property
    def whole(self) -> int:
        """The checksum of all bytes so far."""
        return self._crcs[-1]

    def add(self, data: Any) -> None:
        """Take the next piece of the stream."""
        view = memoryview(data)
        if not view.nbytes:
            return
        # The library takes read-only buffers only; Arrow's are, without a copy.
        piece = data if isinstance(data, bytes) else pa.py_buffer(data)
        if not isinstance(piece, bytes) and piece.is_mutable:
            piece = piece.slice(0)
        self._ends.append(self._ends[-1] + view.nbytes)
        self._crcs.append(google_crc32c.extend(self._crcs[-1], piece))

    def of_range(self, start: int, end: int) -> int:
        """Return the checksum of the bytes from `start` to `end` (exclusive).

        Raises:
            ValueError: No piece ended there.
        """
        before, after = self._up_to(start), self._up_to(end)
        return after ^ _shifted(before, end - start)

    def _up_to(self, end: int) -> int:
        found = bisect.bisect_left(self._ends, end)
        if found == len(self._ends) or self._ends[found] != end:
            raise ValueError(f"no piece of the stream ended at byte {end}")
        return self._crcs[found]


def _shifted(crc: int, num_bytes: int) -> int:
    """The part that `crc` has in the checksum of its bytes and `num_bytes` more.

    That is its product with x^(8 * num_bytes), modulo the polynomial of the CRC.
    """
    power = num_bytes * 8
    for exponent in range(power.bit_length()):
        if power >> exponent & 1:
            crc = _product(crc, _power(exponent))
    return crc


@functools.cache
def _power(exponent: int) -> int:
    """x^(2^exponent), modulo the polynomial."""
    if exponent == 0:
        return _ONE >> 1
    root = _power(exponent - 1)
    return _product(root, root)


def _product(left: int, right: int) -> int:
    """The product of two polynomials with bits reversed, modulo the polynomial."""
    product = 0
    for _ in range(32):
        if left & _ONE:
            product ^= right
        left = left << 1 & 0xFFFFFFFF
        right = right >> 1 ^ (_POLYNOMIAL if right & 1 else 0)
    return product
