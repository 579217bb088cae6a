"""Rule: a union within a union becomes part of it."""

from __future__ import annotations

from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.plan import ChunkPlan, UnionExec
from stagecoach.planner.tree import transform_up


def unnest_unions(plan: ChunkPlan, context: ChunkContext) -> ChunkPlan:
    """Lift the inputs of a union that is an input of a union.

    Before:  Union(Union(a, b), c)
    After:   Union(a, b, c)
    Never:   across another operator.
    """
    del context
    return transform_up(plan, _unnest)


def _unnest(node: ChunkPlan) -> ChunkPlan:
    if not isinstance(node, UnionExec):
        return node
    inputs: list[ChunkPlan] = []
    for child in node.inputs:
        inputs.extend(child.inputs if isinstance(child, UnionExec) else (child,))
    return node.with_children(tuple(inputs))
