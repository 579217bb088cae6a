"""Rule: compute what is constant."""

from __future__ import annotations

import datetime
from decimal import Decimal, localcontext

from stagecoach.planner.optimizer.constants import COMPARE, compared, is_null, ordered
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.plan.coercion import cast_literal
from stagecoach.planner.plan.expressions import FALSE, TRUE, Call, Cast, Expression, Literal
from stagecoach.planner.plan.logical import LogicalPlan
from stagecoach.planner.plan.rewriting import map_expressions, map_plans
from stagecoach.planner.text.moments import plus_months
from stagecoach.planner.tree import transform_up
from stagecoach.planner.types import DATE, MAX_PRECISION

_STRICT = (*COMPARE, "not", "add", "subtract", "multiply")
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


def fold_constants(plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
    """Replace constant casts, arithmetic and comparisons, and boolean terms that are known.

    Before:  Filter[d < add_months(DATE '1994-01-01', 12) AND 1 + 1 = 2]
    After:   Filter[d < DATE '1995-01-01']
    A strict operator over a NULL constant is NULL, as in Spark's NullPropagation.
    Never:   where the value is not certain (overflow, rounding, a date out of range): the engine
             then says.
    """
    del context

    def rewrite(node: LogicalPlan) -> LogicalPlan:
        return map_expressions(node, lambda expr: transform_up(expr, fold))

    return map_plans(plan, rewrite)


def fold(expr: Expression) -> Expression:
    """One expression whose operands are folded already."""
    if isinstance(expr, Cast) and isinstance(expr.arg, Literal):
        found = cast_literal(expr.arg, expr.dtype)
        return found if isinstance(found, Literal) else expr
    if not isinstance(expr, Call):
        return expr
    if expr.function in ("and", "or"):
        return _connector(expr)
    if expr.function in ("is_null", "is_not_null") and isinstance(expr.args[0], Literal):
        return TRUE if (expr.args[0].value is None) == (expr.function == "is_null") else FALSE
    if expr.function == "in":
        return _membership(expr)
    if expr.function == "coalesce":
        return _coalesce(expr)
    if not all(isinstance(a, Literal) and a.value is not None for a in expr.args):
        null = any(isinstance(a, Literal) and a.value is None for a in expr.args)
        return Literal(expr.dtype, None) if null and expr.function in _STRICT else expr
    if expr.function in COMPARE:
        return _comparison(expr)
    values = [a.value for a in expr.args if isinstance(a, Literal)]
    match expr.function:
        case "date_add" | "date_sub":
            days = int(values[1] or 0) * (1 if expr.function == "date_add" else -1)
            return _date(expr, str(values[0]), days=days)
        case "add_months":
            return _date(expr, str(values[0]), months=int(values[1] or 0))
        case "not":
            return FALSE if values[0] is True else TRUE
        case "add" | "subtract" | "multiply" if expr.dtype.is_integral:
            return _integer(expr, int(values[0] or 0), int(values[1] or 0))
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


def _comparison(expr: Call) -> Expression:
    left, right = (ordered(arg) for arg in expr.args)
    if left is None or right is None:
        return expr
    return TRUE if COMPARE[expr.function](compared(left, right)) else FALSE


def _membership(expr: Call) -> Expression:
    """`x IN (…)` of constants: NULL where x is NULL, or where it equals none and one is NULL."""
    if not all(isinstance(a, Literal) for a in expr.args):
        return expr
    if is_null(expr.args[0]):
        return Literal(expr.dtype, None)
    written = [a for a in expr.args if not is_null(a)]
    first, *members = [value for a in written if (value := ordered(a)) is not None] or [""]
    if len(members) + 1 < len(written) or not members:
        return expr
    if any(compared(first, member) == 0 for member in members):
        return TRUE
    return FALSE if len(written) == len(expr.args) else Literal(expr.dtype, None)


def _coalesce(expr: Call) -> Expression:
    """COALESCE without leading NULLs; a constant that is not NULL ends it."""
    args = [a for a in expr.args if not is_null(a)]
    if not args:
        return Literal(expr.dtype, None)
    if args[0].dtype == expr.dtype and (len(args) == 1 or isinstance(args[0], Literal)):
        return args[0]
    return expr if len(args) == len(expr.args) else expr.with_children(tuple(args))


def _integer(expr: Call, left: int, right: int) -> Expression:
    exact = {"add": left + right, "subtract": left - right, "multiply": left * right}[expr.function]
    limit = 1 << (_BITS[expr.dtype.kind] - 1)
    return Literal(expr.dtype, exact) if -limit <= exact < limit else expr


def _date(expr: Call, text: str, *, days: int = 0, months: int = 0) -> Expression:
    date = datetime.date.fromisoformat(text)
    try:
        date = plus_months(date, months) + datetime.timedelta(days=days)
    except (ValueError, OverflowError):
        return expr
    return Literal(DATE, date.isoformat())


def _decimal(expr: Call, left: Decimal, right: Decimal) -> Expression:
    # Wide enough for the product of two decimals of 38 digits, so nothing is rounded.
    with localcontext(prec=2 * MAX_PRECISION + 1):
        exact = {
            "add": left + right,
            "subtract": left - right,
            "multiply": left * right,
        }[expr.function]
        shown = exact.quantize(Decimal(1).scaleb(-expr.dtype.scale))
    if shown != exact or len(shown.as_tuple().digits) > expr.dtype.precision:
        return expr
    return Literal(expr.dtype, format(shown, "f"))
