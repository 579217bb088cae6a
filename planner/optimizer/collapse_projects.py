"""Rule: a projection of a projection is one projection."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.plan.expressions import ColumnRef, Literal, substitute
from stagecoach.planner.plan.logical import LogicalPlan, Project
from stagecoach.planner.tree import transform_up, walk


def collapse_projects(plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
    """Merge adjacent projections, so that a CTE or view leaves no trace in the plan.

    Before:  Project[x + 1] <- Project[a * b AS x] <- t
    After:   Project[a * b + 1] <- t
    Never:   where a computed column would be computed more than once.
    """
    del context
    return transform_up(plan, _collapse)


def _collapse(node: LogicalPlan) -> LogicalPlan:
    if not isinstance(node, Project) or not isinstance(node.child, Project):
        return node
    inner = {column.id: expr for column, expr in node.child.items}
    uses = Counter(
        part.id for _, expr in node.items for part in walk(expr) if isinstance(part, ColumnRef)
    )
    for column, expr in inner.items():  # parameters of lambdas are not columns of the child
        if uses[column] > 1 and not isinstance(expr, ColumnRef | Literal):
            return node
    items = tuple((column, substitute(expr, inner)) for column, expr in node.items)
    return replace(node, child=node.child.child, items=items)
