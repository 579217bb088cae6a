"""Rule: a union of one input is that input."""

from __future__ import annotations

from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.plan import ChunkPlan, EmptyExec, UnionExec
from stagecoach.planner.tree import transform_up


def unwrap_unions(plan: ChunkPlan, context: ChunkContext) -> ChunkPlan:
    """Put the only input of a union in its place.

    Before:  Union(a)
    After:   a
    A union without inputs becomes an empty relation with all columns of the table.
    """

    def unwrap(node: ChunkPlan) -> ChunkPlan:
        if not isinstance(node, UnionExec) or len(node.inputs) > 1:
            return node
        return node.inputs[0] if node.inputs else EmptyExec(context.table.column_names)

    return transform_up(plan, unwrap)
