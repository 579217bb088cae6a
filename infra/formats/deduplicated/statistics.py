"""Computes bounds, counts and flags of the rows of a chunk.

Computed from the rows as they are written, so that planning and pruning open no file. Bounds leave
out NULL; a floating-point column with a NaN has none, because NaN is the largest value to Spark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from stagecoach.infra.formats.deduplicated.declaration import Declaration
from stagecoach.infra.formats.deduplicated.key_order import has_duplicates, neighbours
from stagecoach.infra.reading.column_summary import ColumnSummary, merge_summaries
from stagecoach.planner.catalog import StatValue
from stagecoach.planner.formats.deduplicated.chunk import ChunkValue

_MAX_TEXT = 64
"""Characters of a bound that are kept."""


@dataclass(frozen=True, kw_only=True)
class RowFacts:
    """What a chunk tells of its rows; the names are those of `StoredChunk`."""

    summaries: tuple[ColumnSummary, ...]
    partition: tuple[ChunkValue | None, ...] | None
    time_min: int | None
    time_max: int | None
    has_deletes: bool
    null_columns: tuple[str, ...]


def row_facts(rows: pa.Table, declaration: Declaration) -> RowFacts:
    """Return what is known of some rows that become a chunk.

    Columns of the declaration that the rows do not have are NULL in all of them.
    """
    summaries = tuple(summarize(column) for column in rows.columns)
    by_name = dict(zip(rows.schema.names, summaries, strict=True))
    time = by_name.get(declaration.time_column or "")
    low, high = (None, None) if time is None else (time.min_value, time.max_value)
    known = time is not None and time.null_count == 0 and isinstance(low, int)
    return RowFacts(
        summaries=summaries,
        partition=_partition(rows, declaration.partition_by),
        time_min=low if known and isinstance(low, int) else None,
        time_max=high if known and isinstance(high, int) else None,
        has_deletes=_has_deletes(rows, declaration.delete_column),
        null_columns=tuple(
            name
            for name in declaration.primary_key
            if name not in by_name or by_name[name].null_count == rows.num_rows
        ),
    )


def merge_facts(parts: Sequence[RowFacts], declaration: Declaration) -> RowFacts:
    """Return what is known of all rows together; the parts have the same columns."""
    partitions = {part.partition for part in parts}
    lows = [part.time_min for part in parts if part.time_min is not None]
    highs = [part.time_max for part in parts if part.time_max is not None]
    known = bool(parts) and len(lows) == len(highs) == len(parts)
    always_null = [set(part.null_columns) for part in parts]
    columns = zip(*(part.summaries for part in parts), strict=True)
    return RowFacts(
        summaries=tuple(merge_summaries(column) for column in columns),
        partition=partitions.pop() if len(partitions) == 1 else None,
        time_min=min(lows) if known else None,
        time_max=max(highs) if known else None,
        has_deletes=any(part.has_deletes for part in parts),
        null_columns=tuple(
            name for name in declaration.primary_key if all(name in part for part in always_null)
        ),
    )


def sort_facts(rows: pa.Table, declaration: Declaration) -> tuple[tuple[str, ...], bool]:
    """Return by which columns the rows happen to be sorted, and whether a key is there twice."""
    key = tuple(name for name in declaration.primary_key if name in rows.schema.names)
    if not key:
        return (), rows.num_rows > 1
    above, equal = neighbours(rows, key)
    if (above | equal).all():
        return key, bool(equal.any())
    time = declaration.time_column
    order: tuple[str, ...] = ()
    if time is not None:
        above, equal = neighbours(rows, [time])
        order = (time,) if (above | equal).all() else ()
    return order, has_duplicates(rows, key)


def summarize(column: pa.ChunkedArray) -> ColumnSummary:
    """Return the statistics of a column, in the units of `planner.catalog.ColumnStats`."""
    low, high = _bounds(column)
    return ColumnSummary(
        num_rows=len(column),
        num_bytes=column.nbytes,
        null_count=column.null_count,
        min_value=low,
        max_value=high,
        distinct_count=_distinct(column),
    )


def _bounds(column: pa.ChunkedArray) -> tuple[StatValue | None, StatValue | None]:
    kind = column.type
    if column.null_count == len(column):
        return None, None
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_floating(kind):
        if pc.any(pc.is_nan(column)).as_py():
            return None, None
    elif not (
        pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_string(kind)
        or pa.types.is_decimal(kind)
    ):
        return None, None
    found = pc.min_max(column).as_py()
    return _low(found["min"]), _high(found["max"])


def _low(value: Any) -> StatValue | None:
    match value:
        case bool():
            return int(value)
        case str():  # the start of a text is not above it
            return value[:_MAX_TEXT]
        case Decimal():
            near = float(value)
            return math.nextafter(near, -math.inf) if Decimal(near) > value else near
        case float():
            return value + 0.0 if math.isfinite(value) else None  # one zero
    return int(value)


def _high(value: Any) -> StatValue | None:
    match value:
        case bool():
            return int(value)
        case str():
            return value if len(value) <= _MAX_TEXT else None
        case Decimal():
            near = float(value)
            return math.nextafter(near, math.inf) if Decimal(near) < value else near
        case float():
            return value + 0.0 if math.isfinite(value) else None
    return int(value)


def _distinct(column: pa.ChunkedArray) -> int | None:
    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_floating(kind) or pa.types.is_binary(kind):
        return None
    if pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return None
    return int(pc.count_distinct(column, mode="only_valid").as_py())


def _partition(rows: pa.Table, partition_by: Sequence[str]) -> tuple[ChunkValue | None, ...] | None:
    """The values of the partition columns if all rows agree in each."""
    found: list[ChunkValue | None] = []
    for name in partition_by:
        if name not in rows.schema.names:
            found.append(None)
            continue
        values = pc.unique(rows.column(name))
        if len(values) != 1:
            return None
        found.append(partition_value(values[0]))
    return tuple(found) if partition_by else None


def partition_value(value: pa.Scalar) -> ChunkValue | None:
    """A value as chunks have it: dates as days, timestamps as microseconds since 1970."""
    kind = value.type
    if pa.types.is_date32(kind):
        value = value.cast(pa.int32())
    elif pa.types.is_timestamp(kind):
        value = value.cast(pa.int64())
    found: ChunkValue | None = value.as_py()
    return found


def group_starts(
    starts: Sequence[pa.Table], sort_order: Sequence[str]
) -> tuple[ChunkValue | None, ...]:
    """Return the values of the first column of an order, from the first row of each row group.

    Empty where there is no order, and for values of which a chunk keeps none: of other types than
    texts, whole numbers, dates and timestamps, and long texts, for the start of one is below it.
    """
    if not sort_order or not starts:
        return ()
    kind = starts[0].schema.field(sort_order[0]).type
    known = (pa.types.is_integer, pa.types.is_date32, pa.types.is_timestamp, pa.types.is_string)
    if not any(is_kind(kind) for is_kind in known):
        return ()
    values = tuple(partition_value(rows.column(sort_order[0])[0]) for rows in starts)
    if any(isinstance(value, str) and len(value) > _MAX_TEXT for value in values):
        return ()
    return values


def _has_deletes(rows: pa.Table, column: str | None) -> bool:
    if column is None or column not in rows.schema.names:
        return False
    return bool(pc.any(rows.column(column)).as_py())
