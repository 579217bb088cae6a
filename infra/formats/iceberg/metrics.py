"""What manifests say of the columns of a data file: metrics, and the values of its partition.

    lower and upper bounds of columns      ─┐
                                            ├─▶  bounds of the table's columns, by which any
    partition values of monotone transforms ┘    filter leaves out files

A partition value bounds its source column: rows with `months(at) = 650` lie in one month. So
partition evolution needs no rule of its own, and only `bucket`, which keeps no order, is pruned by
its values (`scan`).
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from stagecoach.infra.formats.mapped_files.columns import MappedColumn
from stagecoach.infra.reading.column_summary import ColumnSummary
from stagecoach.planner.catalog import StatValue
from stagecoach.planner.types import DataType

if TYPE_CHECKING:
    from pyiceberg.types import PrimitiveType

_EPOCH = datetime.datetime(1970, 1, 1)
_DAY = 86_400_000_000
_HOUR = 3_600_000_000
_KNOWN = re.compile(r"identity|year|month|day|hour|(truncate|bucket)\[\d+\]")
_TRUNCATE = re.compile(r"truncate\[(\d+)\]")
_LAST_CHARACTER = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)

Range = tuple[StatValue | None, StatValue | None]


@dataclass(frozen=True)
class PartitionValue:
    """The value of one field of a file's partition.

    Args:
        source_id: The column that it is computed of.
        transform: Its transform, as specifications write it: `day`, `bucket[16]`.
        value: The value, None for NULL.
    """

    source_id: int
    transform: str
    value: Any


def column_summary(
    column: MappedColumn,
    kind: PrimitiveType | None,
    *,
    num_rows: int,
    num_bytes: int,
    null_count: int | None,
    bounds: tuple[bytes | None, bytes | None],
    partition: Sequence[PartitionValue],
) -> ColumnSummary:
    """Return what is known of a column of a file.

    Args:
        column: The column of the table.
        kind: Its Iceberg type; None for a column with members, of which nothing is known.
        num_rows: Rows of the file.
        num_bytes: Stored bytes of the column, 0 where unknown.
        null_count: Its NULLs; None where unknown.
        bounds: Its lower and upper bound as manifests have them.
        partition: Values of the file's partition, of all columns.
    """
    if kind is None:
        return ColumnSummary(num_rows=num_rows, num_bytes=num_bytes)
    low = _bound(kind, column.dtype, bounds[0])
    high = _bound(kind, column.dtype, bounds[1])
    for item in partition:
        if item.source_id != column.field_id or not _KNOWN.fullmatch(item.transform):
            continue
        if item.value is None:
            return ColumnSummary(num_rows=num_rows, num_bytes=num_bytes, null_count=num_rows)
        null_count = 0
        first, last = value_range(item, column.dtype)
        low = first if low is None else low if first is None else _max(low, first)
        high = last if high is None else high if last is None else _min(high, last)
    return ColumnSummary(
        num_rows=num_rows,
        num_bytes=num_bytes,
        null_count=null_count,
        min_value=low,
        max_value=high,
    )


def value_range(item: PartitionValue, dtype: DataType) -> Range:
    """Return the smallest and the largest value of the source column in a partition, None: unknown.

    Args:
        item: The partition's value, which is not NULL.
        dtype: Type of the source column.
    """
    value, transform = item.value, item.transform
    if transform == "identity":
        known = stat_value(value, dtype)
        return known, known
    if (found := _TRUNCATE.fullmatch(transform)) is not None:
        return _truncated(value, int(found[1]), dtype)
    if transform not in ("year", "month", "day", "hour") or not isinstance(value, int):
        return None, None
    # Old writers rounded times before 1970 up: what they wrote as 0 may lie in unit -1.
    first = value - 1 if value <= 0 else value
    try:
        low, high = _moment(transform, first), _moment(transform, value + 1) - 1
    except (OverflowError, ValueError):
        return None, None
    if dtype.kind == "date":
        return low // _DAY, high // _DAY
    return low, high


def stat_value(value: Any, dtype: DataType) -> StatValue | None:
    """Return a value in the units of `ColumnStats`; None for types without bounds."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, datetime.datetime):
        delta = value.replace(tzinfo=None) - _EPOCH
        return delta // datetime.timedelta(microseconds=1)
    if isinstance(value, datetime.date):
        return (value - _EPOCH.date()).days
    if isinstance(value, Decimal):
        return float(value)
    if dtype.kind == "string" and not isinstance(value, str):
        return None  # a UUID: writers do not agree how these sort
    return value if isinstance(value, int | float | str) else None


def _bound(kind: PrimitiveType, dtype: DataType, raw: bytes | None) -> StatValue | None:
    """A bound as it was written, perhaps before the column's type was promoted."""
    from pyiceberg import conversions
    from pyiceberg import types as it

    if raw is None:
        return None
    written: PrimitiveType = kind
    if isinstance(kind, it.LongType) and len(raw) == 4:
        written = it.IntegerType()
    elif isinstance(kind, it.DoubleType) and len(raw) == 4:
        written = it.FloatType()
    elif isinstance(kind, it.TimestampType) and len(raw) == 4:  # promoted from a date, in v3
        return int.from_bytes(raw, "little", signed=True) * _DAY
    try:
        return stat_value(conversions.from_bytes(written, raw), dtype)
    except (ValueError, ArithmeticError, UnicodeDecodeError):
        return None  # cut inside of a character, say


def _truncated(value: Any, width: int, dtype: DataType) -> Range:
    if isinstance(value, str):
        if len(value) < width:
            return value, value
        return value, _after(value)
    if isinstance(value, Decimal):
        exponent = Decimal(1).scaleb(-dtype.scale)
        return float(value), float(value + (width - 1) * exponent)
    if isinstance(value, int) and not isinstance(value, bool):
        return value, value + width - 1
    return None, None


def _after(prefix: str) -> str | None:
    """The first text behind all that start with a prefix."""
    for end in range(len(prefix), 0, -1):
        code = ord(prefix[end - 1]) + 1
        if code in _SURROGATES:
            code = _SURROGATES.stop
        if code <= _LAST_CHARACTER:
            return prefix[: end - 1] + chr(code)
    return None


def _moment(transform: str, value: int) -> int:
    """The first microsecond of a unit of time that is counted from 1970."""
    if transform == "hour":
        return value * _HOUR
    if transform == "day":
        return value * _DAY
    months = value * 12 if transform == "year" else value
    year, month = divmod(months, 12)
    start = datetime.datetime(1970 + year, month + 1, 1)
    return (start - _EPOCH) // datetime.timedelta(microseconds=1)


def _max(left: StatValue, right: StatValue) -> StatValue:
    return left if _above(left, right) else right


def _min(left: StatValue, right: StatValue) -> StatValue:
    return right if _above(left, right) else left


def _above(left: StatValue, right: StatValue) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        return str(left) > str(right)
    return left > right


def metrics_of(found: Mapping[int, Any] | None, field_id: int) -> Any:
    """Return the metric of a column; None where it is not kept."""
    return None if not found else found.get(field_id)
