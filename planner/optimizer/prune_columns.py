"""Rule: drop columns that nothing above reads."""

from __future__ import annotations

from dataclasses import replace

from stagecoach.planner.estimates import default_width
from stagecoach.planner.optimizer.context import RuleContext
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


def prune_columns(plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
    """Drop unread columns from scans, projections, aggregates and unions; narrow join inputs.

    Before:  Project[a] <- Join[l.k = r.k](Scan(l: k, a, b), Scan(r: k, c))
    After:   Project[a] <- Join[l.k = r.k](Scan(l: k, a), Scan(r: k))
    A scan of which nothing is read keeps its narrowest column, so that rows can be counted.
    """
    del context
    return prune(plan, plan.column_ids, narrow=True)


def prune(plan: LogicalPlan, needed: frozenset[int], *, narrow: bool) -> LogicalPlan:
    """The plan with the needed columns only.

    Args:
        plan: What to prune.
        needed: Numbers of the columns that the consumer reads.
        narrow: Whether to drop, at joins and aggregates, what only filters below them read.
    """
    match plan:
        case Scan():
            return _scan(plan, needed)
        case Project():
            items = tuple(i for i in plan.items if i[0].id in needed) or plan.items[:1]
            if len(items) < len(plan.items):
                plan = replace(plan, items=items)
            return plan.with_children((prune(plan.child, _read(plan), narrow=narrow),))
        case Aggregate():
            kept = tuple(a for a in plan.aggregates if a[0].id in needed)
            if not plan.groups:
                kept = kept or plan.aggregates[:1]
            if len(kept) < len(plan.aggregates):
                plan = replace(plan, aggregates=kept)
            return plan.with_children((_narrowed(plan.child, _read(plan), narrow),))
        case Filter() | Sort() | Limit() | Repartition():
            below = needed | _read(plan)
            return plan.with_children((prune(plan.child, below, narrow=narrow),))
        case Window():
            calls = tuple(c for c in plan.calls if c[0].id in needed)
            if not calls:
                return prune(plan.child, needed, narrow=narrow)
            if len(calls) < len(plan.calls):
                plan = replace(plan, calls=calls)
            below = (needed | _read(plan)) & plan.child.column_ids
            return plan.with_children((_narrowed(plan.child, below, narrow),))
        case Join():
            below = needed | _read(plan)
            sides = tuple(
                _narrowed(side, below & side.column_ids, narrow) for side in plan.children
            )
            return plan.with_children(sides)
        case Union():
            return _union(plan, needed, narrow)
        case Generate():
            below = (needed - frozenset(c.id for c in plan.outputs)) | _read(plan)
            return plan.with_children((_narrowed(plan.child, below, narrow),))
        case Expand():
            plan = _expand(plan, needed)
            return plan.with_children((_narrowed(plan.child, _read(plan), narrow),))
        case OneRow() | Values() | Range():
            # An item of VALUES that raises an error does so in Spark even if nothing reads it.
            return plan
    raise TypeError(type(plan).__name__)


def _read(plan: LogicalPlan) -> frozenset[int]:
    return frozenset().union(*(e.column_ids for e in plan.expressions))


def _scan(plan: Scan, needed: frozenset[int]) -> Scan:
    pairs = list(zip(plan.outputs, plan.source, strict=True))
    kept = [p for p in pairs if p[0].id in needed]
    if not kept:
        kept = [min(pairs, key=lambda p: default_width(p[0].dtype))]
    if len(kept) == len(pairs):
        return plan
    return replace(plan, outputs=tuple(c for c, _ in kept), source=tuple(n for _, n in kept))


def _expand(plan: Expand, needed: frozenset[int]) -> Expand:
    keep = [i for i, c in enumerate(plan.outputs) if c.id in needed] or [0]
    if len(keep) == len(plan.outputs):
        return plan
    rows = tuple(tuple(row[i] for i in keep) for row in plan.projections)
    return replace(plan, projections=rows, outputs=tuple(plan.outputs[i] for i in keep))


def _narrowed(plan: LogicalPlan, needed: frozenset[int], narrow: bool) -> LogicalPlan:
    pruned = prune(plan, needed, narrow=narrow)
    return _narrow(pruned, needed) if narrow else pruned


def _narrow(plan: LogicalPlan, needed: frozenset[int]) -> LogicalPlan:
    """The plan without columns that only its own filters and joins read."""
    kept: tuple[Column, ...] = tuple(c for c in plan.columns if c.id in needed)
    if len(kept) == len(plan.columns) or not kept or isinstance(plan, Scan):
        return plan
    if isinstance(plan, Project):
        return replace(plan, items=tuple(i for i in plan.items if i[0].id in needed))
    return Project(plan, tuple((c, c.ref) for c in kept))


def _union(plan: Union, needed: frozenset[int], narrow: bool) -> LogicalPlan:
    keep = [i for i, c in enumerate(plan.outputs) if c.id in needed] or [0]
    if len(keep) == len(plan.outputs):
        return plan.with_children(tuple(prune(c, c.column_ids, narrow=narrow) for c in plan.inputs))
    inputs = []
    for child in plan.inputs:
        columns = tuple(child.columns[i] for i in keep)
        ids = frozenset(c.id for c in columns)
        pruned = prune(child, ids, narrow=narrow)
        if pruned.columns != columns:
            pruned = Project(pruned, tuple((c, c.ref) for c in columns))
        inputs.append(pruned)
    return Union(tuple(inputs), tuple(plan.outputs[i] for i in keep))
