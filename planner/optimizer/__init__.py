"""Logical optimiser: an ordered list of rules, one a file.

In: a logical plan. Out: an equal one that costs less. No rule names an algorithm, an exchange or an
engine; after each the plan is valid and computes the same rows.
"""

from __future__ import annotations

from collections.abc import Callable

from planner.deadline import check_deadline
from planner.logical import LogicalPlan
from planner.optimizer.collapse_projects import collapse_projects
from planner.optimizer.context import RuleContext as RuleContext
from planner.optimizer.convert_outer_joins import convert_outer_joins
from planner.optimizer.derive_predicates import derive_predicates
from planner.optimizer.eliminate_distinct import eliminate_distinct
from planner.optimizer.eliminate_joins import eliminate_joins
from planner.optimizer.eliminate_sorts import eliminate_sorts
from planner.optimizer.factor_disjunctions import factor_disjunctions
from planner.optimizer.fold_constants import fold_constants
from planner.optimizer.narrow_decimals import narrow_decimals
from planner.optimizer.prune_columns import prune_columns
from planner.optimizer.prune_empty import prune_empty
from planner.optimizer.prune_scans import prune_scans
from planner.optimizer.push_down_aggregates import push_down_aggregates
from planner.optimizer.push_down_filters import push_down_filters
from planner.optimizer.push_down_limits import push_down_limits
from planner.optimizer.push_down_semi_joins import push_down_semi_joins
from planner.optimizer.reduce_aggregates import reduce_aggregates
from planner.optimizer.reorder_joins import reorder_joins
from planner.optimizer.unnest_subqueries import unnest_subqueries

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


def optimize(
    plan: LogicalPlan, context: RuleContext, rules: tuple[Rule, ...] = RULES
) -> LogicalPlan:
    """The plan after every rule, in order."""
    for rule in rules:
        check_deadline()
        plan = rule(plan, context)
    return plan
