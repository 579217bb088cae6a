"""Copy a plan under new column numbers, so that it can be used twice."""

from __future__ import annotations

from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.plan.expressions import Column, Expression, substitute
from stagecoach.planner.plan.logical import LogicalPlan
from stagecoach.planner.plan.rewriting import map_expressions
from stagecoach.planner.tree import transform_up


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
