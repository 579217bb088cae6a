"""Rule: chunks of one kind and store are read by one operator."""

from __future__ import annotations

from stagecoach.planner.formats.deduplicated.chunk import Chunk
from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.initial import common_order
from stagecoach.planner.formats.deduplicated.plan import (
    ChunkPlan,
    FileGroup,
    ParquetExec,
    RecordBatchesExec,
    UnionExec,
)
from stagecoach.planner.plan.expressions import Expression
from stagecoach.planner.tree import transform_up

_Kind = tuple[str, str, tuple[str, ...], Expression | None, tuple[str, ...] | None]


def group_by_store(plan: ChunkPlan, context: ChunkContext) -> ChunkPlan:
    """Put the scans of a union together: all Arrow chunks, and the Parquet chunks of each store.

    Before:  Union(Batches(c1, c2), Parquet[A](c4), Parquet[B](c5), Batches(c6), Parquet[A](c7))
    After:   Union(Batches(c1, c2, c6), Parquet[A](c4, c7), Parquet[B](c5))
    Never:   scans of different columns or predicates.
    """
    del context
    return transform_up(plan, _group)


def _group(node: ChunkPlan) -> ChunkPlan:
    if not isinstance(node, UnionExec):
        return node
    groups: dict[_Kind | int, list[ChunkPlan]] = {}
    for position, child in enumerate(node.inputs):
        groups.setdefault(_kind(child) or position, []).append(child)
    if len(groups) == len(node.inputs):
        return node
    return UnionExec(tuple(_together(children) for children in groups.values()))


def _kind(node: ChunkPlan) -> _Kind | None:
    if isinstance(node, RecordBatchesExec):
        return ("arrow", "", node.schema, None, None)
    if isinstance(node, ParquetExec):
        return ("parquet", node.store, node.schema, node.predicate, node.projection)
    return None


def _together(scans: list[ChunkPlan]) -> ChunkPlan:
    if len(scans) == 1:
        return scans[0]
    chunks: tuple[Chunk, ...] = tuple(chunk for scan in scans for chunk in scan.chunks)
    first = scans[0]
    if isinstance(first, ParquetExec):
        group = FileGroup(chunks, common_order(chunks))
        return ParquetExec((group,), first.schema, first.store, first.predicate, first.projection)
    return RecordBatchesExec(chunks, first.columns)
