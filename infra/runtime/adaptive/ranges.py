"""Divides sorted files into key ranges, so that several tasks merge them.

    stage 0, sorted files        stage 1
    file 0:  1 ……… 40 … 90       task 0: keys below 40 of both files
    file 1:  2 … 35 …… 88        task 1: keys from 40 on

Rows of task i come before those of task i + 1, and readers of the result keep the order of tasks,
so the result is that of one task. It is decided when the merging stage starts: no job samples rows
first, the files were sampled while they were written. Only the first key of a sort is looked at:
rows that are equal in it are merged by one task.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from stagecoach.infra.runtime.adaptive.coalesce import cut_evenly
from stagecoach.infra.runtime.adaptive.decision import Decision
from stagecoach.infra.runtime.adaptive.empty import name_of
from stagecoach.infra.runtime.adaptive.estimator import InputSizes, TaskAssignment
from stagecoach.infra.shuffle.row_order import RowOrder
from stagecoach.infra.shuffle.sorted_blocks import (
    SampledBlock,
    SortedBlocks,
    SortedRange,
    overlapping,
)
from stagecoach.planner.plan.expressions import ColumnRef, SortKey
from stagecoach.planner.plan.physical import (
    FilterExec,
    PhysicalPlan,
    ProjectionExec,
    SortExec,
    SortPreservingMergeExec,
    StageInputExec,
)
from stagecoach.planner.plan.stages import Stage

Blocks = Callable[[int], SortedBlocks | None]
"""The blocks of the map files of a leaf, where they are known."""

_ROW_BY_ROW = (FilterExec, ProjectionExec)
"""What gives the rows of several tasks, one after the other, as it gives them in one task."""


def output_order(stage: Stage) -> RowOrder | None:
    """How a task sorts all rows that it sends to a merge; None where it does not."""
    node, steps = stage.fragment, list[ProjectionExec]()
    while isinstance(node, _ROW_BY_ROW):
        if isinstance(node, ProjectionExec):
            steps.append(node)
        node = node.child
    if stage.output.kind != "gather" or not isinstance(node, SortExec) or node.fetch is not None:
        return None
    order = _first_key(node.keys, node.child)
    for step in reversed(steps):
        if order is None:
            return None
        source = step.child.columns[order.column].id
        places = (
            i for i, (_, e) in enumerate(step.items) if isinstance(e, ColumnRef) and e.id == source
        )
        place = next(places, None)
        order = None if place is None else replace(order, column=place)
    return order


def merged_leaf(stage: Stage) -> tuple[int, RowOrder] | None:
    """The one leaf of a stage that only merges sorted files and goes on row by row, and its order.

    Anything else above the merge (a limit, a window, an aggregate) needs all rows in one task.
    """
    node = stage.fragment
    while isinstance(node, _ROW_BY_ROW):
        node = node.child
    if not isinstance(node, SortPreservingMergeExec) or node.fetch is not None:
        return None
    leaf = node.child
    if not isinstance(leaf, StageInputExec) or leaf.kind != "gather" or len(stage.leaves) != 1:
        return None
    order = _first_key(node.keys, leaf)
    return None if order is None else (0, order)


def divide_merge(
    stage: Stage,
    sizes: InputSizes,
    tasks: tuple[TaskAssignment, ...],
    count: int,
    blocks: Blocks | None,
) -> tuple[tuple[TaskAssignment, ...], list[Decision]]:
    """Several tasks in place of one that merges sorted files, where that is right and worth it.

    Args:
        stage: The stage.
        sizes: What its leaves hold.
        tasks: Its tasks so far.
        count: How many are worth it.
        blocks: Asked only if there are to be several; None for one task.
    """
    found = merged_leaf(stage) if count > 1 and len(tasks) == 1 else None
    known = None if found is None or blocks is None else blocks(found[0])
    if found is None or known is None or known.order != found[1]:
        return tasks, []
    leaf, _ = found
    cuts = choose_cuts(known.blocks, count)
    if not cuts:
        return tasks, []
    ranges = sorted_ranges(known, cuts)
    files = len({sampled.block.file for sampled in known.blocks})
    text = (
        f"{files:,} sorted files of {name_of(stage, leaf)}, {sizes.num_bytes(leaf):,} bytes, "
        f"merged by {len(ranges)} tasks, each a range of the first key"
    )
    divided = tuple(_with_range(tasks[0], leaf, part) for part in ranges)
    return divided, [Decision("ranges", text)]


def choose_cuts(blocks: Sequence[SampledBlock], count: int) -> list[int]:
    """Where to cut the ranks of sorted rows for at most `count` ranges of about equal bytes.

    Args:
        blocks: Of all files.
        count: How many ranges are wanted.

    Returns:
        Ranks, ascending, at each of which a range begins; the first begins before all. Fewer than
        `count - 1` where many rows have one rank.
    """
    bytes_at: Counter[int] = Counter()
    for sampled in blocks:
        parts = len(sampled.ranks) - 1
        for rank in sampled.ranks[:-1]:
            # As whole numbers: what is small must not be lost beside what is large.
            bytes_at[rank] += sampled.block.length * 1000 // parts
    ordered = sorted(bytes_at)
    ranges = cut_evenly([bytes_at[rank] for rank in ordered], count)
    return [ordered[low] for low, _ in ranges[1:]]


def sorted_ranges(known: SortedBlocks, cuts: Sequence[int]) -> list[SortedRange]:
    """The ranges between cuts, the one before the first and the one from the last on."""
    bounds = [None, *cuts, None]
    return [
        SortedRange(known.order, low, high, overlapping(known.blocks, low, high))
        for low, high in itertools.pairwise(bounds)
    ]


def _with_range(task: TaskAssignment, leaf: int, part: SortedRange) -> TaskAssignment:
    slices = tuple(part if i == leaf else other for i, other in enumerate(task.slices))
    return TaskAssignment(slices, part.num_bytes)


def _first_key(keys: Sequence[SortKey], rows: PhysicalPlan) -> RowOrder | None:
    key = keys[0]
    if not isinstance(key.expr, ColumnRef):
        return None
    positions = {column.id: i for i, column in enumerate(rows.columns)}
    if key.expr.id not in positions:
        return None
    return RowOrder(positions[key.expr.id], key.ascending, key.nulls_first)
