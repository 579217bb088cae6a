"""Rule: columns that neither the query nor a filter needs are dropped below the filter."""

from __future__ import annotations

from dataclasses import replace

from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.plan import ChunkPlan, FilterExec, ProjectionExec
from stagecoach.planner.tree import transform_down


def push_projections_through_filters(plan: ChunkPlan, context: ChunkContext) -> ChunkPlan:
    """Project the input of a filter to what the projection above and the filter read.

    Before:  Projection[a, time](Filter[f3 > 0](x))
    After:   Projection[a, time](Filter[f3 > 0](Projection[a, f3, time](x)))
    The upper projection goes where the filter reads none but its columns.
    """

    def push(node: ChunkPlan) -> ChunkPlan:
        if not isinstance(node, ProjectionExec) or not isinstance(node.child, FilterExec):
            return node
        return project_below(node, node.child, context.names(node.child.predicate))

    return transform_down(plan, push)


def project_below(
    projection: ProjectionExec, node: FilterExec | ChunkPlan, needed: frozenset[str]
) -> ChunkPlan:
    """The projection with an operator below it that reads `needed` and keeps all columns."""
    (child,) = node.children
    if needed <= frozenset(projection.keep):
        return node.with_children((ProjectionExec(child, projection.keep),))
    wanted = needed | frozenset(projection.keep)
    inner = tuple(c for c in child.columns if c in wanted)
    if inner == child.columns:
        return projection
    return replace(projection, child=node.with_children((ProjectionExec(child, inner),)))
