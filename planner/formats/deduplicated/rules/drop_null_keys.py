"""Rule: a key column that is NULL in all rows tells none apart."""

from __future__ import annotations

from dataclasses import replace

from stagecoach.planner.formats.deduplicated.chunk import Chunk
from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.plan import ChunkPlan, DeduplicateExec, plain_chunks
from stagecoach.planner.tree import transform_up


def drop_null_keys(plan: ChunkPlan, context: ChunkContext) -> ChunkPlan:
    """Leave out of a deduplication's key what is NULL in all of its chunks.

    Before:  Deduplicate[tag1, tag2, time](c1[tag2 is NULL], c2[no tag2])
    After:   Deduplicate[tag1, time](c1, c2)
    One column stays where all are NULL: such rows have equal keys, so one of them is shown.
    Source:  influxdb3_core, `dedup/dedup_null_columns.rs`.
    """
    del context
    return transform_up(plan, _drop)


def _drop(node: ChunkPlan) -> ChunkPlan:
    if not isinstance(node, DeduplicateExec):
        return node
    chunks = plain_chunks(node.child)
    if not chunks:
        return node
    kept = tuple(k for k in node.key if not all(_is_null(c, k) for c in chunks)) or node.key[:1]
    return node if kept == node.key else replace(node, key=kept)


def _is_null(chunk: Chunk, column: str) -> bool:
    return column in chunk.null_columns or chunk.type_of(column) is None
