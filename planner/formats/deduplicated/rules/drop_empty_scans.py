"""Rule: what reads no chunk is left out of unions."""

from __future__ import annotations

from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.plan import (
    ChunkPlan,
    EmptyExec,
    FileGroup,
    ParquetExec,
    RecordBatchesExec,
    UnionExec,
)
from stagecoach.planner.tree import transform_up


def drop_empty_scans(plan: ChunkPlan, context: ChunkContext) -> ChunkPlan:
    """Remove scans without chunks, and chunks without rows, from unions.

    Before:  Union(RecordBatches([]), Parquet([c1]))
    After:   Union(Parquet([c1]))
    A union that loses all its inputs becomes an empty relation.
    Never:   below another parent than a union: there a scan without chunks stays.
    """
    del context
    return transform_up(plan, _drop)


def _drop(node: ChunkPlan) -> ChunkPlan:
    if not isinstance(node, UnionExec):
        return node
    inputs = tuple(_without_empty_chunks(child) for child in node.inputs)
    kept = tuple(child for child in inputs if not _is_empty(child))
    if not kept and inputs:
        return EmptyExec(node.columns)
    return node.with_children(kept)


def _without_empty_chunks(node: ChunkPlan) -> ChunkPlan:
    if all(chunk.num_rows for chunk in node.chunks):
        return node
    if isinstance(node, RecordBatchesExec):
        return RecordBatchesExec(tuple(c for c in node.batches if c.num_rows), node.schema)
    if isinstance(node, ParquetExec):
        filled = (
            FileGroup(tuple(c for c in group.chunks if c.num_rows), group.order)
            for group in node.file_groups
        )
        groups = tuple(group for group in filled if group.chunks)
        return ParquetExec(groups, node.schema, node.store, node.predicate, node.projection)
    return node


def _is_empty(node: ChunkPlan) -> bool:
    if isinstance(node, ParquetExec | RecordBatchesExec):
        return not node.chunks
    return isinstance(node, EmptyExec)
