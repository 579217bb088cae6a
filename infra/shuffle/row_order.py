"""Ranks rows by their first sort key, as numbers that compare alike everywhere.

Worker code. Ranks are integers that compare as Spark sorts: NULLs first or last, NaN above every
number, `-0.0` like `0.0`, strings and binary by their bytes, the whole turned around for DESC. Keys
that are equal have one rank; keys that differ may have one too (texts that are alike in their first
`TEXT_BYTES` bytes), but never ranks in the wrong order. So whoever divides rows by rank divides
them by key, and rows with equal keys stay together.
"""

from __future__ import annotations

import decimal
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

TEXT_BYTES = 64
"""Bytes of a text that its rank knows."""

_BEYOND = 1 << (8 * TEXT_BYTES + 8)
"""Above the rank of every value."""

_DIGITS = decimal.Context(prec=80)


@dataclass(frozen=True)
class RowOrder:
    """By which column rows are sorted before any other.

    Args:
        column: Its position.
        ascending: Whether small values come first.
        nulls_first: Whether NULLs do.
    """

    column: int
    ascending: bool = True
    nulls_first: bool = True

    def to_list(self) -> list[Any]:
        """Plain data for `from_list`."""
        return [self.column, self.ascending, self.nulls_first]

    @classmethod
    def from_list(cls, values: Sequence[Any]) -> RowOrder:
        """The order that `to_list` described."""
        return cls(*values)


def has_ranks(kind: pa.DataType) -> bool:
    """Whether values of a type have ranks; members of nested ones would have to be compared."""
    return _numbers(kind) is not None


def ranks(column: pa.Array, positions: Sequence[int], order: RowOrder) -> list[int]:
    """The ranks of the values at some positions of a column.

    Args:
        column: Values of a type that `has_ranks`.
        positions: Which of them.
        order: How the rows are sorted; its column is `column`.

    Raises:
        TypeError: The type has none.
    """
    number = _numbers(column.type)
    if number is None:
        raise TypeError(f"values of type {column.type} have no rank")
    for_null = -_BEYOND if order.nulls_first else _BEYOND
    sign = 1 if order.ascending else -1
    plain = _plain(column)
    values = (plain[position].as_py() for position in positions)
    return [for_null if v is None else sign * number(v) for v in values]


def _plain(values: pa.Array) -> pa.Array:
    """The same values as Python can hold all of them: counts of microseconds, bytes of texts."""
    kind = values.type
    if pa.types.is_date32(kind):
        return values.view(pa.int32())
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time64(kind):
        return values.view(pa.int64())
    if pa.types.is_string(kind):
        return values.view(pa.binary())
    if pa.types.is_large_string(kind):
        return values.view(pa.large_binary())
    return values


def _numbers(kind: pa.DataType) -> Callable[[Any], int] | None:
    """How a plain value of a type becomes its rank in ascending order, if it does."""
    types = pa.types
    if types.is_boolean(kind) or types.is_signed_integer(kind) or types.is_date32(kind):
        return int
    if types.is_timestamp(kind) or types.is_duration(kind) or types.is_time64(kind):
        return int
    if types.is_float32(kind) or types.is_float64(kind):
        return _of_double
    if types.is_decimal(kind):
        scale = kind.scale
        return lambda value: int(_DIGITS.scaleb(value, scale))
    texts = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    if any(is_text(kind) for is_text in texts):
        return _of_bytes
    return None


def _of_double(value: float) -> int:
    if value != value:  # every NaN is alike, and greater than infinity
        return 1 << 63
    # `+ 0.0` makes 0.0 of -0.0. The bits of positive numbers are in order, of negative ones not.
    (bits,) = struct.unpack("<q", struct.pack("<d", value + 0.0))
    return int(bits) if bits >= 0 else -(int(bits) + (1 << 63))


def _of_bytes(value: bytes) -> int:
    return int.from_bytes(value[:TEXT_BYTES].ljust(TEXT_BYTES, b"\0"), "big")
