"""Rule: rows of different times are not compared."""

from __future__ import annotations

from collections.abc import Sequence

from stagecoach.planner.formats.deduplicated.chunk import Chunk
from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.plan import ChunkPlan
from stagecoach.planner.formats.deduplicated.rules.split_by_partition import split_dedups


def split_by_time(plan: ChunkPlan, context: ChunkContext) -> ChunkPlan:
    """Deduplicate chunks together only where their time ranges overlap, directly or by others.

    Before:  Deduplicate(Union(c1[1..10], c2[2..5], c3[11..15]))
    After:   Union(Deduplicate(Union(c1, c2)), Deduplicate(Union(c3)))
    Needs:   the time column in the primary key. Ranges that share a bound overlap.
    Never:   where a chunk's range is unknown, as it is where a time is NULL; what `fuse_groups` has
    put together.
    """
    if not context.table.splits_by_time:
        return plan

    def groups(chunks: tuple[Chunk, ...]) -> list[tuple[Chunk, ...]]:
        known = all(c.time_range is not None for c in chunks)
        return overlapping_groups(chunks) if known else []

    return split_dedups(plan, groups)


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
