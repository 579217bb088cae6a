"""How many tasks a query asks for by hints such as `REPARTITION`."""

from __future__ import annotations

from dataclasses import dataclass

from stagecoach.planner.plan.physical import PhysicalPlan, RepartitionExec
from stagecoach.planner.plan.stages import Branch, Stage


@dataclass(frozen=True)
class RequestedTasks:
    """What a hint asks for.

    Args:
        count: How many tasks.
        at_most: Whether fewer will do.
    """

    count: int
    at_most: bool


def requested_tasks(stage: Stage, branch: Branch) -> RequestedTasks | None:
    """What the hints of a stage ask for the tasks of one of its branches."""
    leaves = [stage.leaves[position] for position in branch.leaves]
    found = [hint for leaf in leaves for hint in _hints_above(stage.fragment, leaf)]
    exact = [hint for hint in found if not hint.at_most]
    bounds = [hint for hint in found if hint.at_most]
    bound = min(bounds, key=lambda hint: hint.count, default=None)
    if exact and (bound is None or bound.count >= exact[0].count):
        return exact[0]
    return bound


def asks_for_tasks(stage: Stage) -> bool:
    """Whether a hint says how many tasks a stage has."""
    return any(requested_tasks(stage, branch) is not None for branch in stage.branches)


def _hints_above(root: PhysicalPlan, leaf: PhysicalPlan) -> list[RequestedTasks]:
    """The hints between a leaf and the root, the innermost last."""
    stack: list[tuple[PhysicalPlan, list[RequestedTasks]]] = [(root, [])]
    while stack:
        node, above = stack.pop()
        if node is leaf:
            return above
        if isinstance(node, RepartitionExec) and node.count is not None:
            above = [*above, RequestedTasks(node.count, node.at_most)]
        stack.extend((child, above) for child in node.children)
    return []
