"""Aggregate one range of a key after the other, where a table is stored in the order of the key.

    Before:  Aggregate(k, sum(x)) <- Scan
    After:   the same for k < a, then for a <= k < b, and so on
    Never:   where the row groups of the table hold all sorts of keys, groups are few, or files are
             on an object store: they are fetched some row groups ahead, for each range anew.

A hash table with millions of groups is larger than the CPU caches, so most rows wait for main
memory. The table of one range fits. Each range reads only the row groups that may contain its keys,
so all ranges together read each row group once, except for those in which one range ends.

The ends come from statistics, and are right whatever they are: each row is in one range.
"""

from __future__ import annotations

from dataclasses import replace

from stagecoach.planner.catalog import ColumnStats
from stagecoach.planner.lowering.sizes import PlanSizes
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.plan.expressions import ColumnRef, Literal
from stagecoach.planner.plan.physical import (
    AggregateExec,
    FilterExec,
    PhysicalPlan,
    ProjectionExec,
    ScanExec,
)
from stagecoach.planner.pruning.key_filters import scans_of
from stagecoach.planner.tree import walk
from stagecoach.planner.types import DataType

_KINDS = ("smallint", "int", "bigint")
_GROUPS = 1_000_000
"""Groups per range: about this many were fastest for TPC-H q18 (docs/measurements.md)."""
_LEAST_RANGES = 4
_MOST_RANGES = 64
_MOST_READ_AGAIN = 0.25
"""Share of the table that may be read by more than one range."""


def aggregate_by_ranges(plan: PhysicalPlan, sizes: PlanSizes, context: RuleContext) -> PhysicalPlan:
    """The plan whose aggregates over many groups of a sorted key take ranges of it.

    Args:
        plan: What one task computes.
        sizes: Knows the sizes of operators, and remembers those of new ones.
        context: Knows the tables.
    """
    children = tuple(aggregate_by_ranges(child, sizes, context) for child in plan.children)
    found = sizes.with_children(plan, children)
    if isinstance(found, AggregateExec) and _reads_one_scan(found.child):
        for place in range(len(found.groups)):
            if ends := _range_ends(found, place, sizes.size(plan)[0], context):
                ranged = replace(found, range_group=place, range_ends=ends)
                return sizes.note_size(ranged, plan)
    return found


def _reads_one_scan(plan: PhysicalPlan) -> bool:
    """Whether a range of the rows costs no more than to read it."""
    return all(type(node) in (ScanExec, FilterExec, ProjectionExec) for node in walk(plan))


def _range_ends(
    node: AggregateExec, place: int, groups: float, context: RuleContext
) -> tuple[Literal, ...]:
    """Where the ranges of a group key end; none if there is to be one range."""
    count = min(int(groups / _GROUPS), _MOST_RANGES)
    key = node.groups[place][1]
    if count < _LEAST_RANGES or not isinstance(key, ColumnRef) or key.dtype.kind not in _KINDS:
        return ()
    tables = context.estimator.tables
    for scan, position in scans_of(node.child, key.id):
        info = tables.get(scan.table)
        if info is not None and info.is_local and scan.outputs[position].dtype == key.dtype:
            stats = context.estimator.column_stats(scan.table, scan.source[position])
            return _even_ends(stats, count, key.dtype) if stats is not None else ()
    return ()


def _even_ends(stats: ColumnStats, count: int, dtype: DataType) -> tuple[Literal, ...]:
    low, high = stats.min_value, stats.max_value
    if not isinstance(low, int) or not isinstance(high, int) or high - low < count:
        return ()
    if stats.overlap * count > _MOST_READ_AGAIN:
        return ()
    width = high - low + 1
    return tuple(Literal(dtype, low + width * i // count) for i in range(1, count))
