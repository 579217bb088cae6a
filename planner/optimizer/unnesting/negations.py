"""Move NOT directly before the IN that it negates, as Spark's optimiser does.

An IN that is not a conjunct of WHERE has two values in Spark, not three. Spark computes it as
"there is an equal row", and `x NOT IN (q)` as "no row is equal or may be equal": where SQL says
NULL, both are false. So the place of NOT changes the result.
"""

from __future__ import annotations

from stagecoach.planner.functions import make_call
from stagecoach.planner.plan.expressions import FALSE, TRUE, Call, Expression, contains
from stagecoach.planner.plan.subqueries import InSubquery, SubqueryExpression

_DUAL = {"and": "or", "or": "and"}


def push_negations(expr: Expression, *, negated: bool = False) -> Expression:
    """The expression, or its negation, with NOT moved down to its IN subqueries."""
    if not contains(expr, SubqueryExpression):
        return make_call("not", expr) if negated else expr
    if isinstance(expr, Call):
        if expr.function == "not":
            return push_negations(expr.args[0], negated=not negated)
        if expr.function in _DUAL:
            args = [push_negations(a, negated=negated) for a in expr.args]
            return make_call(_DUAL[expr.function] if negated else expr.function, *args)
        compared = _compared_to_truth(expr)
        if compared is not None and contains(compared[0], InSubquery):
            return push_negations(compared[0], negated=negated == compared[1])
    inner = expr.with_children(tuple(push_negations(c) for c in expr.children))
    return make_call("not", inner) if negated else inner


def _compared_to_truth(expr: Call) -> tuple[Expression, bool] | None:
    """For `x = TRUE`, `x <> FALSE` and their like: x, and whether x must be true."""
    if expr.function not in ("eq", "ne"):
        return None
    for value, constant in (expr.args, expr.args[::-1]):
        if constant in (TRUE, FALSE):
            return value, (constant == TRUE) == (expr.function == "eq")
    return None
