"""Shared by the rules: rewriting all expressions of a plan.

In: a plan and a function over expressions. Out: the plan with its expressions rewritten; the same
object where none changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from planner.expressions import Expression, SubqueryExpression
from planner.logical import LogicalPlan
from planner.tree import transform_up

ExpressionRule = Callable[[Expression], Expression]


def map_expressions(plan: LogicalPlan, fn: ExpressionRule) -> LogicalPlan:
    """One operator with `fn` applied to each of its expressions (not to its inputs)."""
    new = tuple(fn(e) for e in plan.expressions)
    if all(a is b for a, b in zip(new, plan.expressions, strict=True)):
        return plan
    return plan.with_expressions(new)


def map_plans(plan: LogicalPlan, fn: Callable[[LogicalPlan], LogicalPlan]) -> LogicalPlan:
    """Every operator rewritten bottom-up, those inside subquery expressions included."""

    def enter(expr: Expression) -> Expression:
        return transform_up(expr, subplan)

    def subplan(expr: Expression) -> Expression:
        if not isinstance(expr, SubqueryExpression):
            return expr
        new = map_plans(expr.plan, fn)
        return expr if new is expr.plan else replace(expr, plan=new)

    return transform_up(plan, lambda node: fn(map_expressions(node, enter)))
