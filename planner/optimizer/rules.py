"""The rules of the logical optimiser in their order.

After each rule the plan is valid and computes the same rows. No rule chooses an algorithm, an
exchange or an engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stagecoach.planner.limits.deadline import check_deadline
from stagecoach.planner.optimizer.collapse_projects import collapse_projects
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.optimizer.convert_outer_joins import convert_outer_joins
from stagecoach.planner.optimizer.derive_predicates import derive_predicates
from stagecoach.planner.optimizer.eliminate_distinct import eliminate_distinct
from stagecoach.planner.optimizer.eliminate_joins import eliminate_joins
from stagecoach.planner.optimizer.eliminate_sorts import eliminate_sorts
from stagecoach.planner.optimizer.factor_disjunctions import factor_disjunctions
from stagecoach.planner.optimizer.fold_constants import fold_constants
from stagecoach.planner.optimizer.narrow_decimals import narrow_decimals
from stagecoach.planner.optimizer.prune_columns import prune_columns
from stagecoach.planner.optimizer.prune_empty import prune_empty
from stagecoach.planner.optimizer.prune_scans import prune_scans
from stagecoach.planner.optimizer.push_down_aggregates import push_down_aggregates
from stagecoach.planner.optimizer.push_down_filters import push_down_filters
from stagecoach.planner.optimizer.push_down_limits import push_down_limits
from stagecoach.planner.optimizer.push_down_semi_joins import push_down_semi_joins
from stagecoach.planner.optimizer.reduce_aggregates import reduce_aggregates
from stagecoach.planner.optimizer.reorder_joins import reorder_joins
from stagecoach.planner.optimizer.unnest_subqueries import unnest_subqueries
from stagecoach.planner.plan.logical import Aggregate, Join, Limit, LogicalPlan
from stagecoach.planner.tree import walk

Rule = Callable[[LogicalPlan, RuleContext], LogicalPlan]

RULES: tuple[Rule, ...] = (
    fold_constants,
    unnest_subqueries,
    factor_disjunctions,
    convert_outer_joins,  # before filters move, which it needs above the join
    push_down_filters,
    derive_predicates,  # from filters at their relations
    prune_empty,  # needs filters and what they imply at their relations
    eliminate_sorts,  # before rules that look for joins next to each other
    reduce_aggregates,  # makes semi joins, which the next rule moves on
    push_down_semi_joins,
    collapse_projects,
    prune_scans,  # for what is read at all, and the widths that the join order looks at
    eliminate_joins,
    eliminate_distinct,
    reorder_joins,  # needs filters at their relations, for the estimates
    push_down_aggregates,  # by what the joins in their order are expected to read and give
    push_down_limits,
    prune_columns,  # removes what the others made superfluous
    narrow_decimals,  # last: about the cost of expressions, not the shape of the plan
)

ABOUT: Mapping[Rule, type[LogicalPlan]] = {
    convert_outer_joins: Join,
    derive_predicates: Join,
    reduce_aggregates: Join,
    push_down_semi_joins: Join,
    eliminate_joins: Join,
    reorder_joins: Join,
    eliminate_distinct: Aggregate,
    push_down_aggregates: Aggregate,
    push_down_limits: Limit,
}
"""Rules that change nothing in a plan without an operator of this class."""


def optimize(
    plan: LogicalPlan, context: RuleContext, rules: tuple[Rule, ...] = RULES
) -> LogicalPlan:
    """The plan after every rule that is about one of its operators, in order."""
    classes = _classes(plan)
    for rule in rules:
        check_deadline()
        if rule in ABOUT and ABOUT[rule] not in classes:
            continue
        before, plan = plan, rule(plan, context)
        if plan is not before:
            classes = _classes(plan)
    return plan


def optimize_for_one_task(plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
    """An optimised plan as it is best if one task computes it; the same plan if it is so already.

    Which plans one task computes is known after they are lowered. Of all rules, only
    `push_down_aggregates` looks at what tasks send each other.
    """
    pushed = optimize(plan, context.for_one_task(), (push_down_aggregates,))
    if pushed is plan:
        return plan
    return optimize(pushed, context, RULES[RULES.index(push_down_aggregates) + 1 :])


def _classes(plan: LogicalPlan) -> frozenset[type[LogicalPlan]]:
    return frozenset(type(node) for node in walk(plan))
