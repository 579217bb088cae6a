"""Rule: rows of different partitions are not compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from stagecoach.planner.formats.deduplicated.chunk import Chunk, ChunkValue
from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.plan import (
    ChunkPlan,
    DeduplicateExec,
    UnionExec,
    chunk_exec,
    plain_chunks,
)
from stagecoach.planner.tree import transform_up


def split_by_partition(plan: ChunkPlan, context: ChunkContext) -> ChunkPlan:
    """Deduplicate the chunks of each partition for themselves.

    Before:  Deduplicate(Union(c1[A], c2[B], c3[A]))
    After:   Union(Deduplicate(Union(c1[A], c3[A])), Deduplicate(Union(c2[B])))
    Needs:   all partition columns in the primary key, so that rows with equal keys are of one
    partition; NULL is a partition like others.
    Never:   where a chunk's partition is unknown: its rows may meet those of any other; what
    `fuse_groups` has put together.
    """
    if not context.table.splits_by_partition:
        return plan

    def groups(chunks: tuple[Chunk, ...]) -> list[tuple[Chunk, ...]]:
        found: dict[tuple[object, ...], list[Chunk]] = {}
        for chunk in chunks:
            if chunk.partition is None:
                return []
            found.setdefault(tuple(map(_grouped, chunk.partition)), []).append(chunk)
        return [tuple(group) for group in found.values()]

    return split_dedups(plan, groups)


def split_dedups(
    plan: ChunkPlan, groups_of: Callable[[tuple[Chunk, ...]], Sequence[tuple[Chunk, ...]]]
) -> ChunkPlan:
    """A plan whose deduplications of whole chunks are divided, each into a union of some.

    Args:
        plan: The plan; what `fuse_groups` has put together stays so.
        groups_of: Chunks that may share keys; fewer than two groups divide nothing.
    """

    def split(node: ChunkPlan) -> ChunkPlan:
        if not isinstance(node, DeduplicateExec) or node.is_fused:
            return node
        chunks = plain_chunks(node.child)
        groups = () if chunks is None else groups_of(chunks)
        if len(groups) < 2:
            return node
        schema = node.columns
        return UnionExec(
            tuple(
                DeduplicateExec(UnionExec(tuple(chunk_exec(c, schema) for c in group)), node.key)
                for group in groups
            )
        )

    return transform_up(plan, split)


def _grouped(value: ChunkValue | None) -> object:
    """A value that equals those which GROUP BY puts into one group, and no other."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else ("number", value)  # -0.0 equals 0.0 in Python, too
    return ("text" if isinstance(value, str) else "number", value)
