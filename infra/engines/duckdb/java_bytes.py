"""Functions of bytes over Arrow columns that DuckDB lacks: digests, base 32 and bitmaps.

Worker code; `java_functions` registers them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable

import pyarrow as pa

_BITMAP_BYTES = 4096


def digest(algorithm: str) -> Callable[[pa.ChunkedArray], pa.Array]:
    """A hash as hexadecimal text."""

    def over_column(column: pa.ChunkedArray) -> pa.Array:
        values = (value.as_py() for value in column)
        return pa.array(
            [None if v is None else hashlib.new(algorithm, v).hexdigest() for v in values],
            pa.string(),
        )

    return over_column


def to_base32(column: pa.ChunkedArray) -> pa.Array:
    """Bytes in base 32."""
    values = column.to_pylist()
    return pa.array(
        [None if v is None else base64.b32encode(v).decode("ascii") for v in values], pa.string()
    )


def from_base32(column: pa.ChunkedArray) -> pa.Array:
    """The bytes of a text in base 32; NULL for one that is not written as `to_base32` does."""
    return pa.array([_strictly(text) for text in column.to_pylist()], pa.binary())


def _strictly(text: str | None) -> bytes | None:
    try:
        found = None if text is None else base64.b32decode(text)
    except (ValueError, binascii.Error):
        return None
    return found if found is not None and base64.b32encode(found).decode() == text else None


def bitmap_of(column: pa.ChunkedArray) -> pa.Array:
    """A bitmap of 32,768 bits with those of a list of positions set, the lowest bit first."""
    return pa.array([_bitmap(positions) for positions in column.to_pylist()], pa.binary())


def _bitmap(positions: list[int]) -> bytes:
    number = 0
    for position in positions:
        number |= 1 << position
    return number.to_bytes(_BITMAP_BYTES, "little")
