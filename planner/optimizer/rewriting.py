"""Shared by the rules: rewriting all expressions of a plan.

In: a plan and a function over expressions. Out: the plan with its expressions rewritten; the same
object where none changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from planner.expressions import AggregateCall, Expression, SubqueryExpression
from planner.logical import Aggregate, Filter, Join, LogicalPlan, Project, Sort
from planner.tree import transform_up

ExpressionRule = Callable[[Expression], Expression]


def map_expressions(plan: LogicalPlan, fn: ExpressionRule) -> LogicalPlan:
    """One operator with `fn` applied to each of its expressions (not to its inputs)."""
    new = tuple(fn(e) for e in plan.expressions)
    if all(a is b for a, b in zip(new, plan.expressions, strict=True)):
        return plan
    match plan:
        case Filter():
            return replace(plan, predicate=new[0])
        case Join():
            return replace(plan, condition=new[0])
        case Project():
            return replace(
                plan, items=tuple((c, e) for (c, _), e in zip(plan.items, new, strict=True))
            )
        case Sort():
            return replace(
                plan, keys=tuple(replace(k, expr=e) for k, e in zip(plan.keys, new, strict=True))
            )
        case Aggregate():
            count = len(plan.groups)
            groups = tuple((c, e) for (c, _), e in zip(plan.groups, new[:count], strict=True))
            calls = [e for e in new[count:] if isinstance(e, AggregateCall)]
            aggregates = tuple((c, e) for (c, _), e in zip(plan.aggregates, calls, strict=True))
            return replace(plan, groups=groups, aggregates=aggregates)
    raise TypeError(type(plan).__name__)


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
