"""Actual rows of the operators of a stage, as far as they were counted.

Counted are the output of each stage and what its tasks read from tables. Other operators have as
many rows as one of these where no other number is possible: a projection has the rows of its input.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.planner.plan.physical import (
    AggregateExec,
    BloomBuildExec,
    LimitExec,
    PhysicalPlan,
    ProjectionExec,
    ScanExec,
    SortExec,
    SortPreservingMergeExec,
    StageInputExec,
    UnionExec,
)


def task_metrics(manifest: Manifest) -> Sequence[Mapping[str, Any]]:
    """What the tasks of a stage reported, in their order; empty where nothing is known."""
    tasks: Sequence[Mapping[str, Any]] = manifest.metrics.get("tasks", ())
    return tasks


def actual_rows(
    nodes: Sequence[PhysicalPlan], manifest: Manifest | None, stages: Mapping[int, int | None]
) -> dict[int, int]:
    """Rows of the operators of which they are known, by their position in the walk.

    Args:
        nodes: The operators of a fragment, as `tree.walk` goes.
        manifest: What the stage committed; None where it has no output.
        stages: Rows of the outputs of the stages before, where they are known.
    """
    known: dict[int, int] = {}
    if manifest is None:
        return known
    known[0] = manifest.num_rows
    metrics = task_metrics(manifest)
    leaves = [i for i, n in enumerate(nodes) if isinstance(n, ScanExec | StageInputExec)]
    for leaf, position in enumerate(leaves):
        node = nodes[position]
        if isinstance(node, StageInputExec):
            rows = stages.get(node.stage_id)
            if rows is not None:
                known.setdefault(position, rows)
            continue
        read = [task["rows_in"][leaf] for task in metrics if len(task["rows_in"]) > leaf]
        if read and isinstance(node, ScanExec):
            known.setdefault(position, sum(read) if node.read == "split" else max(read))
    _spread(nodes, known)
    return known


def _spread(nodes: Sequence[PhysicalPlan], known: dict[int, int]) -> None:
    """From operators whose rows are known to those that have as many."""
    children = _child_positions(nodes)
    for position, node in enumerate(nodes):  # downwards
        if position in known and _keeps_rows(node):
            known.setdefault(children[position][0], known[position])
    for position in reversed(range(len(nodes))):  # upwards
        below = [known.get(child) for child in children[position]]
        if _keeps_rows(nodes[position]) and below[0] is not None:
            known.setdefault(position, below[0])
        elif isinstance(nodes[position], UnionExec) and None not in below:
            known.setdefault(position, sum(rows or 0 for rows in below))


def _child_positions(nodes: Sequence[PhysicalPlan]) -> list[list[int]]:
    """For each operator of a walk, where its inputs stand in it."""
    children: list[list[int]] = [[] for _ in nodes]
    open_nodes: list[tuple[int, int]] = []  # position, and how many inputs are still to come
    for position, node in enumerate(nodes):
        if open_nodes:
            parent, left = open_nodes.pop()
            children[parent].append(position)
            if left > 1:
                open_nodes.append((parent, left - 1))
        if node.children:
            open_nodes.append((position, len(node.children)))
    return children


def _keeps_rows(node: PhysicalPlan) -> bool:
    if isinstance(node, SortExec | SortPreservingMergeExec):
        return node.fetch is None
    return isinstance(node, ProjectionExec) or type(node).__name__ == "WindowExec"


def per_task(node: PhysicalPlan, tasks: int) -> int:
    """How many times as many rows an operator may give because each task gives its own.

    A partial aggregate or the limit of a task is estimated as if there were one task.
    """
    while _keeps_rows(node) and node.children:
        node = node.children[0]
    partial = isinstance(node, AggregateExec) and node.mode == "partial"
    partial = partial or (isinstance(node, BloomBuildExec) and bool(node.keys))
    limited = isinstance(node, LimitExec) or (isinstance(node, SortExec) and node.fetch is not None)
    return max(tasks, 1) if partial or limited else 1
