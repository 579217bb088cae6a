"""What a run's snapshot keeps of a file's footer: bounds of its columns.

Plain data, small enough for a list of all files of a table.

Worker code.
"""

from __future__ import annotations

from collections.abc import Sequence

from stagecoach.infra.reading.column_summary import ColumnSummary
from stagecoach.planner.catalog import StatValue
from stagecoach.planner.types import DataType, Field

_BOUNDED = ("tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz", "string")
_MAX_TEXT = 64  # characters of a bound that the snapshot keeps

StoredBounds = tuple[int | None, StatValue | None, StatValue | None]
"""NULLs, a lower and an upper bound of a column of a file, as in `ColumnSummary`; None: unknown."""


def stored_bounds(
    columns: Sequence[Field], summaries: Sequence[ColumnSummary]
) -> tuple[StoredBounds, ...]:
    """The bounds of a file's columns, in their order.

    Floating point has none: NaN is the largest value to Spark, and writers leave it out.
    """
    return tuple(_stored(f.dtype, s) for f, s in zip(columns, summaries, strict=True))


def _stored(dtype: DataType, summary: ColumnSummary) -> StoredBounds:
    low, high = summary.min_value, summary.max_value
    bounded = dtype.kind in _BOUNDED or dtype.is_decimal
    if not bounded or low is None or high is None:
        return summary.null_count, None, None
    if isinstance(low, str):  # the start of a text is not above it
        low = low[:_MAX_TEXT]
    if isinstance(high, str) and len(high) > _MAX_TEXT:
        return summary.null_count, low, None
    return summary.null_count, low, high
