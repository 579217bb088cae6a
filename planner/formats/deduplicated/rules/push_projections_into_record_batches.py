"""Rule: no NULLs are made for columns that nobody wants."""

from __future__ import annotations

from dataclasses import replace

from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.plan import (
    ChunkPlan,
    EmptyExec,
    ProjectionExec,
    RecordBatchesExec,
)
from stagecoach.planner.tree import transform_up


def push_projections_into_record_batches(plan: ChunkPlan, context: ChunkContext) -> ChunkPlan:
    """Let record batches have the columns of the projection above them.

    Before:  Projection[tag1, time](RecordBatches[tag1, tag2, field1, time])
    After:   RecordBatches[tag1, time]
    """
    del context
    return transform_up(plan, _push)


def _push(node: ChunkPlan) -> ChunkPlan:
    if not isinstance(node, ProjectionExec):
        return node
    if isinstance(node.child, RecordBatchesExec | EmptyExec):
        return replace(node.child, schema=node.keep)
    return node
