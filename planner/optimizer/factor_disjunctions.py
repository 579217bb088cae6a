"""Rule: pull out what all branches of an OR share."""

from __future__ import annotations

from stagecoach.planner.functions import make_call
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.plan.expressions import Call, Expression, conjoin, conjuncts
from stagecoach.planner.plan.logical import LogicalPlan
from stagecoach.planner.plan.rewriting import map_expressions
from stagecoach.planner.tree import transform_up


def factor_disjunctions(plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
    """Turn (a AND b) OR (a AND c) into a AND (b OR c), so that joins find their keys.

    Before:  Filter[(p = l AND x > 1) OR (p = l AND y > 2)]
    After:   Filter[p = l AND (x > 1 OR y > 2)]
    Holds under three-valued logic. Fixture: tests/fixtures/optimizer/factor_disjunctions.sql
    """
    del context
    return transform_up(
        plan, lambda node: map_expressions(node, lambda expr: transform_up(expr, _factor))
    )


def _factor(expr: Expression) -> Expression:
    if not isinstance(expr, Call) or expr.function != "or":
        return expr
    branches = [list(dict.fromkeys(conjuncts(arg))) for arg in expr.args]
    shared = [part for part in branches[0] if all(part in branch for branch in branches[1:])]
    if not shared:
        return expr
    rests = [[part for part in branch if part not in shared] for branch in branches]
    if any(not rest for rest in rests):
        return conjoin(shared)
    return conjoin([*shared, make_call("or", *(conjoin(rest) for rest in rests))])
