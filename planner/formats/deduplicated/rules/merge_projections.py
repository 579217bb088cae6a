"""Rule: of two projections the upper one is enough."""

from __future__ import annotations

from dataclasses import replace

from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.plan import ChunkPlan, ProjectionExec
from stagecoach.planner.tree import transform_up


def merge_projections(plan: ChunkPlan, context: ChunkContext) -> ChunkPlan:
    """Remove a projection below another, and one that keeps all columns in their order.

    Before:  Projection[a](Projection[a, b](x))
    After:   Projection[a](x)
    """
    del context
    return transform_up(plan, _merge)


def _merge(node: ChunkPlan) -> ChunkPlan:
    if not isinstance(node, ProjectionExec):
        return node
    if isinstance(node.child, ProjectionExec):
        node = replace(node, child=node.child.child)
    return node.child if node.keep == node.child.columns else node
