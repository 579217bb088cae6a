"""Check arguments that Spark must know before it runs anything ("foldable" ones).

Source: the `checkInputDataTypes` of Spark's expressions.
"""

from __future__ import annotations

from decimal import Decimal

from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Call,
    Expression,
    Literal,
    WindowCall,
    contains,
)
from stagecoach.planner.plan.subqueries import SubqueryExpression

_OF_ROWS = (AggregateCall, SubqueryExpression, WindowCall)


def require_constant(expr: Expression, what: str) -> Expression:
    """An argument that is one value for all rows.

    Args:
        expr: The argument.
        what: What a message calls it.

    Raises:
        AnalysisError: For one that reads rows.
    """
    if expr.column_ids or any(contains(expr, kind) for kind in _OF_ROWS):
        raise AnalysisError(f"{what} must be a constant")
    return expr


def require_shares(expr: Expression, what: str) -> Expression:
    """A percentage, or an array of some: constants from 0 to 1.

    Raises:
        AnalysisError: For others.
    """
    items = expr.args if isinstance(expr, Call) and expr.function == "array" else (expr,)
    require_constant(expr, f"the percentage of {what}")
    for item in items:
        if not (item.dtype.is_numeric or item.dtype.kind in ("array", "string", "void")):
            raise AnalysisError(f"the percentage of {what} must be a number, not {item.dtype}")
        if item.dtype.kind == "string":
            raise UnsupportedSqlError(f"the percentage of {what} is a text")
        if isinstance(item, Literal) and item.value is None:
            raise AnalysisError(f"the percentage of {what} is NULL")
        if isinstance(item, Literal) and item.dtype.is_numeric:
            share = Decimal(str(item.value))
            if not 0 <= share <= 1:
                raise AnalysisError(f"the percentage of {what} is {share}; it must be from 0 to 1")
    return expr


def require_accuracy(expr: Expression, what: str) -> Expression:
    """How exact an approximation is: a constant whole number above 0.

    Raises:
        AnalysisError: For others.
    """
    require_constant(expr, f"the accuracy of {what}")
    if not expr.dtype.is_integral:
        raise AnalysisError(f"the accuracy of {what} must be a whole number, not {expr.dtype}")
    if isinstance(expr, Literal) and not 0 < int(expr.value or 0) < 1 << 31:
        raise AnalysisError(
            f"the accuracy of {what} is {expr.value}; it must be above 0 and below 2^31"
        )
    return expr
