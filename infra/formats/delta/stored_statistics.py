"""Statistics of a written Parquet file as an `add` action has them: JSON texts.

    footer ─▶ {"numRecords": 3, "minValues": {"k": 1}, "maxValues": {"k": 7}, "nullCount": {"k": 0}}

Bounds of times are exact to the microsecond. Decimals of more digits than a double has are left
out, because readers may parse JSON numbers as doubles.

Worker code. Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from stagecoach.infra.formats.lake_tables.leaf_statistics import (
    LeafStatistics,
    leaf_statistics,
    short_texts,
)
from stagecoach.infra.formats.mapped_files.columns import MappedColumn

if TYPE_CHECKING:
    import pyarrow.parquet as pq

MAX_BOUND_LENGTH = 32
"""Characters of texts that bounds keep, as in Delta's writers."""

_EPOCH = datetime.datetime(1970, 1, 1)
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_EXACT_DIGITS = 15  # of a double


def file_statistics(
    metadata: pq.FileMetaData, columns: Sequence[MappedColumn], exact: Collection[int] = ()
) -> str:
    """Return the statistics of a file.

    Args:
        metadata: The file's footer.
        columns: Its columns, in the order in which they are stored.
        exact: Ids of columns whose bounds are kept whole, however long they are.
    """
    lows: dict[str, Any] = {}
    highs: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for leaf in leaf_statistics(metadata, columns):
        if leaf.null_count is None:
            continue
        _put(nulls, leaf.path, leaf.null_count)
        low, high = _bounds(leaf, is_exact=leaf.column.field_id in exact)
        if low is not None and high is not None:
            _put(lows, leaf.path, low)
            _put(highs, leaf.path, high)
    return json.dumps(
        {
            "numRecords": metadata.num_rows,
            "minValues": lows,
            "maxValues": highs,
            "nullCount": nulls,
            "tightBounds": True,
        },
        ensure_ascii=False,
    )


def _put(found: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Put a value where statistics have that of a column, or of a member of a struct."""
    for name in path[:-1]:
        found = found.setdefault(name, {})
    found[path[-1]] = value


def _bounds(leaf: LeafStatistics, *, is_exact: bool) -> tuple[Any, Any]:
    """Lowest and highest value as JSON has them; None where there is none."""
    dtype, low, high = leaf.column.dtype, leaf.low, leaf.high
    if low is None:
        return None, None
    if dtype.kind in _WHOLE:
        return low, high
    if dtype.kind == "string":
        first, last = low.decode(), high.decode()
        return (first, last) if is_exact else short_texts(first, last, MAX_BOUND_LENGTH)
    if dtype.is_decimal and dtype.precision <= _EXACT_DIGITS:
        return low / 10**dtype.scale, high / 10**dtype.scale
    try:
        if dtype.kind == "date":
            return _day(low), _day(high)
        if dtype.kind in ("timestamp", "timestamp_ntz"):
            zone = "Z" if dtype.kind == "timestamp" else ""
            return _moment(low) + zone, _moment(high) + zone
    except OverflowError:  # a year that has no text
        return None, None
    return None, None


def _day(days: int) -> str:
    return (_EPOCH + datetime.timedelta(days=days)).date().isoformat()


def _moment(microseconds: int) -> str:
    moment = _EPOCH + datetime.timedelta(microseconds=microseconds)
    return moment.isoformat(timespec="microseconds")
