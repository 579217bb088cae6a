"""Decide which stages are incremental: a run computes only what is new since the last one.

The tasks of such a stage read groups of files that stay as they are when other files come and go,
and the output of a task is taken over while all that it reads stays the same. So the output must
not depend on how rows are divided among tasks, or on their order.
"""

from __future__ import annotations

from stagecoach.planner.distribution.wide_tasks import aggregate_in_any_order
from stagecoach.planner.engines.registry import SPARK, planner_engine
from stagecoach.planner.plan.expressions import AggregateCall
from stagecoach.planner.plan.physical import (
    DedupScanExec,
    LimitExec,
    PhysicalPlan,
    RepartitionExec,
    ScanExec,
    SortExec,
    WindowExec,
)
from stagecoach.planner.plan.stages import Stage
from stagecoach.planner.tree import walk


def why_whole(stage: Stage) -> str:
    """Why a stage is always computed whole; empty for an incremental one.

    Args:
        stage: The stage, with the engine that is chosen for it.
    """
    if stage.engine == SPARK:
        return f"{planner_engine(SPARK).label} divides the rows among tasks as it likes"
    if not stage.deterministic:
        return "it is not deterministic"
    if any(branch.kind != "splits" for branch in stage.branches):
        if stage.inputs:
            inputs = ", ".join(f"stage {i}" for i in stage.inputs)
            return f"it merges rows of all tasks of {inputs}"
        return "one task reads all of its tables"
    if stage.output.kind == "shuffle" and not stage.output.keys and stage.output.num_partitions > 1:
        return "rows are dealt out to partitions by the number of their task"
    reasons = (_operator_reason(node) for node in walk(stage.fragment))
    return next((reason for reason in reasons if reason), "")


def _operator_reason(node: PhysicalPlan) -> str:
    match node:
        case DedupScanExec():
            return f"a row of '{node.table}' may be replaced by a row of any newer chunk"
        case LimitExec():
            return "which rows a LIMIT keeps depends on how they are divided among tasks"
        case SortExec() if node.fetch is not None:
            return "which of equal rows a LIMIT keeps depends on how they are divided among tasks"
        case SortExec():
            return "the order of equal rows depends on how they are divided among tasks"
        case WindowExec():
            return "a window needs all rows of its partition in one task"
        case RepartitionExec():
            return "a hint asks for a number of tasks"
        case ScanExec():
            return ""
    for expr in node.expressions:
        for part in walk(expr):
            if isinstance(part, AggregateCall) and not aggregate_in_any_order(part):
                kind = f" of {part.args[0].dtype}" if part.args else ""
                return f"{part.function}{kind} depends on how rows are divided among tasks"
    return ""
