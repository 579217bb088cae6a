"""Rule: the order of joins, from estimated sizes."""

from __future__ import annotations

from dataclasses import replace

from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.optimizer.join_graph import JoinGraph
from stagecoach.planner.optimizer.join_groups import JoinGroup, is_orderable
from stagecoach.planner.optimizer.join_order import best_order
from stagecoach.planner.plan.logical import LogicalPlan


def reorder_joins(plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
    """Choose the cheapest order for each group of inner, semi and anti joins.

    Bushy trees, by dynamic programming over connected subgraphs where there are few enough of them
    (some ten relations), by greedy operator ordering beyond; see `join_order`. Of an inner join the
    smaller input is on the right.
    Before:  Semi[o.k = s.k](Inner(Inner(customer, lineitem: no key), orders), s)
    After:   Inner(Semi[l.k = s.k](lineitem, s), Inner(orders, customer))
    Never:   a cross product where predicates connect all relations; outer joins stay where they
    are, each a relation of the group above it.
    """
    if not is_orderable(plan):
        return plan.with_children(tuple(reorder_joins(child, context) for child in plan.children))
    group = JoinGroup.of(plan)
    graph = JoinGraph(
        replace(
            group,
            relations=tuple(reorder_joins(r, context) for r in group.relations),
            restrictions=tuple(
                replace(r, relation=reorder_joins(r.relation, context)) for r in group.restrictions
            ),
        ),
        context,
    )
    return graph.plan(best_order(graph))
