"""Rule: rows of different times are not compared."""

from __future__ import annotations

from collections.abc import Sequence

from planner.chunks.chunk import Chunk
from planner.chunks.context import ChunkContext
from planner.chunks.plan import ChunkPlan, DeduplicateExec, plain_chunks
from planner.chunks.rules.split_by_partition import deduplicated_groups
from planner.tree import transform_up


def split_by_time(plan: ChunkPlan, context: ChunkContext) -> ChunkPlan:
    """Deduplicate chunks together only where their time ranges overlap, directly or by others.

    Before:  Deduplicate(Union(c1[1..10], c2[2..5], c3[11..15]))
    After:   Union(Deduplicate(Union(c1, c2)), Deduplicate(Union(c3)))
    Needs:   the time column in the primary key. Ranges that share a bound overlap.
    Never:   where a chunk's range is unknown, as it is where a time is NULL; what `fuse_groups` has
    put together.
    Source:  seed 003, "Time Split".
    """
    if not context.table.splits_by_time:
        return plan

    def split(node: ChunkPlan) -> ChunkPlan:
        if not isinstance(node, DeduplicateExec) or node.is_fused:
            return node
        chunks = plain_chunks(node.child)
        if chunks is None or any(c.time_range is None for c in chunks):
            return node
        groups = overlapping_groups(chunks)
        return node if len(groups) < 2 else deduplicated_groups(node, groups)

    return transform_up(plan, split)


def overlapping_groups(chunks: Sequence[Chunk]) -> list[tuple[Chunk, ...]]:
    """Chunks that overlap in time, transitively, in groups by time; all ranges are known.

    Within a group the chunks keep the order in which they were given.
    """
    position = {id(chunk): i for i, chunk in enumerate(chunks)}
    groups: list[list[Chunk]] = []
    end = 0
    for chunk in sorted(chunks, key=lambda c: (c.time_range or (0, 0), position[id(c)])):
        low, high = chunk.time_range or (0, 0)
        if groups and low <= end:
            groups[-1].append(chunk)
            end = max(end, high)
        else:
            groups.append([chunk])
            end = high
    return [tuple(sorted(group, key=lambda c: position[id(c)])) for group in groups]
