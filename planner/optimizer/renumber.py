"""A copy of a plan under new column numbers, for a plan that is used twice.

In: a plan without correlation. Out: an equal plan that shares no column number with it.
"""

from __future__ import annotations

from planner.expressions import Column, Expression, substitute
from planner.logical import LogicalPlan
from planner.optimizer.context import RuleContext
from planner.optimizer.rewriting import map_expressions
from planner.tree import transform_up


def renumber(plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
    """The copy; its columns are in the same order."""
    mapping: dict[int, Column] = {}

    def fresh(column: Column) -> Column:
        if column.id not in mapping:
            mapping[column.id] = context.column(column.name, column.dtype)
        return mapping[column.id]

    def rename(expr: Expression) -> Expression:
        return substitute(expr, {old: column.ref for old, column in mapping.items()})

    def visit(node: LogicalPlan) -> LogicalPlan:
        return map_expressions(node, rename).with_produced(fresh)

    return transform_up(plan, visit)
