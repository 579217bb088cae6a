"""Optimise a query together with its shared subplans.

Each plan is optimised by itself. Then columns and subplans that nothing reads any more are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stagecoach.planner.catalog import ColumnStats, TableInfo, TableStats
from stagecoach.planner.estimates import Estimate
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.optimizer.prune_columns import prune
from stagecoach.planner.optimizer.rules import optimize
from stagecoach.planner.plan.logical import LogicalPlan, SharedScan
from stagecoach.planner.plan.shared import SharedPlan
from stagecoach.planner.tree import walk
from stagecoach.planner.types import Field

_MOST = 10**15  # rows or bytes: joins of joins of joins have estimates that no number holds


def optimize_shared(
    plan: LogicalPlan,
    shared: Sequence[SharedPlan],
    context: RuleContext,
    tables: dict[str, TableInfo],
) -> tuple[LogicalPlan, tuple[SharedPlan, ...]]:
    """The optimised plan, and the shared subplans that it reads, each after those that it reads.

    Args:
        plan: The plan of a query.
        shared: Its shared subplans, each after those that it reads.
        context: Options and estimates.
        tables: What the estimates of the context are made from; the subplans are added to it.
    """
    optimized: list[SharedPlan] = []
    for part in shared:
        part = replace(part, plan=optimize(part.plan, context))
        tables[part.name] = _as_table(part, context.estimator.estimate(part.plan))
        optimized.append(part)
    plan = optimize(plan, context)
    read = _Reads()
    read.note(plan)
    kept: list[SharedPlan] = []
    for part in reversed(optimized):
        names = read.names.get(part.name)
        if names is None:
            continue
        needed = frozenset(part.columns[name].id for name in names)
        part = replace(part, plan=prune(part.plan, needed, narrow=True))
        read.note(part.plan)
        kept.append(part)
    return plan, tuple(reversed(kept))


def _as_table(part: SharedPlan, estimate: Estimate) -> TableInfo:
    """The table that the optimiser takes a shared subplan for, from the estimate of its plan."""
    rows = _bounded(estimate.rows)
    stats: dict[str, ColumnStats] = {}
    for name, column in part.columns.items():
        if (known := estimate.columns.get(column.id)) is not None:
            distinct = min(_bounded(known.distinct), rows)
            stats[name] = ColumnStats(distinct_count=distinct, avg_bytes=known.width)
    fields = tuple(Field(name, column.dtype) for name, column in part.columns.items())
    size = TableStats(rows, _bounded(estimate.num_bytes), columns=stats)
    return TableInfo(part.name, fields, size)


def _bounded(number: float) -> int:
    return round(min(max(number, 1.0), _MOST))


class _Reads:
    """Which columns of which subplans are read."""

    def __init__(self) -> None:
        self.names: dict[str, set[str]] = {}

    def note(self, plan: LogicalPlan) -> None:
        for node in walk(plan):
            if isinstance(node, SharedScan):
                self.names.setdefault(node.table, set()).update(node.source)
