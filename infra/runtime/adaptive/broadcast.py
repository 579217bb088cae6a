"""Lets every task read the whole of an input that turned out small.

    by partitions   task 3: partitions 6-8 of both inputs, one range in every map file of each
    by map files    task 3: files 2-3 of the large input, whole, and all of the small one

Both inputs have been shuffled by then. What this saves is requests (a task reads each of its files
with one, instead of a part of every file) and imbalance, for map files are about equally large
however the keys are spread. What it costs is that every task hashes the whole small input. So both
ways are counted, and this one is taken where its last task ends clearly sooner. It is legal where a
partition of the large input may be split: its rows meet their partners one by one (`skew`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from stagecoach.infra.runtime.adaptive.coalesce import cut_evenly
from stagecoach.infra.runtime.adaptive.decision import Decision
from stagecoach.infra.runtime.adaptive.empty import name_of
from stagecoach.infra.runtime.adaptive.estimator import (
    FileRange,
    InputSizes,
    LeafSlice,
    PartitionPiece,
    PartitionRange,
    TaskAssignment,
)
from stagecoach.infra.runtime.adaptive.requested import requested_tasks
from stagecoach.infra.runtime.adaptive.skew import makespan
from stagecoach.planner.plan.stages import Branch, Stage

LOCAL_REQUEST_BYTES = 8 << 10
"""What opening a local file takes, in stored bytes of input that a task reads meanwhile."""
REMOTE_REQUEST_BYTES = 256 << 10
"""The same for a request to an object store, of which several are under way at once."""

_WORTH = 0.8  # of the time by partitions that reading by files may take at most
_BUILD_WEIGHT = 2  # a byte that is hashed takes about as long as so many that are streamed
_FINEST = 3  # how many times more tasks than by partitions there may be


@dataclass(frozen=True)
class BroadcastRule:
    """When a small input is read whole, and how long reading takes.

    Args:
        max_bytes: Largest stored size of all other inputs together; 0 for never.
        slots: Tasks that run at once.
        task_bytes: A task takes as long as reading so many bytes, besides what it reads.
        request_bytes: A request takes as long as reading so many bytes.
        max_request_bytes: What one request reads at most.
        cached_bytes: Up to which stored size a worker reads the small inputs once for all tasks.
    """

    max_bytes: int
    slots: int
    task_bytes: int
    request_bytes: int
    max_request_bytes: int
    cached_bytes: int


@dataclass(frozen=True)
class _Reading:
    """A way to read a branch: its tasks, requests in all, and when the last task ends."""

    tasks: tuple[TaskAssignment, ...]
    requests: int
    end: int


def read_as_broadcast(
    stage: Stage,
    sizes: InputSizes,
    tasks: Sequence[TaskAssignment],
    splittable: Collection[int],
    rule: BroadcastRule,
) -> tuple[tuple[TaskAssignment, ...], list[Decision]]:
    """The tasks with those branches read by map files for which that ends sooner.

    Args:
        stage: The stage.
        sizes: What its inputs hold, map file by map file.
        tasks: Its tasks as they read partitions.
        splittable: The leaves of which each task may read any part of the rows.
        rule: When it is worth it.

    Returns:
        The tasks, at least one, and what to say of each branch that changed.
    """
    result = list(tasks)
    decisions: list[Decision] = []
    for branch in stage.branches:
        large = _large_leaf(branch, sizes, splittable, rule.max_bytes)
        if large is None or requested_tasks(stage, branch) is not None:
            continue
        mine = [task for task in result if _is_of(task, branch)]
        now = _Reading(tuple(mine), *_cost(mine, branch, sizes, rule))
        best = _by_files(now, branch, large, sizes, rule)
        if best is now:
            continue
        first = result.index(mine[0])
        others = [task for task in result if not _is_of(task, branch)]
        result = [*others[:first], *best.tasks, *others[first:]]
        decisions.append(_decision(stage, branch, large, sizes, now, best))
    return tuple(result), decisions


def _large_leaf(
    branch: Branch, sizes: InputSizes, splittable: Collection[int], max_bytes: int
) -> int | None:
    """The input of a join whose files can be shared out, all others being small."""
    if branch.kind != "partitions" or len(branch.leaves) < 2:
        return None
    large = max(branch.leaves, key=lambda leaf: (leaf in splittable, sizes.num_bytes(leaf)))
    small = sum(sizes.num_bytes(leaf) for leaf in branch.leaves if leaf != large)
    known = all(sizes.files.get(leaf) for leaf in branch.leaves)
    fits = large in splittable and 0 < small <= max_bytes
    return large if fits and known and sizes.num_bytes(large) > small else None


def _by_files(
    now: _Reading, branch: Branch, large: int, sizes: InputSizes, rule: BroadcastRule
) -> _Reading:
    """The best way to share out the files of the large input, or `now` if none ends sooner."""
    files = sizes.files[large]
    template = now.tasks[0].slices
    best, ends = now, now.end * _WORTH
    for factor in range(1, _FINEST + 1):
        tasks: list[TaskAssignment] = []
        for low, high in cut_evenly(files, len(now.tasks) * factor):
            if size := sum(files[low:high]):
                slices: list[LeafSlice] = list(template)
                for leaf in branch.leaves:
                    slices[leaf] = PartitionRange(0, len(sizes.partitions[leaf]), shared=True)
                slices[large] = FileRange(low, high, size)
                tasks.append(TaskAssignment(tuple(slices), size))
        requests, end = _cost(tasks, branch, sizes, rule)
        if end < ends:
            # Spark starts tasks in order, and the largest should not be the last to start.
            tasks.sort(key=lambda task: -task.num_bytes)
            best, ends = _Reading(tuple(tasks), requests, end), end * _WORTH
    return best


def _cost(
    tasks: Sequence[TaskAssignment], branch: Branch, sizes: InputSizes, rule: BroadcastRule
) -> tuple[int, int]:
    """Requests of all tasks of a branch, and when the last one ends, in bytes."""
    total = 0
    ends: list[int] = []
    workers = min(len(tasks), rule.slots)
    for number, task in enumerate(tasks):
        requests = hashed = 0
        for leaf in branch.leaves:
            part = task.slices[leaf]
            read = _requests(part, sizes.files[leaf], sizes, leaf, rule.max_request_bytes)
            if isinstance(part, PartitionRange) and part.shared:
                size = sizes.num_bytes(leaf)
                hashed += size * _BUILD_WEIGHT
                read = read if number < workers or size > rule.cached_bytes else 0
            requests += read
        total += requests
        ends.append(task.num_bytes + hashed + rule.task_bytes + requests * rule.request_bytes)
    return total, makespan(ends, rule.slots)


def _requests(
    part: LeafSlice, files: Sequence[int], sizes: InputSizes, leaf: int, max_bytes: int
) -> int:
    """How many requests for map files a slice of a stage input takes."""
    if isinstance(part, FileRange):
        read = files[part.low : part.high]
    elif isinstance(part, PartitionPiece):
        share = part.piece.num_bytes * part.piece.shares // (part.piece.high - part.piece.low)
        read = [share] * (part.piece.high - part.piece.low)
    elif isinstance(part, PartitionRange):
        share = sum(sizes.partitions[leaf][part.low : part.high]) // len(files)
        read = [share] * len(files) if share else []
    else:
        return 0
    return sum(max(1, math.ceil(size / max_bytes)) for size in read if size)


def _is_of(task: TaskAssignment, branch: Branch) -> bool:
    """Whether a task reads something of a branch."""
    parts = [task.slices[leaf] for leaf in branch.leaves]
    return any(not isinstance(p, PartitionRange) or p.high > p.low for p in parts)


def _decision(
    stage: Stage, branch: Branch, large: int, sizes: InputSizes, now: _Reading, best: _Reading
) -> Decision:
    small = [leaf for leaf in branch.leaves if leaf != large]
    names = ", ".join(name_of(stage, leaf) for leaf in small)
    num_bytes = sum(sizes.num_bytes(leaf) for leaf in small)
    return Decision(
        "broadcast",
        f"{names}, {num_bytes:,} bytes, read whole by {len(best.tasks)} "
        f"task{'' if len(best.tasks) == 1 else 's'}, each with map files of "
        f"{name_of(stage, large)}, {sizes.num_bytes(large):,} bytes: {best.requests:,} requests "
        f"instead of {now.requests:,}, the last task ends after {best.end / max(now.end, 1):.0%} "
        "of the time",
    )
