"""Rule: move selective semi joins to the relation that they restrict."""

from __future__ import annotations

from dataclasses import replace

from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.plan.logical import Filter, Join, LogicalPlan
from stagecoach.planner.tree import transform_down


def push_down_semi_joins(plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
    """Push a semi join with a small right side below the inner joins of its left side.

    Before:  SemiJoin[o.k = s.k](InnerJoin(o, l), s)
    After:   InnerJoin(SemiJoin[o.k = s.k](o, s), l)
    Never:   where the right side is too large to send to every task: it may well be larger than
    what the inner joins leave.
    """

    def visit(node: LogicalPlan) -> LogicalPlan:
        if not isinstance(node, Join) or node.kind != "semi":
            return node
        small = context.estimator.estimate(node.right).num_bytes <= context.options.broadcast_bytes
        return _sink(node.left, node) if small else node

    return transform_down(plan, visit)


def _sink(plan: LogicalPlan, semi: Join) -> LogicalPlan:
    needed = semi.condition.column_ids - semi.right.column_ids
    if isinstance(plan, Join) and plan.kind in ("inner", "cross"):
        if needed <= plan.left.column_ids:
            return replace(plan, left=_sink(plan.left, semi))
        if needed <= plan.right.column_ids:
            return replace(plan, right=_sink(plan.right, semi))
    if isinstance(plan, Filter):
        return (
            replace(plan, child=_sink(plan.child, semi))
            if isinstance(plan.child, Join)
            else replace(semi, left=plan)
        )
    return replace(semi, left=plan)
