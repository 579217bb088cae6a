"""Estimate logical plans from the statistics of a catalog."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from stagecoach.planner.catalog import ColumnStats, StatValue, TableInfo
from stagecoach.planner.estimates.estimate import (
    ColumnEstimate,
    Estimate,
    default_width,
    value_estimate,
)
from stagecoach.planner.estimates.groups import aggregated
from stagecoach.planner.estimates.joins import joined
from stagecoach.planner.estimates.selectivity import filtered
from stagecoach.planner.formats.protocol import Filters
from stagecoach.planner.formats.registry import planner_format
from stagecoach.planner.limits.deadline import check_deadline
from stagecoach.planner.plan.expressions import Column
from stagecoach.planner.plan.logical import (
    Aggregate,
    Expand,
    Filter,
    Generate,
    Join,
    Limit,
    LogicalPlan,
    OneRow,
    Project,
    Range,
    Repartition,
    Scan,
    Sort,
    Union,
    Values,
    Window,
)
from stagecoach.planner.plan.physical import ScanExec
from stagecoach.planner.types import DataType

DEFAULT_ROWS = 1_000_000
_DENSE = 0.75
_GENERATED = 4.0  # rows that a generator is taken to make of one
_FEW = 1_000.0  # text of which there may well be as many values as rows


class Estimator:
    """Estimates plans over one catalog; remembers what it estimated.

    Args:
        tables: Catalog entries by name.
    """

    def __init__(self, tables: Mapping[str, TableInfo]) -> None:
        self._tables = tables
        self._memo: dict[LogicalPlan, Estimate] = {}

    @property
    def tables(self) -> Mapping[str, TableInfo]:
        """Catalog entries by name."""
        return self._tables

    def estimate(self, plan: LogicalPlan) -> Estimate:
        """The estimate of one operator and all below it."""
        known = self._memo.get(plan)
        if known is None:
            check_deadline()
            known = self._memo[plan] = self._estimate(plan)
        return known

    def stored_bytes(self, table: str) -> int:
        """Bytes of a table's files; unknown counts as large."""
        stats = self._tables[table].stats if table in self._tables else None
        return stats.num_bytes if stats is not None else 1 << 60

    def scan_bytes(self, scans: Iterable[tuple[ScanExec, Filters]]) -> float:
        """Bytes that scans read of their tables' files; a table that is read twice counts once.

        Args:
            scans: Each with the filters right above it.
        """
        tables: dict[str, float] = {}
        for scan, filters in scans:
            info = self._tables.get(scan.table)
            size = None
            if info is not None:
                size = planner_format(info.format).read_bytes(info, scan, filters)
            if size is None:
                tables[scan.table] = self.stored_bytes(scan.table)
            else:
                tables[scan.table] = tables.get(scan.table, 0.0) + size
        return sum(tables.values())

    def spread(self, table: str, column: str) -> float:
        """Share of a table's rows in files that may hold one value of a column; 1 if unknown."""
        known = self.column_stats(table, column)
        return known.spread if known is not None else 1.0

    def column_stats(self, table: str, column: str) -> ColumnStats | None:
        """Statistics of a column by its name in the table's files; None if there are none."""
        stats = self._tables[table].stats if table in self._tables else None
        return stats.columns.get(column) if stats is not None else None

    def _estimate(self, plan: LogicalPlan) -> Estimate:
        match plan:
            case Scan():
                return self._scan(plan)
            case OneRow():
                return Estimate(1.0)
            case Filter():
                return filtered(self.estimate(plan.child), plan.predicate)
            case Project():
                below = self.estimate(plan.child)
                return Estimate(below.rows, {c.id: value_estimate(e, below) for c, e in plan.items})
            case Aggregate():
                return self._aggregate(plan)
            case Sort() | Repartition():
                return self.estimate(plan.child)
            case Window():
                below = self.estimate(plan.child)
                made = {c.id: value_estimate(e, below) for c, e in plan.calls}
                return Estimate(below.rows, {**below.columns, **made})
            case Limit():
                below = self.estimate(plan.child)
                return below if plan.limit is None else below.scaled(min(below.rows, plan.limit))
            case Union():
                return self._union(plan)
            case Values():
                return _made(len(plan.rows), plan.outputs)
            case Range():
                return _made(max(-((plan.start - plan.stop) // plan.step), 0), plan.outputs)
            case Expand():
                below = self.estimate(plan.child)
                copies = below.scaled(below.rows * len(plan.projections))
                first = plan.projections[0]
                pairs = zip(plan.outputs, first, strict=True)
                return Estimate(copies.rows, {c.id: value_estimate(e, copies) for c, e in pairs})
            case Generate():
                below = self.estimate(plan.child)
                rows = _made(_GENERATED * below.rows, plan.outputs)
                return Estimate(rows.rows, {**below.columns, **rows.columns})
            case Join():
                left, right = self.estimate(plan.left), self.estimate(plan.right)
                return joined(left, right, plan.kind, plan.condition)
        raise TypeError(type(plan).__name__)

    def _scan(self, plan: Scan) -> Estimate:
        stats = self._tables[plan.table].stats if plan.table in self._tables else None
        rows = float(stats.num_rows) if stats is not None else DEFAULT_ROWS
        columns: dict[int, ColumnEstimate] = {}
        for column, name in zip(plan.outputs, plan.source, strict=True):
            known = stats.columns.get(name) if stats is not None else None
            low = _number(known.min_value) if known else None
            high = _number(known.max_value) if known else None
            distinct = _distinct(rows, low, high, column.dtype)
            if known and known.distinct_count is not None:
                counted = float(known.distinct_count)
                # A dictionary's length is a guess from its bytes, the range that it fills is none.
                dense = column.dtype.is_integral and counted >= _DENSE * distinct
                distinct = distinct if dense else min(distinct, counted)
            width = default_width(column.dtype)
            if known and known.avg_bytes and column.dtype.kind in ("string", "binary"):
                width = max(known.avg_bytes, 4.0)
            distinct = max(distinct, 1.0)
            columns[column.id] = ColumnEstimate(distinct, distinct, rows, low, high, width)
        return Estimate(rows, columns)

    def _aggregate(self, plan: Aggregate) -> Estimate:
        below = self.estimate(plan.child)
        groups = {c.id: value_estimate(e, below) for c, e in plan.groups}
        rows = 1.0
        for column in groups.values():
            rows *= column.distinct
        rows = min(rows, max(below.rows, 1.0)) if plan.groups else 1.0
        columns = dict(groups)
        for made, call in plan.aggregates:
            columns[made.id] = aggregated(call, made.dtype, below, rows)
        return Estimate(below.rows, columns).scaled(rows)

    def _union(self, plan: Union) -> Estimate:
        parts = [self.estimate(child) for child in plan.inputs]
        rows = sum(p.rows for p in parts)
        columns = {
            c.id: ColumnEstimate(max(rows / 2, 1.0), width=default_width(c.dtype))
            for c in plan.outputs
        }
        return Estimate(rows, columns)


def _made(rows: float, outputs: tuple[Column, ...]) -> Estimate:
    """Rows that an operator makes itself."""
    known = {c.id: ColumnEstimate(max(rows, 1.0), width=default_width(c.dtype)) for c in outputs}
    return Estimate(float(rows), known)


def _number(value: StatValue | None) -> float | None:
    """A bound to reckon with; infinity, which a column of doubles may hold, is none."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _distinct(rows: float, low: float | None, high: float | None, dtype: DataType) -> float:
    if dtype.kind == "boolean":
        return 2.0
    if low is not None and high is not None and (dtype.is_integral or dtype.kind == "date"):
        return min(rows, high - low + 1)
    if dtype.kind == "string":
        return max(rows * 0.1, min(rows, _FEW), 1.0)
    return max(rows, 1.0)
