"""Rule: files of the same order are read together, and the order is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stagecoach.planner.formats.deduplicated.chunk import Chunk
from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.even_cuts import cut_evenly
from stagecoach.planner.formats.deduplicated.plan import ChunkPlan, FileGroup, ParquetExec
from stagecoach.planner.tree import transform_up


def group_by_sort_order(plan: ChunkPlan, context: ChunkContext) -> ChunkPlan:
    """Divide the files of a scan into groups of one order each.

    Before:  Parquet([c1[a, time], c2[time], c3[a, time]])
    After:   Parquet([c1, c3] sorted by a, time; [c2] sorted by time)
    There are `target_partitions` groups at most: the orders of the fewest bytes share one group,
    which has no order then; free places go to the orders of the most bytes.
    """

    def group(node: ChunkPlan) -> ChunkPlan:
        if not isinstance(node, ParquetExec) or not node.chunks:
            return node
        groups = file_groups(node.chunks, context.target_partitions)
        return node if groups == node.file_groups else replace(node, file_groups=groups)

    return transform_up(plan, group)


def file_groups(chunks: Sequence[Chunk], target: int) -> tuple[FileGroup, ...]:
    """Groups of files of the same order, `target` at most, by the first chunk of each order."""
    orders: dict[tuple[str, ...], list[Chunk]] = {}
    for chunk in chunks:
        orders.setdefault(chunk.sort_order, []).append(chunk)
    if len(orders) > max(target, 1):
        by_size = sorted(orders, key=lambda o: -_num_bytes(orders[o]))
        kept = set([o for o in by_size if o][: max(target, 1) - 1])
        mixed = [c for c in chunks if c.sort_order not in kept]
        orders = {o: files for o, files in orders.items() if o in kept}
        orders[()] = mixed
    counts = _places(orders, target)
    return tuple(
        FileGroup(tuple(files[low:high]), order)
        for order, files in orders.items()
        for low, high in cut_evenly([c.num_bytes for c in files], counts[order])
    )


def _places(orders: dict[tuple[str, ...], list[Chunk]], target: int) -> dict[tuple[str, ...], int]:
    """How many groups each order gets: one, and more while it has the most bytes for each."""
    counts = dict.fromkeys(orders, 1)
    for _ in range(target - len(orders)):
        free = [o for o in orders if counts[o] < len(orders[o])]
        if not free:
            break
        largest = max(free, key=lambda o: _num_bytes(orders[o]) / counts[o])
        counts[largest] += 1
    return counts


def _num_bytes(chunks: Sequence[Chunk]) -> int:
    return sum(c.num_bytes for c in chunks)
