"""The task estimator: divides what a stage reads among its tasks, by size.

Pure: the same sizes give the same tasks. A stage always gets at least one task, even over an empty
input, because a global aggregate of nothing is a row.

    splits      files a b c      ─▶  task 0: a b[0:n]   task 1: b[n:] c    (row groups stay whole)
    partitions  ranges 0 … P-1   ─▶  task 0: [0, i)     task 1: [i, P)     (contiguous, by bytes)
                a hot partition  ─▶  task 2: files 0-1 of one input, all of the others
    groups      files a b c      ─▶  task 0: a b   task 1: c               (incremental stages)
    single      everything       ─▶  task 0
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from stagecoach.infra.formats.units import ScanSlice, ScanUnit, join_neighbours
from stagecoach.infra.runtime.adaptive.coalesce import cut_evenly
from stagecoach.infra.runtime.adaptive.groups import group_bytes, group_units
from stagecoach.infra.runtime.adaptive.requested import requested_tasks
from stagecoach.infra.runtime.adaptive.skew import FilePiece, HotPartition, cut_pieces, makespan
from stagecoach.infra.shuffle.sorted_blocks import SortedRange
from stagecoach.planner.errors import InternalPlanError
from stagecoach.planner.plan.stages import Branch, Stage

MAX_IMBALANCE = 1.25
"""Largest task over the mean, by bytes, up to which files are not cut."""

_FINEST = 4  # how many times smaller than a fair share the pieces of a hot partition may be
_WORTH = 0.9  # of the time without pieces that they may take at most


@dataclass(frozen=True)
class PartitionRange:
    """The partitions `low` to `high` (exclusive) that a task reads of a stage input.

    Args:
        low: The first.
        high: The one after the last.
        shared: Whether other tasks read them as well, so that a worker may keep them.
    """

    low: int
    high: int
    shared: bool = False


@dataclass(frozen=True)
class PartitionPiece:
    """The part of a partition of a stage input that a task reads; others read the rest."""

    partition: int
    piece: FilePiece


@dataclass(frozen=True)
class FileRange:
    """The map files `low` to `high` (exclusive), all partitions, that a task reads of an input."""

    low: int
    high: int
    num_bytes: int


LeafSlice = ScanSlice | PartitionRange | PartitionPiece | FileRange | SortedRange


@dataclass(frozen=True)
class TaskAssignment:
    """What one task reads: a slice for each leaf of the stage, in order.

    Args:
        slices: By position in `Stage.leaves`.
        num_bytes: Stored bytes of the slices that the task does not share with others.
    """

    slices: tuple[LeafSlice, ...]
    num_bytes: int


@dataclass(frozen=True)
class InputSizes:
    """Sizes of a stage's leaves.

    Args:
        scans: Files by leaf position, for every `ScanExec`.
        partitions: Bytes of each partition by leaf position, for every `StageInputExec`.
        files: Bytes of each map file, likewise, where they are known.
    """

    scans: Mapping[int, Sequence[ScanUnit]]
    partitions: Mapping[int, Sequence[int]]
    files: Mapping[int, Sequence[int]] = field(default_factory=dict)

    def whole(self, leaf: int) -> LeafSlice:
        """All of a leaf."""
        if leaf in self.scans:
            return ScanSlice(tuple(unit for unit in self.scans[leaf] if unit.num_rows))
        return PartitionRange(0, len(self.partitions[leaf]))

    def empty(self, leaf: int) -> LeafSlice:
        """Nothing of a leaf."""
        return ScanSlice() if leaf in self.scans else PartitionRange(0, 0)

    def without(self, leaves: Collection[int]) -> InputSizes:
        """The sizes if these leaves are not read."""
        if not leaves:
            return self
        return InputSizes(
            {leaf: () if leaf in leaves else files for leaf, files in self.scans.items()},
            {
                leaf: (0,) * len(sizes) if leaf in leaves else sizes
                for leaf, sizes in self.partitions.items()
            },
            {leaf: files for leaf, files in self.files.items() if leaf not in leaves},
        )

    def reads_nothing(self, leaf: int, part: LeafSlice) -> bool:
        """Whether a slice of a leaf has no row."""
        if isinstance(part, ScanSlice):
            return not part.units
        if isinstance(part, PartitionPiece | FileRange | SortedRange):
            return False
        return not any(self.partitions[leaf][part.low : part.high])

    def num_bytes(self, leaf: int) -> int:
        """Stored bytes of a leaf."""
        if leaf in self.scans:
            return sum(f.num_bytes for f in self.scans[leaf])
        return sum(self.partitions[leaf])


def assign_tasks(
    stage: Stage,
    sizes: InputSizes,
    *,
    parallelism: int,
    target_task_bytes: int,
    min_task_bytes: int,
    hot: Sequence[HotPartition] = (),
    coalesce: bool = True,
    in_groups: bool = False,
) -> tuple[TaskAssignment, ...]:
    """The tasks of a stage, branch by branch, in the order of their inputs.

    Args:
        stage: Its branches say which leaves are divided among tasks.
        sizes: What the leaves hold.
        parallelism: Tasks that run at once.
        target_task_bytes: Input of a task above which there are more tasks than slots.
        min_task_bytes: Input below which a further task is not worth it.
        hot: Partitions that several tasks may read, where that ends sooner.
        coalesce: Whether a task may read several partitions where the query does not ask for it.
        in_groups: Whether each task reads a group of files that stays as it is.

    Raises:
        InternalPlanError: If partitioned leaves of a branch differ in their number of partitions.
    """
    branches = stage.branches or (Branch("single", ()),)
    in_a_branch = {leaf for branch in branches for leaf in branch.leaves}
    shared: dict[int, LeafSlice] = {
        leaf: sizes.whole(leaf) if leaf not in in_a_branch else sizes.empty(leaf)
        for leaf in range(len(stage.leaves))
    }
    weights = [sum(sizes.num_bytes(leaf) for leaf in branch.leaves) for branch in branches]
    total = sum(weights)
    wanted = num_tasks(total, parallelism, target_task_bytes, min_task_bytes)
    cost = _TaskCost(parallelism, min_task_bytes)
    tasks: list[TaskAssignment] = []
    for branch, weight in zip(branches, weights, strict=True):
        if in_groups:
            for slices, num_bytes in _grouped(branch, sizes, min_task_bytes):
                tasks.append(_assignment(stage, {**shared, **slices}, num_bytes))
            continue
        count = max(1, round(wanted * weight / total)) if total else 1
        requested = requested_tasks(stage, branch)
        if requested is None or requested.at_most:
            most = count if requested is None else min(count, requested.count)
            # A hint asks for few tasks, whatever is decided here.
            joins = coalesce or requested is not None
            shares = _divide(branch, sizes, most, cost, hot, joins)
        else:
            shares = _one_each(branch, sizes)
        for slices, num_bytes in shares:
            tasks.append(_assignment(stage, {**shared, **slices}, num_bytes))
    return tuple(tasks)


def _assignment(stage: Stage, slices: Mapping[int, LeafSlice], num_bytes: int) -> TaskAssignment:
    return TaskAssignment(tuple(slices[leaf] for leaf in range(len(stage.leaves))), num_bytes)


def num_tasks(total: int, parallelism: int, target: int, minimum: int) -> int:
    """How many tasks an input is worth.

    Args:
        total: Its stored bytes.
        parallelism: Tasks that run at once.
        target: Input of a task above which there are more tasks than slots.
        minimum: Input below which a further task is not worth it.
    """
    if total < minimum:
        return 1
    rounds = max(math.ceil(total / target / parallelism), 1)
    wanted = rounds * parallelism  # no slot idles in the last round
    return max(1, min(wanted, math.ceil(total / minimum)) if minimum else wanted)


_Share = tuple[dict[int, LeafSlice], int]


@dataclass(frozen=True)
class _TaskCost:
    """How long tasks take, in bytes: each costs about what `own_bytes` of input do besides its own.

    Args:
        slots: Tasks that run at once.
    """

    slots: int
    own_bytes: int

    def of(self, shares: Sequence[_Share]) -> int:
        """When the last of these tasks ends."""
        return makespan((size + self.own_bytes for _, size in shares), self.slots)


def _grouped(branch: Branch, sizes: InputSizes, min_task_bytes: int) -> list[_Share]:
    """A task for each group of the files of a scan, at least one."""
    (leaf,) = branch.leaves
    size = group_bytes(sizes.num_bytes(leaf), min_task_bytes)
    groups = group_units(sizes.scans[leaf], size) or [()]
    return [({leaf: ScanSlice(g)}, sum(unit.num_bytes for unit in g)) for g in groups]


def _divide(
    branch: Branch,
    sizes: InputSizes,
    count: int,
    cost: _TaskCost,
    hot: Sequence[HotPartition],
    coalesce: bool,
) -> list[_Share]:
    if branch.kind == "splits" and len(branch.leaves) == 1:
        leaf = branch.leaves[0]
        shares = _split_units(sizes.scans[leaf], count)
        return [({leaf: ScanSlice(files)}, size) for files, size in shares]
    if branch.kind == "partitions":
        return _divide_partitions(branch, sizes, count, cost, hot, coalesce)
    whole = {leaf: sizes.whole(leaf) for leaf in branch.leaves}
    return [(whole, sum(sizes.num_bytes(leaf) for leaf in branch.leaves))]


def _divide_partitions(
    branch: Branch,
    sizes: InputSizes,
    count: int,
    cost: _TaskCost,
    hot: Sequence[HotPartition],
    coalesce: bool,
) -> list[_Share]:
    lengths = {len(sizes.partitions[leaf]) for leaf in branch.leaves}
    if len(lengths) != 1:
        raise InternalPlanError(f"inputs that are joined have {sorted(lengths)} partitions")
    columns = [sizes.partitions[leaf] for leaf in branch.leaves]
    weights = [sum(parts) for parts in zip(*columns, strict=True)]
    result = _ranges(branch, weights, 0, len(weights), count if coalesce else None)
    pieces = {h.partition: h for h in hot if h.leaf in branch.leaves}
    if not pieces or count < 2:
        return result
    ends = cost.of(result) * _WORTH
    for finer in range(1, _FINEST + 1):
        fair = sum(weights) / count / finer
        found = _with_pieces(branch, weights, pieces, fair, coalesce)
        if (end := cost.of(found)) < ends:
            # Spark starts tasks in order, and the largest should not be the last to start.
            result, ends = sorted(found, key=lambda share: -share[1]), end * _WORTH
    return result


def _one_each(branch: Branch, sizes: InputSizes) -> list[_Share]:
    """A task for each partition, of which there are as many as the query asks for."""
    columns = [sizes.partitions[leaf] for leaf in branch.leaves]
    weights = [sum(parts) for parts in zip(*columns, strict=True)]
    return [
        (dict.fromkeys(branch.leaves, PartitionRange(place, place + 1)), weight)
        for place, weight in enumerate(weights)
    ]


def _ranges(
    branch: Branch, weights: Sequence[int], start: int, end: int, count: int | None
) -> list[_Share]:
    """Partitions `start` to `end` in at most `count` ranges; None for a range each."""
    result: list[_Share] = []
    each = [(place, place + 1) for place in range(end - start)]
    for low, high in each if count is None else cut_evenly(weights[start:end], count):
        part = PartitionRange(start + low, start + high)
        slices: dict[int, LeafSlice] = dict.fromkeys(branch.leaves, part)
        result.append((slices, sum(weights[part.low : part.high])))
    return result


def _with_pieces(
    branch: Branch,
    weights: Sequence[int],
    hot: Mapping[int, HotPartition],
    fair: float,
    coalesce: bool,
) -> list[_Share]:
    """Tasks of about `fair` bytes, with hot partitions in pieces."""
    result: list[_Share] = []
    start = 0
    for partition in [*sorted(hot), len(weights)]:
        if between := sum(weights[start:partition]):
            count = max(1, round(between / fair)) if coalesce else None
            result += _ranges(branch, weights, start, partition, count)
        if partition in hot:
            found = hot[partition]
            size = sum(found.file_bytes)
            for piece in cut_pieces(found.file_bytes, math.ceil(size / fair)):
                slices: dict[int, LeafSlice] = dict.fromkeys(
                    branch.leaves, PartitionRange(partition, partition + 1)
                )
                slices[found.leaf] = PartitionPiece(partition, piece)
                result.append((slices, weights[partition] - size + piece.num_bytes))
        start = partition + 1
    return result


def _split_units(units: Sequence[ScanUnit], count: int) -> list[tuple[tuple[ScanUnit, ...], int]]:
    filled = [unit for unit in units if unit.num_rows]
    if not filled:
        return [((), 0)]
    if count <= 1:
        return [(tuple(filled), sum(unit.num_bytes for unit in filled))]
    whole = _pack_whole_units(filled, count)
    mean = sum(unit.num_bytes for unit in filled) / count
    if len(whole) == count and max(size for _, size in whole) <= mean * MAX_IMBALANCE:
        return whole
    return _cut_units(filled, count)


def _pack_whole_units(
    units: Sequence[ScanUnit], count: int
) -> list[tuple[tuple[ScanUnit, ...], int]]:
    """Largest unit first, each to the task with the least; units keep their order in a task."""
    loads = [(0, task) for task in range(count)]  # a heap, as it is
    chosen: list[list[int]] = [[] for _ in range(count)]
    for position in sorted(range(len(units)), key=lambda i: (-units[i].num_bytes, i)):
        load, task = loads[0]
        heapq.heapreplace(loads, (load + units[position].num_bytes, task))
        chosen[task].append(position)
    packed = [(sorted(chosen[task]), load) for load, task in loads if chosen[task]]
    # Tasks in the order of their first units, whatever the sizes.
    packed.sort()
    return [(tuple(units[i] for i in positions), load) for positions, load in packed]


def _cut_units(units: Sequence[ScanUnit], count: int) -> list[tuple[tuple[ScanUnit, ...], int]]:
    pieces = [piece for unit in units for piece in unit.split() if piece.num_rows]
    sizes = [piece.num_bytes for piece in pieces]
    return [
        (join_neighbours(pieces[low:high]), sum(sizes[low:high]))
        for low, high in cut_evenly(sizes, count)
    ]
