"""Rule: drop DISTINCT where rows already differ."""

from __future__ import annotations

from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.optimizer.proofs import is_unique
from stagecoach.planner.plan.expressions import ColumnRef
from stagecoach.planner.plan.logical import Aggregate, LogicalPlan, Project
from stagecoach.planner.tree import transform_up


def eliminate_distinct(plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
    """Make DISTINCT a projection where its columns hold a key that the plan proves.

    Before:  Aggregate[gby k, n] <- Aggregate[gby k, count(*) AS n] <- t
    After:   Project[k, n] <- Aggregate[gby k, count(*) AS n] <- t
    Never:   because statistics let a column look like a key; for groups with aggregates.
    """
    del context
    return transform_up(plan, _eliminate)


def _eliminate(plan: LogicalPlan) -> LogicalPlan:
    if not isinstance(plan, Aggregate) or plan.aggregates or not plan.groups:
        return plan
    columns = frozenset(e.id for _, e in plan.groups if isinstance(e, ColumnRef))
    if not is_unique(plan.child, columns):
        return plan
    return Project(plan.child, plan.groups)
