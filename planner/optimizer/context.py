"""What every rule is handed besides the plan.

In: options, statistics, the highest column number in use. Out: fresh columns, estimates.
"""

from __future__ import annotations

import itertools

from planner.estimates import Estimator
from planner.expressions import Column
from planner.logical import LogicalPlan
from planner.options import PlannerOptions
from planner.tree import walk
from planner.types import DataType


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
        self._ids = itertools.count(first_id)

    def column(self, name: str, dtype: DataType) -> Column:
        """A new column with a number that nothing else has."""
        return Column(next(self._ids), name, dtype)


def first_free_id(*plans: LogicalPlan) -> int:
    """A number above those of all columns of the plans, subqueries included."""
    from planner.expressions import SubqueryExpression

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
