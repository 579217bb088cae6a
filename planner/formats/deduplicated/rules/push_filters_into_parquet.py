"""Rule: Parquet scans are told which rows a query wants."""

from __future__ import annotations

from dataclasses import replace

from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.plan import (
    ChunkPlan,
    DeduplicateExec,
    FilterExec,
    ParquetExec,
    ProjectionExec,
    UnionExec,
)
from stagecoach.planner.formats.deduplicated.rules.push_filters_through_dedup import passes_dedup
from stagecoach.planner.plan.expressions import Expression, conjoin, conjuncts
from stagecoach.planner.tree import same, transform_down


def push_filters_into_parquet(plan: ChunkPlan, context: ChunkContext) -> ChunkPlan:
    """Give the filters above a Parquet scan to it, too.

    Before:  Filter[tag > 0](Deduplicate(Parquet))
    After:   Filter[tag > 0](Deduplicate(Parquet[predicate: tag > 0]))
    The scan may leave out files, row groups and rows by it; the filter stays.
    Never:   through a deduplication what may not pass it; into record batches, which filter
    nothing.
    """

    def visit(node: ChunkPlan) -> ChunkPlan:
        if not isinstance(node, FilterExec):
            return node
        child = _given(node.child, tuple(conjuncts(node.predicate)), context)
        return node.with_children((child,))

    return transform_down(plan, visit)


def _given(node: ChunkPlan, parts: tuple[Expression, ...], context: ChunkContext) -> ChunkPlan:
    match node:
        case ParquetExec():
            known = tuple(conjuncts(node.predicate))
            new = tuple(part for part in parts if part not in known)
            return replace(node, predicate=conjoin((*known, *new))) if new else node
        case DeduplicateExec():
            parts = tuple(part for part in parts if passes_dedup(part, context))
        case FilterExec() | UnionExec() | ProjectionExec():
            pass
        case _:
            return node
    if not parts:
        return node
    children = tuple(_given(child, parts, context) for child in node.children)
    return node if same(node.children, children) else node.with_children(children)
