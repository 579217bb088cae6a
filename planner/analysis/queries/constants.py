"""Evaluate whole numbers that must be known before a query runs, such as the bound of LIMIT."""

from __future__ import annotations

from collections.abc import Callable

from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.plan.expressions import Call, Cast, Expression, Literal

_ARITHMETIC: dict[str, Callable[[int, int], int | None]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "div": lambda a, b: a // b if a >= 0 and b > 0 else None,
    "mod": lambda a, b: a % b if a >= 0 and b > 0 else None,
}
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


def whole_number(expr: Expression, what: str) -> int | None:
    """The value of arithmetic on literals; None where it is not certain.

    Args:
        expr: The expression.
        what: What a message calls it.

    Raises:
        AnalysisError: For NULL, and for what is not a number.
        UnsupportedSqlError: For numbers that Spark would cast.
    """
    if isinstance(expr, Literal):
        if expr.value is None:
            raise AnalysisError(f"{what} is NULL; it must be a whole number")
        if expr.dtype.is_integral:
            return int(expr.value)
        raise UnsupportedSqlError(f"{what} is a {expr.dtype}, not a whole number")
    if isinstance(expr, Cast) and expr.dtype.is_integral and expr.arg.dtype.is_integral:
        return _fitting(whole_number(expr.arg, what), expr)
    if isinstance(expr, Call) and expr.function == "negate" and expr.dtype.is_integral:
        value = whole_number(expr.args[0], what)
        return None if value is None else _fitting(-value, expr)
    if isinstance(expr, Call) and expr.function in _ARITHMETIC and expr.dtype.is_integral:
        left, right = (whole_number(a, what) for a in expr.args)
        if left is None or right is None:
            return None
        return _fitting(_ARITHMETIC[expr.function](left, right), expr)
    return None


def _fitting(value: int | None, expr: Expression) -> int | None:
    top = 1 << (_BITS[expr.dtype.kind] - 1)
    return value if value is not None and -top <= value < top else None
