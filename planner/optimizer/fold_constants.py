"""Rule: compute what is constant."""

from __future__ import annotations

import calendar
import datetime
from decimal import Decimal

from planner.coercion import cast_literal
from planner.expressions import FALSE, TRUE, Call, Cast, Expression, Literal
from planner.logical import LogicalPlan
from planner.optimizer.context import RuleContext
from planner.optimizer.rewriting import map_expressions, map_plans
from planner.tree import transform_up
from planner.types import DATE


def fold_constants(plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
    """Replace constant date and decimal arithmetic, and boolean terms that are known.

    Before:  Filter[d < add_months(DATE '1994-01-01', 12) AND true]
    After:   Filter[d < DATE '1995-01-01']
    Never:   where the value is not certain (overflow, a date out of range): the engine then says.
    """
    del context

    def rewrite(node: LogicalPlan) -> LogicalPlan:
        return map_expressions(node, lambda expr: transform_up(expr, fold))

    return map_plans(plan, rewrite)


def fold(expr: Expression) -> Expression:
    """One expression whose operands are folded already."""
    if isinstance(expr, Cast) and isinstance(expr.arg, Literal) and not expr.safe:
        return cast_literal(expr.arg, expr.dtype)
    if not isinstance(expr, Call):
        return expr
    if expr.function in ("and", "or"):
        return _connector(expr)
    if not all(isinstance(a, Literal) and a.value is not None for a in expr.args):
        return expr
    values = [a.value for a in expr.args if isinstance(a, Literal)]
    match expr.function:
        case "date_add" | "date_sub":
            days = int(values[1] or 0) * (1 if expr.function == "date_add" else -1)
            return _date(expr, str(values[0]), days=days)
        case "add_months":
            return _date(expr, str(values[0]), months=int(values[1] or 0))
        case "add" | "subtract" | "multiply" if expr.dtype.is_decimal:
            return _decimal(expr, Decimal(str(values[0])), Decimal(str(values[1])))
    return expr


def _connector(expr: Call) -> Expression:
    absorbing, neutral = (FALSE, TRUE) if expr.function == "and" else (TRUE, FALSE)
    if absorbing in expr.args:
        return absorbing
    left = tuple(a for a in expr.args if a != neutral)
    if len(left) == len(expr.args):
        return expr
    if not left:
        return neutral
    return left[0] if len(left) == 1 else Call(expr.dtype, expr.function, left)


def _date(expr: Call, text: str, *, days: int = 0, months: int = 0) -> Expression:
    date = datetime.date.fromisoformat(text)
    try:
        if months:
            index = date.year * 12 + date.month - 1 + months
            year, month = divmod(index, 12)
            last = calendar.monthrange(year, month + 1)[1]
            date = datetime.date(year, month + 1, min(date.day, last))
        date += datetime.timedelta(days=days)
    except (ValueError, OverflowError):
        return expr
    return Literal(DATE, date.isoformat())


def _decimal(expr: Call, left: Decimal, right: Decimal) -> Expression:
    exact = {"add": left + right, "subtract": left - right, "multiply": left * right}[expr.function]
    shown = exact.quantize(Decimal(1).scaleb(-expr.dtype.scale))
    digits = len(shown.as_tuple().digits)
    if shown != exact or digits > expr.dtype.precision or digits > 28:
        return expr
    return Literal(expr.dtype, format(shown, "f"))
