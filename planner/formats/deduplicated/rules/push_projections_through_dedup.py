"""Rule: columns that neither the query nor a deduplication needs are dropped below it."""

from __future__ import annotations

from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.plan import ChunkPlan, DeduplicateExec, ProjectionExec
from stagecoach.planner.formats.deduplicated.rules.push_projections_through_filters import (
    project_below,
)
from stagecoach.planner.tree import transform_down


def push_projections_through_dedup(plan: ChunkPlan, context: ChunkContext) -> ChunkPlan:
    """Project the input of a deduplication to the query's columns, its key and the version.

    Before:  Projection[tag1, field2, time](Deduplicate[tag1, tag2, time](x))
    After:   Projection[tag1, field2, time](Deduplicate(Projection[tag1, tag2, field2, time](x)))
    The upper projection goes where it keeps all that the deduplication reads.
    """
    version = context.table.version_column

    def push(node: ChunkPlan) -> ChunkPlan:
        if not isinstance(node, ProjectionExec) or not isinstance(node.child, DeduplicateExec):
            return node
        needed = {*node.child.key, *(() if version is None else (version,))}
        return project_below(node, node.child, frozenset(needed))

    return transform_down(plan, push)
