"""Divides a skewed partition into pieces for several tasks.

    partition 5:  probe 900 MB, build 20 MB
      task 3: probe files 0-1, build     task 4: probe files 2-3, build     …

Each task reads a part of one input's rows and the whole partition of all others. So each row of
the split input must meet its partners by itself, and whatever lies above must be fine with the
rows of a partition in several tasks: what needs them together (a final aggregate, a window, the
other side of an outer join) forbids it.
"""

from __future__ import annotations

import bisect
import heapq
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from stagecoach.infra.runtime.adaptive.coalesce import cut_evenly
from stagecoach.infra.runtime.adaptive.decision import Decision
from stagecoach.infra.runtime.adaptive.empty import name_of
from stagecoach.planner.plan.physical import (
    AggregateExec,
    BloomProbeExec,
    ExpandExec,
    FilterExec,
    GenerateExec,
    HashJoinExec,
    LimitExec,
    PhysicalPlan,
    ProjectionExec,
    SortExec,
    StageInputExec,
    UnionExec,
)
from stagecoach.planner.plan.stages import Stage

MAX_IMBALANCE = 1.25
"""Largest piece over the mean up to which map files are not cut."""

_LEFT_SPLITS = ("inner", "cross", "left", "semi", "anti")
_RIGHT_SPLITS = ("inner", "cross", "right")


@dataclass(frozen=True)
class SkewRule:
    """When a partition is skewed.

    Args:
        factor: How many times larger than the median of the other partitions it must be.
        min_bytes: How large it must be, stored bytes.
    """

    factor: float
    min_bytes: int


@dataclass(frozen=True)
class FilePiece:
    """Part of the rows of a partition.

    Args:
        low: First of the map files that are read.
        high: The one after the last.
        index: Which part of the rows of each of their batches.
        shares: How many parts there are.
        num_bytes: Stored bytes of these rows, about.
    """

    low: int
    high: int
    index: int
    shares: int
    num_bytes: int


@dataclass(frozen=True)
class HotPartition:
    """A skewed partition of an input that can be split.

    Args:
        leaf: Position in `Stage.leaves` of the input.
        partition: Which partition.
        file_bytes: Stored bytes of it in each map file of the input.
    """

    leaf: int
    partition: int
    file_bytes: tuple[int, ...]


def splittable_leaves(stage: Stage, *, is_head: bool) -> frozenset[int]:
    """Positions of the shuffle inputs of which each task may read any part of a partition's rows.

    Args:
        stage: Its fragment is looked at.
        is_head: Whether it makes the result; its sort and limit are not applied again.
    """
    positions = {id(leaf): i for i, leaf in enumerate(stage.leaves)}
    node = stage.fragment
    if stage.output.kind == "gather" and not is_head:
        # Each task sorts and limits what it sends; the stage above does so again for all.
        while isinstance(node, ProjectionExec | SortExec) or (
            isinstance(node, LimitExec) and not node.offset
        ):
            node = node.child
    return frozenset(_splittable(node, positions))


def hot_partitions(
    partitions: Mapping[int, Sequence[int]], splittable: Collection[int], rule: SkewRule
) -> list[tuple[int, int]]:
    """The skewed partitions of a branch, each with the input to split.

    Args:
        partitions: Stored bytes of each partition, by leaf of the branch.
        splittable: The leaves that can be split.
        rule: What is skewed.

    Returns:
        Leaf and partition, ascending by partition: of several inputs the largest.
    """
    found: dict[int, int] = {}
    for leaf in sorted(set(partitions) & set(splittable)):
        sizes = partitions[leaf]
        filled = sorted(size for size in sizes if size)
        for partition, size in enumerate(sizes):
            if size < max(rule.min_bytes, 1) or size < rule.factor * _median_without(filled, size):
                continue
            if partition not in found or size > partitions[found[partition]][partition]:
                found[partition] = leaf
    return [(leaf, partition) for partition, leaf in sorted(found.items())]


def cut_pieces(file_bytes: Sequence[int], count: int) -> list[FilePiece]:
    """Cut a partition into about `count` pieces of about equal size.

    Map files stay whole where that is even enough; a file that is too large is read by several
    tasks, each of which takes a share of the rows of every batch.

    Args:
        file_bytes: Stored bytes of the partition in each map file.
        count: How many pieces are wanted.

    Returns:
        Pieces that cover every row once, at least one.
    """
    total = sum(file_bytes)
    mean = total / max(count, 1)
    pieces: list[FilePiece] = []
    for low, high in cut_evenly(file_bytes, count):
        size = sum(file_bytes[low:high])
        if not size:
            continue
        shares = 1 if size <= mean * MAX_IMBALANCE else math.ceil(size / mean)
        pieces += [FilePiece(low, high, i, shares, size // shares) for i in range(shares)]
    return pieces


def makespan(loads: Iterable[int], slots: int) -> int:
    """When the last task ends if each slot takes the largest task that is left."""
    ends = [0] * max(slots, 1)
    for load in sorted(loads, reverse=True):
        heapq.heapreplace(ends, ends[0] + load)
    return max(ends)


def skew_decision(stage: Stage, hot: HotPartition, pieces: int, sizes: Sequence[int]) -> Decision:
    """What to say of a partition that was split.

    Args:
        stage: The stage.
        hot: The partition.
        pieces: Among how many tasks.
        sizes: Stored bytes of all partitions.
    """
    usual = round(_median_without(sorted(s for s in sizes if s), sizes[hot.partition]))
    return Decision(
        "skew",
        f"partition {hot.partition} of {name_of(stage, hot.leaf)}, {sum(hot.file_bytes):,} bytes "
        f"(the others {usual:,} in the median), split among {pieces} tasks",
    )


def _splittable(node: PhysicalPlan, positions: Mapping[int, int]) -> set[int]:
    match node:
        case StageInputExec():
            return {positions[id(node)]} if node.kind == "shuffle" else set()
        case FilterExec() | ProjectionExec() | GenerateExec() | ExpandExec():
            return _splittable(node.child, positions)
        case BloomProbeExec():
            return _splittable(node.left, positions)
        case AggregateExec() if node.mode == "partial":
            return _splittable(node.child, positions)
        case UnionExec():
            # Tasks of one branch read nothing of the others.
            return {leaf for child in node.inputs for leaf in _splittable(child, positions)}
        case HashJoinExec():
            left = _splittable(node.left, positions) if node.kind in _LEFT_SPLITS else set()
            right = _splittable(node.right, positions) if node.kind in _RIGHT_SPLITS else set()
            return left | right
    return set()


def _median_without(filled: Sequence[int], size: int) -> float:
    """The median of ascending sizes other than one that is `size`; 0 for no others."""
    count, place = len(filled) - 1, bisect.bisect_left(filled, size)
    if count < 1:
        return 0.0
    middle = ((count - 1) // 2, count // 2)
    low, high = (filled[i if i < place else i + 1] for i in middle)
    return (low + high) / 2
