"""Rule: there are no more deduplications than a plan can bear."""

from __future__ import annotations

from stagecoach.planner.formats.deduplicated.chunk import Chunk
from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.even_cuts import cut_evenly
from stagecoach.planner.formats.deduplicated.plan import (
    ChunkPlan,
    DeduplicateExec,
    UnionExec,
    chunk_exec,
    plain_chunks,
)
from stagecoach.planner.tree import transform_up


def fuse_groups(plan: ChunkPlan, context: ChunkContext) -> ChunkPlan:
    """Deduplicate neighbours in time together where a union has too many deduplications.

    Before:  Union(Deduplicate(c1), Deduplicate(c2), Deduplicate(c3), scan)   at most 2
    After:   Union(scan, Deduplicate(Union(c1, c2)), Deduplicate(c3))
    Right whatever the groups: a deduplication of more chunks only compares more rows.
    Source:  influxdb3_core, `dedup/split.rs`, which leaves such plans unsplit.
    """

    def fuse(node: ChunkPlan) -> ChunkPlan:
        if not isinstance(node, UnionExec):
            return node
        groups = [g for child in node.inputs if (g := _group(child)) is not None]
        if len(groups) <= context.max_groups:
            return node
        groups.sort(key=_place)
        others = [child for child in node.inputs if _group(child) is None]
        weights = [sum(c.num_rows for c in chunks) for _, chunks in groups]
        fused: list[ChunkPlan] = []
        for low, high in cut_evenly(weights, context.max_groups):
            scans = [chunk_exec(c, g.columns) for g, chunks in groups[low:high] for c in chunks]
            # The whole key: one group's may lack what is NULL in it only.
            key = context.table.primary_key
            fused.append(DeduplicateExec(UnionExec(tuple(scans)), key, is_fused=True))
        return UnionExec((*others, *fused))

    return transform_up(plan, fuse)


def _group(node: ChunkPlan) -> tuple[DeduplicateExec, tuple[Chunk, ...]] | None:
    if not isinstance(node, DeduplicateExec):
        return None
    chunks = plain_chunks(node.child)
    return None if chunks is None else (node, chunks)


def _place(group: tuple[DeduplicateExec, tuple[Chunk, ...]]) -> tuple[int, int, str]:
    chunks = group[1]
    starts = [c.time_min for c in chunks if c.time_min is not None]
    first = min(starts) if len(starts) == len(chunks) and starts else 0
    return first, min(c.sequence for c in chunks), min(c.chunk_id for c in chunks)
