"""Apply hints about the number of tasks.

REPARTITION(n)         rows are dealt out in turn to n partitions, each read by one task
REPARTITION(n, keys)   rows of equal keys go to one of n partitions, each read by one task
REPARTITION(keys)      the same with as many partitions and tasks as the sizes ask for
COALESCE(n)            no row moves: the stage has at most n tasks
"""

from __future__ import annotations

from dataclasses import replace

from stagecoach.planner.distribution.delivered import ANY, Distributed, Distribution, key_sets
from stagecoach.planner.distribution.exchanges import Exchanges
from stagecoach.planner.plan.expressions import ColumnRef
from stagecoach.planner.plan.physical import ExchangeExec, PhysicalPlan, RepartitionExec, UnionExec
from stagecoach.planner.tree import walk

_REASON = "a hint asks for it"


def asks_for_tasks(plan: PhysicalPlan) -> bool:
    """Whether a hint in a plan asks for a number of tasks that one task cannot be."""
    hints = (node for node in walk(plan) if isinstance(node, RepartitionExec))
    return any(not hint.at_most and hint.count is not None for hint in hints)


def repartition(plan: RepartitionExec, below: Distributed, exchanges: Exchanges) -> Distributed:
    """The input's rows as a hint asks for them, and how they are spread then.

    Args:
        plan: The hint.
        below: Its input, distributed.
        exchanges: Makes exchanges.
    """
    child, delivered = below
    marker = replace(plan, child=child, keys=())
    if plan.at_most and (delivered.kind == "single" or not _has_branches(child)):
        return marker, delivered
    count = exchanges.partitions(child) if plan.count is None else plan.count
    keys = tuple(key.id for key in plan.keys if isinstance(key, ColumnRef))
    moved = exchanges.shuffle(child, keys, count, _REASON)
    spread = Distribution("hash", key_sets(keys), count) if keys else ANY
    # Without a number the reader decides by sizes, as it does for every shuffle.
    return (moved if plan.count is None else replace(marker, child=moved, at_most=False)), spread


def _has_branches(plan: PhysicalPlan) -> bool:
    """Whether tasks of a stage belong to one input of a union each, so that there are several."""
    stack = [plan]
    while stack:
        node = stack.pop()
        if isinstance(node, UnionExec):
            return True
        if not isinstance(node, ExchangeExec):
            stack.extend(node.children)
    return False
