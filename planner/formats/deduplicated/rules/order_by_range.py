"""Rule: inputs whose times do not overlap are read in order, so that the first rows come first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stagecoach.planner.formats.deduplicated.chunk import Chunk
from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.plan import (
    ChunkPlan,
    FileGroup,
    FilterExec,
    ParquetExec,
    ProgressiveExec,
    ProjectionExec,
    RecordBatchesExec,
    UnionExec,
    union_of,
)

Range = tuple[int, int]


def order_by_range(
    plan: ChunkPlan, context: ChunkContext, *, descending: bool = False
) -> ChunkPlan:
    """Read the inputs of a union one after the other, by time.

    Before:  Union(Parquet(c1[1..5], c2[6..9]), Deduplicate(Union(c3[10..12], c4[11..14])))
    After:   Progressive[time DESC](Deduplicate(Union(c3, c4)), Parquet(c2), Parquet(c1))
    For a reader that wants the first rows by time: it stops when it has them. Inputs that overlap
    are one input.
    Never:   where a chunk's range is unknown, as it is where a time is NULL.
    Source:  influxdb3_core, `sort/order_union_sorted_inputs.rs`.
    """
    if context.table.time_column is None or any(c.time_range is None for c in plan.chunks):
        return plan
    inputs = plan.inputs if isinstance(plan, UnionExec) else (plan,)
    pieces = [piece for node in inputs for piece in _pieces(node) if piece.chunks]
    steps = steps_of([_range(piece.chunks) for piece in pieces], descending=descending)
    if len(steps) < 2:
        return plan
    ordered = tuple(union_of(tuple(pieces[i] for i in step)) for step in steps)
    return ProgressiveExec(ordered, context.table.time_column, descending)


def steps_of(ranges: Sequence[Range], *, descending: bool) -> list[list[int]]:
    """Positions of ranges in groups that do not overlap each other, in order.

    Ranges that share a bound overlap: all values of a step lie before those of the next.
    """
    steps: list[list[int]] = []
    end = 0
    for i in sorted(range(len(ranges)), key=lambda i: (ranges[i], i)):
        low, high = ranges[i]
        if steps and low <= end:
            steps[-1].append(i)
            end = max(end, high)
        else:
            steps.append([i])
            end = high
    return steps[::-1] if descending else steps


def _range(chunks: Sequence[Chunk]) -> Range:
    ends = [c.time_range for c in chunks if c.time_range is not None]
    return min(low for low, _ in ends), max(high for _, high in ends)


def _pieces(node: ChunkPlan) -> list[ChunkPlan]:
    """A plain scan as one for each chunk, with the filters and projections above; else itself."""
    match node:
        case FilterExec() | ProjectionExec():
            return [replace(node, child=piece) for piece in _pieces(node.child)]
        case ParquetExec():
            groups = [FileGroup((c,), g.order) for g in node.file_groups for c in g.chunks]
            return [replace(node, file_groups=(group,)) for group in groups]
        case RecordBatchesExec():
            return [replace(node, batches=(chunk,)) for chunk in node.batches]
    return [node]
