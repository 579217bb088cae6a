"""Subplans that several places of a query read and that are planned and computed once.

A shared subplan is optimised by itself, and to those that read it, it is a table: a `SharedScan`
whose statistics are the estimates of the subplan. When the plan is cut, the subplan becomes a
stage, and each scan an input from that stage. So a query takes as long to plan as it has operators,
not as long as the tree of all its copies.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from planner.catalog import ColumnStats, TableInfo, TableStats
from planner.estimates import Estimate
from planner.expressions import Column
from planner.logical import LogicalPlan
from planner.types import Field

_MOST = 10**15  # rows or bytes: joins of joins of joins have estimates that no number holds


@dataclass(frozen=True)
class SharedPlan:
    """A subplan that is computed once.

    Args:
        name: The table of its scans; no table of a catalog has a colon in its name.
        plan: What it computes.
        outputs: Its columns: what its scans may read.
    """

    name: str
    plan: LogicalPlan
    outputs: tuple[Column, ...]

    @cached_property
    def columns(self) -> dict[str, Column]:
        """The columns under the names that scans read them by, each different."""
        named: dict[str, Column] = {}
        for position, column in enumerate(self.outputs):
            name = column.name
            named[f"{name}#{position}" if name in named else name] = column
        return named

    def as_table(self, estimate: Estimate) -> TableInfo:
        """What the optimiser takes the result for, from the estimate of the plan."""
        rows = _bounded(estimate.rows)
        stats: dict[str, ColumnStats] = {}
        for name, column in self.columns.items():
            if (known := estimate.columns.get(column.id)) is not None:
                distinct = min(_bounded(known.distinct), rows)
                stats[name] = ColumnStats(distinct_count=distinct, avg_bytes=known.width)
        fields = tuple(Field(name, column.dtype) for name, column in self.columns.items())
        size = TableStats(rows, _bounded(estimate.num_bytes), columns=stats)
        return TableInfo(self.name, fields, size)


def _bounded(number: float) -> int:
    return round(min(max(number, 1.0), _MOST))
