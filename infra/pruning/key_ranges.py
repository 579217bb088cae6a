"""Which files may hold one of very many keys: ranges of the keys in place of the keys themselves.

    keys 1 2 3 … 90 91 …  ─▶  [1, 3] [90, 91] …      file [40, 60]  ─▶  no range meets it

Worker code.
"""

from __future__ import annotations

import bisect
import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from stagecoach.infra.pruning.key_sets import key_domain
from stagecoach.infra.reading.file_bounds import StoredBounds
from stagecoach.planner.catalog import StatValue
from stagecoach.planner.types import DataType

_SLACK = 1e-9  # of a value: bounds of decimals are kept as doubles

Range = tuple[Any, Any]
"""Two values of one type, an `int`, `float` or `str`."""


@dataclass(frozen=True, kw_only=True)
class KeyRanges:
    """Where the keys of a column lie.

    Attributes:
        ranges: The first and the last value of each range, in the units of `ColumnStats`; they
            ascend and do not overlap. None where nothing is known of the values.
        has_null: Whether NULL is a key.
        slack: By how much of its size a bound may be off.
    """

    ranges: tuple[Range, ...] | None
    has_null: bool = True
    slack: float = 0.0

    def may_meet(self, bounds: StoredBounds, num_rows: int) -> bool:
        """Return whether one of the keys may stand in a column of a file.

        Args:
            bounds: What is known of the column.
            num_rows: Rows of the file.
        """
        nulls, low, high = bounds
        if self.has_null and nulls != 0:
            return True
        if nulls is not None and nulls >= num_rows:
            return False
        if self.ranges is None:
            return True
        if not self.ranges:
            return False
        if low is None:
            return True
        if self.slack and not isinstance(low, str):
            low -= abs(low) * self.slack
        if self.slack and high is not None and not isinstance(high, str):
            high += abs(high) * self.slack
        place = bisect.bisect_left(self.ranges, low, key=lambda item: item[1])
        if place == len(self.ranges):
            return False
        return high is None or bool(self.ranges[place][0] <= high)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for `from_dict`."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> KeyRanges:
        """Return the ranges that `to_dict` described."""
        found = values["ranges"]
        ranges = None if found is None else tuple((low, high) for low, high in found)
        return cls(ranges=ranges, has_null=values["has_null"], slack=values["slack"])


def has_ranges(dtype: DataType) -> bool:
    """Return whether files have bounds of columns of a type with which keys can be compared."""
    return key_domain(dtype, dtype) is not None


def key_ranges(
    dtype: DataType, batches: Iterable[pa.Array], *, has_null: bool, size: int
) -> KeyRanges:
    """Return ranges of about so many keys each.

    Args:
        dtype: Type of the column, for which `has_ranges` holds.
        batches: Its values in ascending order, without NULL.
        has_null: Whether NULL is a key.
        size: Keys of a range.
    """
    ranges: list[Range] = []
    for batch in batches:
        values = _in_units(batch)
        for start in range(0, len(values), size):
            last = min(start + size, len(values)) - 1
            ranges.append((values[start].as_py(), values[last].as_py()))
    slack = _SLACK if dtype.is_decimal else 0.0
    return KeyRanges(ranges=_merged(ranges), has_null=has_null, slack=slack)


def united(parts: Sequence[KeyRanges]) -> KeyRanges:
    """Return where the keys of several parts of a column lie."""
    has_null = any(part.has_null for part in parts)
    ranges: list[Range] = []
    for part in parts:
        if part.ranges is None:
            return KeyRanges(ranges=None, has_null=has_null)
        ranges += part.ranges
    slack = max((part.slack for part in parts), default=0.0)
    return KeyRanges(ranges=_merged(sorted(ranges)), has_null=has_null, slack=slack)


def folder_bounds(text: str | None, dtype: DataType, num_rows: int) -> StoredBounds:
    """Return the bounds of a column whose value is the name of a file's folder.

    Args:
        text: The value as text, None for NULL.
        dtype: Type of the column: a string, a whole number or a date.
        num_rows: Rows of the file.
    """
    if text is None:
        return num_rows, None, None
    value: StatValue = text
    if dtype.is_integral:
        value = int(text)
    elif dtype.kind == "date":
        value = (datetime.date.fromisoformat(text) - datetime.date(1970, 1, 1)).days
    elif dtype.kind != "string":
        return 0, None, None
    return 0, value, value


def _in_units(array: pa.Array) -> pa.Array:
    if pa.types.is_decimal(array.type):
        return array.cast(pa.float64(), safe=False)
    if pa.types.is_date(array.type):
        return array.cast(pa.int32())
    return array.cast(pa.int64()) if pa.types.is_timestamp(array.type) else array


def _merged(ranges: Sequence[Range]) -> tuple[Range, ...]:
    """Ranges that ascend, those that overlap put together."""
    found: list[Range] = []
    for low, high in ranges:
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)
