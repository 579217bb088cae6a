"""Rule: move limits below operators that keep the number of rows."""

from __future__ import annotations

from dataclasses import replace

from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.plan.logical import Limit, LogicalPlan, Project, Union
from stagecoach.planner.tree import transform_down


def push_down_limits(plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
    """Push LIMIT below projections, and a copy into each input of a union.

    Before:  Limit[10] <- Project <- Union(a, b)
    After:   Project <- Limit[10] <- Union(Limit[10] <- a, Limit[10] <- b)
    A limit above a sort stays there: together they are one top-N.
    """
    del context
    return transform_down(plan, _push)


def _push(node: LogicalPlan) -> LogicalPlan:
    if not isinstance(node, Limit):
        return node
    child = node.child
    if isinstance(child, Project):
        return replace(child, child=_push(replace(node, child=child.child)))
    if isinstance(child, Union) and node.limit is not None:
        each = node.limit + node.offset
        if any(not _is_limited(i) for i in child.inputs):
            limited = tuple(i if _is_limited(i) else Limit(i, each) for i in child.inputs)
            return replace(node, child=replace(child, inputs=limited))
    return node


def _is_limited(plan: LogicalPlan) -> bool:
    while isinstance(plan, Project):
        plan = plan.child
    return isinstance(plan, Limit)
