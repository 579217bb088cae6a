"""Rule: rows of different partitions are not compared."""

from __future__ import annotations

import math

from planner.chunks.chunk import Chunk, ChunkValue
from planner.chunks.context import ChunkContext
from planner.chunks.plan import (
    ChunkPlan,
    DeduplicateExec,
    UnionExec,
    chunk_exec,
    plain_chunks,
)
from planner.tree import transform_up


def split_by_partition(plan: ChunkPlan, context: ChunkContext) -> ChunkPlan:
    """Deduplicate the chunks of each partition for themselves.

    Before:  Deduplicate(Union(c1[A], c2[B], c3[A]))
    After:   Union(Deduplicate(Union(c1[A], c3[A])), Deduplicate(Union(c2[B])))
    Needs:   all partition columns in the primary key, so that rows with equal keys are of one
    partition; NULL is a partition like others.
    Never:   where a chunk's partition is unknown: its rows may meet those of any other; what
    `fuse_groups` has put together.
    Source:  seed 003, "Partition Split".
    """
    if not context.table.splits_by_partition:
        return plan

    def split(node: ChunkPlan) -> ChunkPlan:
        if not isinstance(node, DeduplicateExec) or node.is_fused:
            return node
        chunks = plain_chunks(node.child)
        if chunks is None:
            return node
        groups: dict[tuple[object, ...], list[Chunk]] = {}
        for chunk in chunks:
            if chunk.partition is None:
                return node
            groups.setdefault(tuple(map(_grouped, chunk.partition)), []).append(chunk)
        if len(groups) < 2:
            return node
        return deduplicated_groups(node, [tuple(g) for g in groups.values()])

    return transform_up(plan, split)


def deduplicated_groups(node: DeduplicateExec, groups: list[tuple[Chunk, ...]]) -> ChunkPlan:
    """The union of one deduplication for each group of chunks."""
    schema = node.columns
    return UnionExec(
        tuple(
            DeduplicateExec(UnionExec(tuple(chunk_exec(c, schema) for c in group)), node.key)
            for group in groups
        )
    )


def _grouped(value: ChunkValue | None) -> object:
    """A value that equals those which GROUP BY puts into one group, and no other."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else ("number", value)  # -0.0 equals 0.0 in Python, too
    return ("text" if isinstance(value, str) else "number", value)
