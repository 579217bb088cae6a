"""Rule: scans read only columns that something above them uses."""

from __future__ import annotations

from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.optimizer.prune_columns import prune
from stagecoach.planner.plan.logical import LogicalPlan


def prune_scans(plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
    """Drop unread columns early, so that the join order is chosen by the bytes that will move.

    Before:  Project[a] <- Join(Scan(l: k, a, b), Scan(r: k, c))
    After:   Project[a] <- Join(Scan(l: k, a), Scan(r: k))
    Adds no projection between joins, which `reorder_joins` would not see through.
    """
    del context
    return prune(plan, plan.column_ids, narrow=False)
