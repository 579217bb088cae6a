"""Rule: the order of inner joins, from estimated sizes."""

from __future__ import annotations

from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.optimizer.join_groups import flatten
from stagecoach.planner.optimizer.join_order import best_order
from stagecoach.planner.plan.logical import Join, LogicalPlan


def reorder_joins(plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
    """Choose the cheapest order for each group of inner joins, the smaller input on the right.

    Bushy trees, by dynamic programming over connected subgraphs where there are few enough of them
    (some ten relations), by greedy operator ordering beyond; see `join_order`.
    Before:  Inner(Inner(customer, lineitem: no key), orders)
    After:   Inner(lineitem, Inner(orders, customer))
    Never:   a cross product where predicates connect all relations; other kinds of joins stay where
    they are, each a relation of the group above it.
    """
    if isinstance(plan, Join) and plan.kind in ("inner", "cross"):
        relations, predicates = flatten(plan)
        return best_order([reorder_joins(r, context) for r in relations], predicates, context)
    return plan.with_children(tuple(reorder_joins(child, context) for child in plan.children))
