"""Rule: Parquet scans read the columns that are wanted."""

from __future__ import annotations

from dataclasses import replace

from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.plan import ChunkPlan, ParquetExec, ProjectionExec
from stagecoach.planner.tree import transform_up


def push_projections_into_parquet(plan: ChunkPlan, context: ChunkContext) -> ChunkPlan:
    """Let a Parquet scan do the projection above it.

    Before:  Projection[tag1, time](Parquet[predicate: field1 > 0])
    After:   Parquet[predicate: field1 > 0, projection: tag1, time]
    The schema of the files stays: the predicate may read columns that are not given on.
    """
    del context
    return transform_up(plan, _push)


def _push(node: ChunkPlan) -> ChunkPlan:
    if not isinstance(node, ProjectionExec) or not isinstance(node.child, ParquetExec):
        return node
    return replace(node.child, projection=node.keep)
