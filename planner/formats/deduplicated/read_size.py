"""Estimate how many stored bytes a scan of a deduplicated table reads.

Whole chunks are left out where their times show that a filter lets nothing of them through, and row
groups within them. So a query for a day of a year is a small query.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from stagecoach.planner.catalog import TableInfo
from stagecoach.planner.formats.deduplicated.chunk import DedupState
from stagecoach.planner.plan.comparisons import column_range
from stagecoach.planner.plan.expressions import Expression
from stagecoach.planner.plan.physical import ScanExec


def read_bytes(info: TableInfo, leaf: ScanExec, parts: Iterable[Expression]) -> float:
    """The bytes that a scan reads, of the columns that it needs.

    Args:
        info: The table, with its chunks as they are now.
        leaf: The scan.
        parts: Conjuncts that its rows must pass, over the scan's columns.
    """
    state = info.detail
    if not isinstance(state, DedupState):
        return math.inf
    table = state.table
    low, high = -math.inf, math.inf
    sources = {c.id: name for c, name in zip(leaf.outputs, leaf.source, strict=True)}
    for part in parts if table.splits_by_time else ():
        bound = column_range(part)
        if bound is None or sources.get(bound[0]) != table.time_column:
            continue
        low, high = max(low, bound[1]), min(high, bound[2])
    size = 0.0
    for chunk in state.chunks:
        ends = chunk.time_range
        if ends is None:
            size += chunk.num_bytes
            continue
        inside = min(ends[1], high) - max(ends[0], low)
        if inside >= 0:
            size += chunk.num_bytes * (inside + 1) / (ends[1] - ends[0] + 1)
    return size * _share_of_columns(info, (*leaf.source, *table.primary_key))


def _share_of_columns(info: TableInfo, needed: Sequence[str]) -> float:
    """Which part of a row some columns are."""
    known = {} if info.stats is None else info.stats.columns
    widths = {name: column.avg_bytes for name, column in known.items()}
    whole = sum(widths.values())
    return sum(widths.get(name, 0.0) for name in dict.fromkeys(needed)) / whole if whole else 1.0
