"""What a Delta log says of the columns of data files: statistics, and values of partitions.

deltalake has both in the types of the columns, statistics by physical names. Writers cut times down
to milliseconds, so bounds of times are a millisecond wider.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from stagecoach.infra.formats.delta.schema import DeltaSchema
from stagecoach.infra.reading.column_summary import ColumnSummary
from stagecoach.planner.catalog import StatValue
from stagecoach.planner.types import DataType, to_arrow

_MILLISECOND = 1000  # in microseconds
_WIDTHS = {"boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "float": 4, "date": 4}
_OTHER_WIDTH = 8
_LONG_WIDTH = 24  # of texts, and of columns with members


def partition_values(
    adds: pa.Table, schema: DeltaSchema
) -> dict[str, tuple[StatValue | bool | None, ...]]:
    """Return the values of each partition column, one for each file.

    Dates are in days and times in microseconds since 1970, decimals are `Decimal`.
    """
    found: dict[str, tuple[Any, ...]] = {}
    for field in schema.fields:
        if field.name in schema.partitioned:
            found[field.name] = tuple(_plain(_member(adds, "partition", field.name)))
    return found


def file_summaries(
    adds: pa.Table,
    schema: DeltaSchema,
    num_rows: Sequence[int],
    partitions: dict[str, tuple[Any, ...]],
) -> list[tuple[ColumnSummary, ...]]:
    """Return what is known of each column of each file.

    Args:
        adds: The live files, as deltalake lists them.
        schema: The columns of the table.
        num_rows: Rows of each file.
        partitions: The values of the partition columns.
    """
    sizes = adds["size_bytes"].to_pylist()
    widths = [0 if f.name in schema.partitioned else _width(f.dtype) for f in schema.fields]
    total = sum(widths) or 1
    columns = []
    for field, physical, width in zip(schema.fields, schema.physical, widths, strict=True):
        if field.name in schema.partitioned:
            values = partitions[field.name]
            columns.append([_constant(v, n) for v, n in zip(values, num_rows, strict=True)])
            continue
        lows = _bounds(adds, "min", physical, field.dtype, -_MILLISECOND)
        highs = _bounds(adds, "max", physical, field.dtype, _MILLISECOND)
        nulls = _null_counts(adds, physical)
        columns.append(
            [
                ColumnSummary(
                    num_rows=rows,
                    # The log has no sizes of columns.
                    num_bytes=size * width // total,
                    null_count=count,
                    min_value=low,
                    max_value=high,
                )
                for rows, size, count, low, high in zip(
                    num_rows, sizes, nulls, lows, highs, strict=True
                )
            ]
        )
    return list(zip(*columns, strict=True)) if columns else [()] * adds.num_rows


def written_partition(
    texts: Mapping[str, str | None], schema: DeltaSchema
) -> dict[str, StatValue | bool | None]:
    """Return the values of the partition columns of a file that was written, as `partition_values`.

    Args:
        texts: They, as the log will have them.
        schema: The columns of the table.
    """
    return {
        field.name: _plain(pa.array([texts[field.name]]).cast(to_arrow(field.dtype)))[0]
        for field in schema.fields
        if field.name in schema.partitioned
    }


def written_summaries(
    schema: DeltaSchema, num_rows: int, num_bytes: int, partition: Mapping[str, Any]
) -> tuple[ColumnSummary, ...]:
    """Return what is known of each column of a file that was written: its partition."""
    widths = [0 if f.name in schema.partitioned else _width(f.dtype) for f in schema.fields]
    total = sum(widths) or 1
    return tuple(
        _constant(partition[field.name], num_rows)
        if field.name in schema.partitioned
        else ColumnSummary(num_rows=num_rows, num_bytes=num_bytes * width // total)
        for field, width in zip(schema.fields, widths, strict=True)
    )


def column_bounds(
    adds: pa.Table, physical: str
) -> tuple[list[Any | None], list[Any | None], list[int | None]]:
    """Return lowest and highest value and NULLs of a column in each file, as the log has them.

    Args:
        adds: The live files, as deltalake lists them.
        physical: Name of the column in data files.
    """
    lows, highs = (_plain(_member(adds, kind, physical)) for kind in ("min", "max"))
    nothing = [None] * adds.num_rows
    return lows or nothing, highs or nothing, _null_counts(adds, physical)


def _constant(value: Any, num_rows: int) -> ColumnSummary:
    known = stat_value(value)
    return ColumnSummary(
        num_rows=num_rows,
        num_bytes=0,
        null_count=num_rows if value is None else 0,
        min_value=known,
        max_value=known,
    )


def stat_value(value: Any) -> StatValue | None:
    """Return a plain value as statistics have it; None where there are none of its type."""
    if value is None or isinstance(value, bool | bytes):
        return None
    if isinstance(value, int | str):
        return value
    found = float(value)
    return None if math.isnan(found) else found


def _bounds(
    adds: pa.Table, kind: str, physical: str, dtype: DataType, margin: int
) -> list[StatValue | None]:
    array = _member(adds, kind, physical) if dtype.is_atomic else None
    if array is None:
        return [None] * adds.num_rows
    found = [stat_value(value) for value in _plain(array)]
    if dtype.kind in ("timestamp", "timestamp_ntz"):
        return [value + margin if isinstance(value, int) else None for value in found]
    return found


def _null_counts(adds: pa.Table, physical: str) -> list[int | None]:
    array = _member(adds, "null_count", physical)
    if array is None or not pa.types.is_integer(array.type):
        return [None] * adds.num_rows
    counts: list[int | None] = array.to_pylist()
    return counts


def _member(adds: pa.Table, column: str, name: str) -> pa.Array | None:
    """A member of a struct of the list of files; None where it is not there."""
    if column not in adds.schema.names:
        return None
    found = adds[column].combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        found = pa.concat_arrays(found.chunks)
    if not pa.types.is_struct(found.type):
        return None
    names = [found.type.field(i).name for i in range(found.type.num_fields)]
    if name not in names:
        return None
    return found.flatten()[names.index(name)]


def _plain(array: pa.Array | None) -> list[Any]:
    """Values as numbers and texts, dates and times counted from 1970."""
    if array is None:
        return []
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64())
    elif pa.types.is_date(array.type):
        array = array.cast(pa.date32()).cast(pa.int32())
    found: list[Any] = array.to_pylist()
    return found


def _width(dtype: DataType) -> int:
    if not dtype.is_atomic or dtype.kind in ("string", "binary"):
        return _LONG_WIDTH
    return _WIDTHS.get(dtype.kind, _OTHER_WIDTH)
