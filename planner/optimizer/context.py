"""What every rule gets besides the plan: options, estimates and fresh columns."""

from __future__ import annotations

import itertools
from copy import copy
from typing import TYPE_CHECKING

from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.expressions import Column
from stagecoach.planner.plan.logical import LogicalPlan
from stagecoach.planner.plan.subqueries import SubqueryExpression
from stagecoach.planner.tree import walk
from stagecoach.planner.types import DataType

if TYPE_CHECKING:
    from stagecoach.planner.estimates import Estimator


class RuleContext:
    """Options, estimates and new column numbers for one planning run.

    Args:
        options: Planner options.
        estimator: Estimates over the query's tables.
        first_id: A number above those of all columns in use.
    """

    def __init__(self, options: PlannerOptions, estimator: Estimator, first_id: int) -> None:
        self.options = options
        self.estimator = estimator
        self.one_task = False
        """Whether the plan is for one task, so that no rows are sent between tasks."""
        self._ids = itertools.count(first_id)

    def for_one_task(self) -> RuleContext:
        """The same context for a plan that one task computes."""
        context = copy(self)
        context.one_task = True
        return context

    def column(self, name: str, dtype: DataType) -> Column:
        """A new column with a number that nothing else has."""
        return Column(next(self._ids), name, dtype)


def first_free_id(*plans: LogicalPlan) -> int:
    """A number above those of all columns of the plans, subqueries included."""
    highest = -1
    stack = list(plans)
    while stack:
        for node in walk(stack.pop()):
            highest = max(highest, *node.column_ids, -1)
            for expr in node.expressions:
                for part in walk(expr):
                    if isinstance(part, SubqueryExpression):
                        stack.append(part.plan)
    return highest + 1
