"""Statistics of a column over a part of a table, and how parts add up.

The parts are column chunks or files; the whole is what the planner gets as `ColumnStats`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stagecoach.planner.catalog import ColumnStats, StatValue
from stagecoach.planner.types import DataType

_ORDERED_KINDS = ("tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz")
_RANGE_KINDS = ("boolean", "tinyint", "smallint", "int", "bigint", "date")


@dataclass(frozen=True, kw_only=True)
class ColumnSummary:
    """Statistics of a column over some rows.

    Attributes:
        num_rows: Rows, NULLs included.
        num_bytes: Encoded, uncompressed bytes.
        null_count: NULLs, or None where unknown.
        min_value: Smallest value in the units of `ColumnStats`, or None.
        max_value: Largest value likewise, or None.
        distinct_count: Estimated distinct values from dictionaries, or None.
        spans: For each of the smallest parts that are known, its rows times the width of its
            range, added up; None where a range is unknown or this is such a part itself.
    """

    num_rows: int
    num_bytes: int
    null_count: int | None = None
    min_value: StatValue | None = None
    max_value: StatValue | None = None
    distinct_count: int | None = None
    spans: float | None = None

    @property
    def num_values(self) -> int:
        """Rows that are not NULL, or all rows where that is unknown."""
        return self.num_rows - (self.null_count or 0)


def merge_summaries(parts: Sequence[ColumnSummary]) -> ColumnSummary:
    """Return the summary over all parts; a part without values has no say in the bounds."""
    filled = [part for part in parts if part.num_values > 0]
    nulls = [part.null_count for part in parts if part.null_count is not None]
    lows = [part.min_value for part in filled if part.min_value is not None]
    highs = [part.max_value for part in filled if part.max_value is not None]
    bounded = bool(filled) and len(lows) == len(filled) and len(highs) == len(filled)
    return ColumnSummary(
        num_rows=sum(part.num_rows for part in parts),
        num_bytes=sum(part.num_bytes for part in parts),
        null_count=sum(nulls) if len(nulls) == len(parts) else None,
        min_value=min(lows, key=_sort_key) if bounded else None,
        max_value=max(highs, key=_sort_key) if bounded else None,
        distinct_count=_merge_distinct(filled),
        spans=_merge_spans(filled),
    )


def column_stats(summary: ColumnSummary, dtype: DataType) -> ColumnStats:
    """Return the planner's statistics of a column of type `dtype`."""
    return ColumnStats(
        min_value=summary.min_value,
        max_value=summary.max_value,
        null_count=summary.null_count,
        distinct_count=_distinct_count(summary, dtype),
        avg_bytes=summary.num_bytes / summary.num_rows if summary.num_rows else 0.0,
        overlap=_overlap(summary, dtype),
    )


def column_spread(parts: Sequence[ColumnSummary], dtype: DataType) -> float:
    """Return the share of rows in files that may hold a value of the column taken at random.

    Args:
        parts: Statistics of each file; those of a partition column have one value each.
        dtype: Type of the column.
    """
    filled = [part for part in parts if part.num_values > 0]
    rows = sum(part.num_rows for part in filled)
    lows = {part.min_value for part in filled}
    if len(filled) < 2 or None in lows or any(part.max_value is None for part in filled):
        return 1.0
    if all(part.min_value == part.max_value for part in filled):
        return 1.0 / len(lows)
    if dtype.kind not in _ORDERED_KINDS:
        return 1.0
    ranges = [(p.num_rows, float(p.min_value or 0), float(p.max_value or 0)) for p in filled]
    width = max(high for *_, high in ranges) - min(low for _, low, _ in ranges) + 1.0
    return min(sum(n * (high - low + 1.0) for n, low, high in ranges) / width / rows, 1.0)


def _overlap(summary: ColumnSummary, dtype: DataType) -> float:
    """The share of rows in parts that may hold a value of the column taken at random."""
    whole = _span(summary)
    if dtype.kind not in _ORDERED_KINDS or not whole or summary.spans is None:
        return 1.0
    return min(summary.spans / whole, 1.0)


def _merge_spans(parts: Sequence[ColumnSummary]) -> float | None:
    spans = [_span(part) if part.spans is None else part.spans for part in parts]
    known = [span for span in spans if span is not None]
    return sum(known) if known and len(known) == len(spans) else None


def _span(part: ColumnSummary) -> float | None:
    """The rows of a part times the width of its range; None for what is not a number."""
    low, high = part.min_value, part.max_value
    if low is None or high is None or isinstance(low, str) or isinstance(high, str):
        return None
    return part.num_rows * (float(high) - float(low) + 1.0)


def _distinct_count(summary: ColumnSummary, dtype: DataType) -> int | None:
    """The least of what the dictionaries, the range of integers and the rows allow."""
    if summary.num_values == 0:
        return 0
    limits = [] if summary.distinct_count is None else [summary.distinct_count]
    low, high = summary.min_value, summary.max_value
    if dtype.kind in _RANGE_KINDS and isinstance(low, int) and isinstance(high, int):
        limits.append(max(1, high - low + 1))
    return min(*limits, summary.num_values) if limits else None


def _merge_distinct(parts: Sequence[ColumnSummary]) -> int | None:
    """Distinct values of all parts together.

    Parts whose ranges do not overlap share no value: their counts add up. Parts that overlap are
    taken for samples of the same values (see `_extrapolate`).
    """
    if any(part.distinct_count is None for part in parts):
        return None
    total = sum(_extrapolate(cluster) for cluster in _overlapping(parts))
    return min(total, sum(part.distinct_count or 0 for part in parts))


def _overlapping(parts: Sequence[ColumnSummary]) -> list[list[ColumnSummary]]:
    """The parts in groups whose ranges overlap by more than one shared bound."""
    if any(part.min_value is None or part.max_value is None for part in parts):
        return [list(parts)] if parts else []
    clusters: list[list[ColumnSummary]] = []
    highest: tuple[bool, StatValue] | None = None
    for part in sorted(parts, key=lambda p: (_sort_key(p.min_value), _sort_key(p.max_value))):
        low, high = _sort_key(part.min_value), _sort_key(part.max_value)
        if highest is None or low > highest or (low == highest and high > highest):
            clusters.append([])
        clusters[-1].append(part)
        highest = high if highest is None else max(highest, high)
    return clusters


def _extrapolate(parts: Sequence[ColumnSummary]) -> int:
    """Distinct values of parts that are samples of the same uniformly drawn values.

    `n` draws from `D` values show `D * (1 - exp(-n / D))` of them. The part with the most values
    gives `D`, and the rows of all parts how many of the `D` are seen.
    """
    largest = max(parts, key=lambda part: part.num_values)
    seen, drawn = largest.distinct_count or 0, largest.num_values
    total = sum(part.num_values for part in parts)
    at_least = max(part.distinct_count or 0 for part in parts)
    if len(parts) == 1:
        return at_least
    if seen >= 0.98 * drawn:
        return total  # (nearly) unique
    low, high = float(seen), 100.0 * drawn
    for _ in range(50):
        middle = (low + high) / 2
        if _expected_distinct(middle, drawn) < seen:
            low = middle
        else:
            high = middle
    return max(at_least, round(_expected_distinct(high, total)))


def _expected_distinct(values: float, draws: int) -> float:
    return values * -math.expm1(-draws / values) if values else 0.0


def _sort_key(value: StatValue | None) -> tuple[bool, StatValue]:
    """Orders numbers before text, so that a mixture of both can be sorted."""
    text = isinstance(value, str)
    return text, 0 if value is None else value
