"""Makes all decisions about the tasks of a stage from the sizes of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.runtime.adaptive.broadcast import (
    LOCAL_REQUEST_BYTES,
    REMOTE_REQUEST_BYTES,
    BroadcastRule,
    read_as_broadcast,
)
from stagecoach.infra.runtime.adaptive.coalesce import coalesce_decision
from stagecoach.infra.runtime.adaptive.decision import Decision
from stagecoach.infra.runtime.adaptive.empty import empty_decision, find_empty
from stagecoach.infra.runtime.adaptive.estimator import (
    FileRange,
    InputSizes,
    PartitionPiece,
    PartitionRange,
    TaskAssignment,
    assign_tasks,
    num_tasks,
)
from stagecoach.infra.runtime.adaptive.ranges import Blocks, divide_merge
from stagecoach.infra.runtime.adaptive.requested import asks_for_tasks
from stagecoach.infra.runtime.adaptive.rounds import worth_task_bytes
from stagecoach.infra.runtime.adaptive.skew import (
    HotPartition,
    SkewRule,
    hot_partitions,
    skew_decision,
    splittable_leaves,
)
from stagecoach.infra.shuffle.fetch import request_bytes
from stagecoach.infra.worker.spec import EXPANSION
from stagecoach.planner.plan.stages import Stage

FileBytes = Callable[[int, int], Sequence[int]]
"""Stored bytes of a partition in each map file: of a leaf and a partition."""


@dataclass(frozen=True)
class DividedStage:
    """What the tasks of a stage read, at least one, and what was decided."""

    tasks: tuple[TaskAssignment, ...]
    decisions: tuple[Decision, ...]


def divide_stage(
    stage: Stage,
    sizes: InputSizes,
    settings: EngineSettings,
    *,
    is_head: bool,
    parallelism: int,
    file_bytes: FileBytes,
    blocks: Blocks | None = None,
    is_local: bool = True,
    in_groups: bool = False,
) -> DividedStage:
    """Share out the inputs of a stage among tasks.

    Args:
        stage: The stage.
        sizes: What its inputs hold.
        settings: Sizes of tasks; whether and what is decided by the sizes of inputs.
        is_head: Whether the stage makes the result.
        parallelism: Task slots.
        file_bytes: Asked for skewed partitions only.
        blocks: Asked for sorted files that several tasks may merge; None for one task.
        is_local: Whether the inputs are local files, for which requests cost little.
        in_groups: Whether each task reads a group of files, whose output later runs may take over.
    """
    decisions: list[Decision] = []
    hot: list[HotPartition] = []
    splittable: frozenset[int] = frozenset()
    if settings.decides("empty"):
        sizes, decisions = without_useless(stage, sizes)
    is_ours = not asks_for_tasks(stage)  # else the number of tasks is not ours to choose
    if is_ours:
        splittable = splittable_leaves(stage, is_head=is_head)
    if settings.decides("skew"):
        rule = SkewRule(settings.skew_factor, settings.skew_bytes)
        alone = SkewRule(0, 2 * settings.target_task_bytes)
        hot = _hot_partitions(stage, sizes, rule, alone, splittable, file_bytes)
    task_bytes = settings.target_task_bytes
    if settings.decides("rounds") and is_ours and not in_groups:
        task_bytes, fewer = worth_task_bytes(
            stage,
            sizes,
            parallelism=parallelism,
            target=task_bytes,
            minimum=settings.min_task_bytes,
        )
        decisions += [] if fewer is None else [fewer]
    tasks = assign_tasks(
        stage,
        sizes,
        parallelism=parallelism,
        target_task_bytes=task_bytes,
        min_task_bytes=settings.min_task_bytes,
        hot=hot,
        coalesce=settings.decides("coalesce"),
        in_groups=in_groups,
    )
    if settings.decides("broadcast"):
        broadcast_rule = _broadcast_rule(settings, parallelism, is_local=is_local)
        tasks, found = read_as_broadcast(stage, sizes, tasks, splittable, broadcast_rule)
        decisions += found
    if settings.decides("empty"):
        tasks = _without_idle(stage, sizes, tasks)
    if settings.decides("ranges"):
        tasks, found = divide_merge(
            stage, sizes, tasks, _worth_tasks(tasks, settings, parallelism), blocks
        )
        decisions += found
    decisions += _skew_decisions(stage, sizes, tasks, hot)
    if settings.decides("coalesce"):
        decisions += _coalesce_decisions(stage, sizes, tasks)
    return DividedStage(tasks, tuple(decisions))


def without_useless(stage: Stage, sizes: InputSizes) -> tuple[InputSizes, list[Decision]]:
    """The sizes of what must be read, given which inputs turned out empty."""
    leaves = range(len(stage.leaves))
    empty = {i for i in leaves if sizes.reads_nothing(i, sizes.whole(i))}
    found = find_empty(stage, empty)
    decision = empty_decision(stage, found, empty)
    return sizes.without(found.unread), [] if decision is None else [decision]


def _broadcast_rule(settings: EngineSettings, parallelism: int, *, is_local: bool) -> BroadcastRule:
    return BroadcastRule(
        max_bytes=settings.late_broadcast_bytes,
        slots=parallelism,
        task_bytes=settings.min_task_bytes,
        request_bytes=LOCAL_REQUEST_BYTES if is_local else REMOTE_REQUEST_BYTES,
        max_request_bytes=request_bytes(settings.reader_memory_bytes),
        cached_bytes=settings.broadcast_cache_bytes // EXPANSION,
    )


def _worth_tasks(
    tasks: Sequence[TaskAssignment], settings: EngineSettings, parallelism: int
) -> int:
    """How many tasks the input of some would be worth if any row could go to any task."""
    total = sum(task.num_bytes for task in tasks)
    return num_tasks(total, parallelism, settings.target_task_bytes, settings.min_task_bytes)


def _hot_partitions(
    stage: Stage,
    sizes: InputSizes,
    rule: SkewRule,
    alone: SkewRule,
    splittable: Collection[int],
    file_bytes: FileBytes,
) -> list[HotPartition]:
    """The partitions that several tasks may read.

    Those of an input that a branch reads `alone` need not be larger than the others: whatever each
    task reads of it, no task reads anything twice. So is the first level of a shuffle divided.
    """
    return [
        HotPartition(leaf, partition, tuple(file_bytes(leaf, partition)))
        for branch in stage.branches
        if branch.kind == "partitions"
        for leaf, partition in hot_partitions(
            {leaf: sizes.partitions[leaf] for leaf in branch.leaves},
            splittable,
            alone if len(branch.leaves) == 1 else rule,
        )
    ]


def _without_idle(
    stage: Stage, sizes: InputSizes, tasks: Sequence[TaskAssignment]
) -> tuple[TaskAssignment, ...]:
    """The tasks that can give a row, at least one, without what is of no use to them."""
    kept: list[TaskAssignment] = []
    idle: list[TaskAssignment] = []
    for task in tasks:
        empty = {i for i, part in enumerate(task.slices) if sizes.reads_nothing(i, part)}
        found = find_empty(stage, empty)
        slices = tuple(
            sizes.empty(i) if i in found.unread else part for i, part in enumerate(task.slices)
        )
        (idle if found.no_rows else kept).append(TaskAssignment(slices, task.num_bytes))
    return tuple(kept or idle[:1])


def _skew_decisions(
    stage: Stage,
    sizes: InputSizes,
    tasks: Sequence[TaskAssignment],
    hot: Sequence[HotPartition],
) -> list[Decision]:
    """What to say of partitions that were split."""
    split = _split_partitions(tasks)
    return [
        skew_decision(stage, found, pieces, sizes.partitions[found.leaf])
        for found in hot
        if (pieces := split.count((found.leaf, found.partition)))
    ]


def _coalesce_decisions(
    stage: Stage, sizes: InputSizes, tasks: Sequence[TaskAssignment]
) -> list[Decision]:
    """What to say of partitions that were joined."""
    parts = [(leaf, part) for task in tasks for leaf, part in enumerate(task.slices)]
    split = _split_partitions(tasks)
    decisions: list[Decision] = []
    for branch in stage.branches:
        if branch.kind != "partitions" or any(leaf in branch.leaves for leaf, _ in split):
            continue
        if any(leaf in branch.leaves and isinstance(part, FileRange) for leaf, part in parts):
            continue
        columns = [sizes.partitions[leaf] for leaf in branch.leaves]
        filled = sum(1 for parts_of in zip(*columns, strict=True) if any(parts_of))
        ranges = {
            part
            for leaf, part in parts
            if leaf in branch.leaves and isinstance(part, PartitionRange) and part.high > part.low
        }
        decision = coalesce_decision(filled, len(ranges), sum(map(sum, columns)))
        decisions += [] if decision is None else [decision]
    return decisions


def _split_partitions(tasks: Sequence[TaskAssignment]) -> list[tuple[int, int]]:
    """Leaf and partition of each piece that a task reads."""
    return [
        (leaf, part.partition)
        for task in tasks
        for leaf, part in enumerate(task.slices)
        if isinstance(part, PartitionPiece)
    ]
