"""Which files of a Delta table have the rows of Dagster's partitions, and none else.

The log tells the value of a partition column, and bounds of other columns. Times in the bounds of
other writers are cut to milliseconds.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stagecoach.infra.formats.delta.schema import DeltaSchema
from stagecoach.infra.formats.delta.statistics import column_bounds, partition_values
from stagecoach.infra.formats.publishing import PublishError
from stagecoach.infra.formats.row_keys import RowKeys
from stagecoach.planner.types import DataType, Field

if TYPE_CHECKING:
    import pyarrow as pa

_EPOCH = datetime.date(1970, 1, 1)
_MILLISECOND = 1000  # in microseconds


@dataclass(frozen=True)
class _Known:
    """What the log says of the column in a file: rows that are not NULL, and their bounds."""

    num_rows: int | None
    has_nulls: bool
    low: Any = None
    high: Any = None


def files_of_partitions(
    name: str,
    adds: pa.Table,
    schema: DeltaSchema,
    column: Field,
    keys: RowKeys,
    ours: Callable[[str], bool],
) -> list[str]:
    """Return the paths of the files whose rows are all of Dagster's partitions.

    Args:
        name: Name of the table, for messages.
        adds: The live files, as deltalake lists them.
        schema: The columns of the table.
        column: The column that tells a row's partition.
        keys: The partitions.
        ours: Whether a path is one of ours, so that bounds are exact.

    Raises:
        PublishError: A file has rows of these partitions and others.
    """
    ranges = list(_ranges(column.dtype, keys))
    found = []
    paths = adds["path"].to_pylist()
    for path, known in zip(paths, _known(adds, schema, column, ours), strict=True):
        is_inside = _is_inside(known, ranges)
        if is_inside is None:
            raise PublishError(
                f"table '{name}': {path} has rows of the partitions of this run and others, or "
                f"does not tell; partition the table by '{column.name}', or rewrite the file with "
                "the tool that wrote it"
            )
        if is_inside:
            found.append(path)
    return found


def _is_inside(known: _Known, ranges: Sequence[tuple[Any, Any]]) -> bool | None:
    """Whether all rows of a file are in ranges, or none is; None for some or unknown."""
    if known.num_rows == 0:
        return False
    if known.low is None or known.high is None:
        return None
    if not any(first <= known.high and known.low <= last for first, last in ranges):
        return False
    is_within = any(first <= known.low and known.high <= last for first, last in ranges)
    return True if is_within and not known.has_nulls else None


def _known(
    adds: pa.Table, schema: DeltaSchema, column: Field, ours: Callable[[str], bool]
) -> Iterator[_Known]:
    counts = adds["num_records"].to_pylist()
    if column.name in schema.partitioned:
        for count, value in zip(counts, partition_values(adds, schema)[column.name], strict=True):
            yield _Known(0 if value is None else count, False, value, value)
        return
    position = [field.name for field in schema.fields].index(column.name)
    lows, highs, nulls = column_bounds(adds, schema.physical[position])
    is_time = column.dtype.kind in ("timestamp", "timestamp_ntz")
    for path, rows, low, high, null_count in zip(
        adds["path"].to_pylist(), counts, lows, highs, nulls, strict=True
    ):
        margin = _MILLISECOND if is_time and not ours(path) else 0
        yield _Known(
            None if rows is None or null_count is None else rows - null_count,
            null_count != 0,
            low if low is None or not margin else low - margin,
            high if high is None or not margin else high + margin,
        )


def _ranges(dtype: DataType, keys: RowKeys) -> Iterator[tuple[Any, Any]]:
    """The values of rows of the partitions, as ranges that do not touch; both ends belong to it."""
    if dtype.kind == "string":
        yield from ((key, key) for key in keys.keys)
        return
    if keys.starts:
        found = sorted((s, e - 1) for s, e in zip(keys.starts, keys.ends, strict=True))
    else:
        numbers = (_number(key, dtype) for key in keys.keys)
        found = sorted((number, number) for number in numbers if number is not None)
    merged: list[tuple[int, int]] = []
    for first, last in found:
        if merged and merged[-1][1] + 1 >= first:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    yield from merged


def _number(key: str, dtype: DataType) -> int | None:
    """The value whose text is a partition key; None if a column of the type has no such text."""
    try:
        if dtype.kind == "date":
            day = datetime.date.fromisoformat(key)
            return (day - _EPOCH).days if day.isoformat() == key else None
        return int(key) if str(int(key)) == key else None
    except ValueError:
        return None
