"""Rule: a single chunk without duplicates needs no deduplication."""

from __future__ import annotations

from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.plan import (
    ChunkPlan,
    DeduplicateExec,
    EmptyExec,
    plain_chunks,
)
from stagecoach.planner.tree import transform_up


def drop_dedup(plan: ChunkPlan, context: ChunkContext) -> ChunkPlan:
    """Remove the deduplication of one chunk in which no key occurs twice.

    Before:  Deduplicate(c1[may_contain_duplicates: false])
    After:   c1
    Never:   over two chunks or more: `split_by_time` and `split_by_partition` part those that
    have no key in common.
    """
    del context
    return transform_up(plan, _drop)


def _drop(node: ChunkPlan) -> ChunkPlan:
    if not isinstance(node, DeduplicateExec):
        return node
    if isinstance(node.child, EmptyExec):
        return node.child
    chunks = plain_chunks(node.child)
    if chunks is None or len(chunks) != 1 or chunks[0].may_contain_duplicates:
        return node
    return node.child
