"""Rewrite the expressions or operators of a plan; helpers that analysis and rules share.

A function returns the same object where nothing changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stagecoach.planner.plan.expressions import Column, Expression, conjoin
from stagecoach.planner.plan.logical import Filter, LogicalPlan, Project
from stagecoach.planner.plan.subqueries import SubqueryExpression
from stagecoach.planner.tree import transform_up

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


def filtered(plan: LogicalPlan, parts: list[Expression]) -> LogicalPlan:
    """The rows for which all parts are true."""
    return Filter(plan, conjoin(parts)) if parts else plan


def with_columns(plan: LogicalPlan, columns: tuple[Column, ...]) -> LogicalPlan:
    """The plan with just these columns, which are among its own, in this order."""
    if plan.columns == columns:
        return plan
    return Project(plan, tuple((c, c.ref) for c in columns))
