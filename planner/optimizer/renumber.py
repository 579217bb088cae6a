"""A copy of a plan under new column numbers, for a plan that is used twice.

In: a plan without correlation. Out: an equal plan that shares no column number with it.
"""

from __future__ import annotations

from dataclasses import replace

from planner.expressions import Column, Expression, substitute
from planner.logical import Aggregate, LogicalPlan, Project, Scan, Union
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
        node = map_expressions(node, rename)
        match node:
            case Scan() | Union():
                return replace(node, outputs=tuple(fresh(c) for c in node.outputs))
            case Project():
                return replace(node, items=tuple((fresh(c), e) for c, e in node.items))
            case Aggregate():
                return replace(
                    node,
                    groups=tuple((fresh(c), e) for c, e in node.groups),
                    aggregates=tuple((fresh(c), e) for c, e in node.aggregates),
                )
        return node

    return transform_up(plan, visit)
