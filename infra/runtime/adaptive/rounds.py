"""Gives a scan fewer rounds of tasks where every task repeats much of the others' work.

    scan of 2.2 GB  ⋈  9 MB that every task reads     four tasks ─▶ four hash tables
                                                      two tasks  ─▶ two hash tables, larger scans

A stage gets several tasks for each slot so that a failure loses little. Each of them reads all of
the inputs that are not divided among tasks, and builds hash tables of them.
"""

from __future__ import annotations

from stagecoach.infra.runtime.adaptive.decision import Decision
from stagecoach.infra.runtime.adaptive.estimator import InputSizes, num_tasks
from stagecoach.planner.plan.stages import Stage

REPEATED_TIMES = 10
"""Reading and hashing a byte of a shuffle file takes as long as scanning this many of a table."""

MIN_OWN = 20
"""A task scans for at least this many times as long as it repeats the work of other tasks."""

MOST_TARGETS = 4
"""A task reads at most this many times `target_task_bytes`."""


def worth_task_bytes(
    stage: Stage, sizes: InputSizes, *, parallelism: int, target: int, minimum: int
) -> tuple[int, Decision | None]:
    """The input of a task above which a stage gets more tasks than slots, and what to say of it.

    Args:
        stage: The stage.
        sizes: What its inputs hold.
        parallelism: Task slots.
        target: What settings say.
        minimum: Input below which a further task is not worth it.

    Returns:
        At least `target`; that itself, and None, where all tasks are wanted that it makes.
    """
    divided = {leaf for branch in stage.branches for leaf in branch.leaves}
    if not divided or any(branch.kind != "splits" for branch in stage.branches):
        return target, None
    total = sum(map(sizes.num_bytes, divided))
    repeated = sum(sizes.num_bytes(i) for i in range(len(stage.leaves)) if i not in divided)
    worth = max(target, min(repeated * REPEATED_TIMES * MIN_OWN, target * MOST_TARGETS))
    now, fewer = (num_tasks(total, parallelism, size, minimum) for size in (target, worth))
    if fewer == now:
        return target, None
    text = f"{fewer:,} tasks instead of {now:,}: each reads all {repeated:,} bytes of other inputs"
    return worth, Decision("rounds", text)
