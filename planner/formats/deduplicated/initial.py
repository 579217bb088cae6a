"""The plan that is right as it stands: all chunks, deduplicated, filtered, projected.

It knows nothing yet of where duplicates are; the passes make a better plan of it.

    ProjectionExec                 if not all columns are wanted
      FilterExec                   the query's predicate, and that the row is not deleted
        DeduplicateExec
          UnionExec
            RecordBatchesExec      all Arrow chunks
            ParquetExec            all Parquet chunks of a store
"""

from __future__ import annotations

from collections.abc import Sequence

from stagecoach.planner.formats.deduplicated.chunk import Chunk
from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.plan import (
    ChunkPlan,
    DeduplicateExec,
    EmptyExec,
    FileGroup,
    FilterExec,
    ParquetExec,
    ProjectionExec,
    RecordBatchesExec,
    UnionExec,
)
from stagecoach.planner.plan.expressions import TRUE, Expression, conjoin, conjuncts


def initial_plan(
    chunks: Sequence[Chunk],
    context: ChunkContext,
    *,
    predicate: Expression = TRUE,
    columns: tuple[str, ...] | None = None,
) -> ChunkPlan:
    """The naive plan of a scan.

    Args:
        chunks: Chunks of the table.
        context: The table and limits.
        predicate: What rows must pass; its columns are positions in the table's columns.
        columns: Columns to give, in order; None for all.
    """
    schema = context.table.column_names
    plan: ChunkPlan = UnionExec(scans_of(chunks, schema))
    plan = DeduplicateExec(plan, context.table.primary_key)
    # First the mark, then what the query asks: a deleted row need not fit the query's functions.
    wanted = conjoin([*conjuncts(context.not_deleted), *conjuncts(predicate)])
    if wanted != TRUE:
        plan = FilterExec(plan, wanted)
    if columns is not None and columns != schema:
        plan = ProjectionExec(plan, columns)
    return plan


def scans_of(chunks: Sequence[Chunk], schema: tuple[str, ...]) -> tuple[ChunkPlan, ...]:
    """One operator for all Arrow chunks, one for each store of Parquet chunks; at least one."""
    batches = tuple(c for c in chunks if c.kind == "arrow")
    stores: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        if chunk.kind == "parquet":
            stores.setdefault(chunk.store, []).append(chunk)
    scans: list[ChunkPlan] = [RecordBatchesExec(batches, schema)] if batches else []
    for store, files in stores.items():
        scans.append(ParquetExec((FileGroup(tuple(files), common_order(files)),), schema, store))
    return tuple(scans) or (EmptyExec(schema),)


def common_order(chunks: Sequence[Chunk]) -> tuple[str, ...]:
    """The columns by which each of the chunks is sorted; empty where they do not agree."""
    orders = {chunk.sort_order for chunk in chunks}
    return orders.pop() if len(orders) == 1 else ()
