"""Rule: a filter above a union becomes one above each input."""

from __future__ import annotations

from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.plan import ChunkPlan, EmptyExec, FilterExec, UnionExec
from stagecoach.planner.tree import transform_down


def push_filters_through_unions(plan: ChunkPlan, context: ChunkContext) -> ChunkPlan:
    """Filter the inputs of a union.

    Before:  Filter[p](Union(a, b))
    After:   Union(Filter[p](a), Filter[p](b))
    Always right: a filter looks at single rows. What filters no rows at all is not a filter.
    """
    del context
    return transform_down(plan, _push)


def _push(node: ChunkPlan) -> ChunkPlan:
    if not isinstance(node, FilterExec):
        return node
    if isinstance(node.child, EmptyExec):
        return node.child
    if not isinstance(node.child, UnionExec):
        return node
    return UnionExec(tuple(FilterExec(child, node.predicate) for child in node.child.inputs))
