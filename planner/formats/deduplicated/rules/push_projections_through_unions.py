"""Rule: a projection above a union becomes one above each input."""

from __future__ import annotations

from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.plan import ChunkPlan, ProjectionExec, UnionExec
from stagecoach.planner.tree import transform_down


def push_projections_through_unions(plan: ChunkPlan, context: ChunkContext) -> ChunkPlan:
    """Project the inputs of a union.

    Before:  Projection[a, time](Union(x, y))
    After:   Union(Projection[a, time](x), Projection[a, time](y))
    """
    del context
    return transform_down(plan, _push)


def _push(node: ChunkPlan) -> ChunkPlan:
    if not isinstance(node, ProjectionExec) or not isinstance(node.child, UnionExec):
        return node
    return UnionExec(tuple(ProjectionExec(child, node.keep) for child in node.child.inputs))
