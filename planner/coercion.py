"""Spark's implicit casts (ANSI mode), made explicit.

In: typed expressions. Out: expressions of the types that an operator needs, with `Cast` nodes.
Source: Spark's `AnsiTypeCoercion` and `DecimalPrecision`.
"""

from __future__ import annotations

import datetime
import re
from decimal import Decimal

from planner.errors import AnalysisError, UnsupportedSqlError
from planner.expressions import Expression, Literal, cast
from planner.types import (
    BIGINT,
    BINARY,
    DATE,
    DOUBLE,
    INT,
    NULL,
    STRING,
    DataType,
    common_type,
    decimal,
    decimal_for,
)

_ISO_DATE = re.compile(r"\s*(\d{4})-(\d{1,2})-(\d{1,2})\s*")


def decimal_literal_type(text: str) -> DataType:
    """The type that Spark gives a decimal literal, such as decimal(2,2) for `0.05`."""
    sign, digits, exponent = Decimal(text).as_tuple()
    del sign
    if not isinstance(exponent, int):
        raise AnalysisError(f"'{text}' is not a decimal")
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale)
    return decimal(precision, scale)


def integer_literal_type(value: int) -> DataType:
    """INT where the value fits, else BIGINT, else a decimal, as Spark reads whole numbers."""
    if -(2**31) <= value < 2**31:
        return INT
    if -(2**63) <= value < 2**63:
        return BIGINT
    return decimal_literal_type(str(value))


def as_decimal_operand(expr: Expression) -> Expression:
    """An operand of decimal arithmetic: integers become decimals, literals the narrowest."""
    if expr.dtype.is_decimal:
        return expr
    if isinstance(expr, Literal) and isinstance(expr.value, int):
        return Literal(decimal_literal_type(str(abs(expr.value))), str(expr.value))
    return cast(expr, decimal_for(expr.dtype))


def date_text(text: str) -> str | None:
    """`YYYY-MM-DD` for a text that Spark casts to that date and is surely one; else None."""
    if match := _ISO_DATE.fullmatch(text):
        try:
            return datetime.date(int(match[1]), int(match[2]), int(match[3])).isoformat()
        except ValueError:
            return None
    return None


def cast_literal(expr: Expression, dtype: DataType) -> Expression:
    """A cast that is carried out now where the operand is a literal and the result is certain."""
    if expr.dtype == dtype or not isinstance(expr, Literal):
        return cast(expr, dtype)
    if expr.value is None:
        return Literal(dtype, None)
    if dtype == DATE and expr.dtype == STRING:
        text = date_text(str(expr.value))
        return Literal(DATE, text) if text else cast(expr, dtype)
    if expr.dtype.is_integral and dtype.kind in ("int", "bigint"):
        return Literal(dtype, expr.value)
    if expr.dtype.is_integral and dtype.is_decimal:
        digits = len(str(abs(int(expr.value or 0))))
        return (
            _rescaled(expr, dtype) if digits <= dtype.precision - dtype.scale else cast(expr, dtype)
        )
    if expr.dtype.is_decimal and dtype.is_decimal:
        holds = (
            dtype.scale >= expr.dtype.scale
            and dtype.precision - dtype.scale >= expr.dtype.precision - expr.dtype.scale
        )
        return _rescaled(expr, dtype) if holds else cast(expr, dtype)
    if dtype == DOUBLE and (expr.dtype.is_integral or expr.dtype.is_decimal):
        return Literal(DOUBLE, float(Decimal(str(expr.value))))
    return cast(expr, dtype)


def _rescaled(literal: Literal, dtype: DataType) -> Literal:
    value = Decimal(str(literal.value)).quantize(Decimal(1).scaleb(-dtype.scale))
    return Literal(dtype, format(value, "f"))


def comparable(left: Expression, right: Expression) -> tuple[Expression, Expression]:
    """Both operands of a comparison in one type.

    Raises:
        AnalysisError: For types that Spark does not compare.
    """
    target = comparison_type(left.dtype, right.dtype)
    return cast_literal(left, target), cast_literal(right, target)


def comparison_type(left: DataType, right: DataType) -> DataType:
    """The type in which Spark compares two values; a string yields to the other side."""
    common = common_type(left, right)
    if common is not None:
        return common
    for text, other in ((left, right), (right, left)):
        if text == STRING:
            if other.is_integral:
                return BIGINT
            if other.is_numeric:
                return DOUBLE
            if other.is_atomic:
                return other
    raise AnalysisError(f"cannot compare {left} with {right}")


def widest(dtypes: tuple[DataType, ...], what: str) -> DataType:
    """The one type of the branches of `what` (CASE, COALESCE, UNION, …).

    Raises:
        AnalysisError: Where there is none.
    """
    result = NULL
    for dtype in dtypes:
        common = common_type(result, dtype)
        if common is None and STRING in (result, dtype):
            raise UnsupportedSqlError(f"{what} mixes {result} and {dtype}")
        if common is None:
            raise AnalysisError(f"{what} mixes {result} and {dtype}")
        result = common
    return result


def unified(args: tuple[Expression, ...], what: str) -> tuple[Expression, ...]:
    """All operands in their widest type."""
    target = widest(tuple(a.dtype for a in args), what)
    return tuple(cast_literal(a, target) for a in args)


def as_date(expr: Expression) -> Expression:
    """The operand of a date function."""
    if expr.dtype.kind in ("date", "timestamp", "timestamp_ntz", "string", "void"):
        return cast_literal(expr, DATE)
    raise AnalysisError(f"expected a date, found {expr.dtype}")


def as_timestamp_like(expr: Expression) -> Expression:
    """The operand of a time function: timestamps stay, dates stay, strings are refused here."""
    if expr.dtype.is_datetime:
        return expr
    if expr.dtype == STRING:
        raise UnsupportedSqlError("a string is implicitly read as a timestamp")
    raise AnalysisError(f"expected a date or timestamp, found {expr.dtype}")


def as_string(expr: Expression) -> Expression:
    """The operand of a string function; atomic values are cast as Spark does."""
    if expr.dtype == BINARY:
        raise UnsupportedSqlError("a string function of binary")
    if expr.dtype.is_atomic:
        return cast_literal(expr, STRING)
    raise AnalysisError(f"expected a string, found {expr.dtype}")


def as_int(expr: Expression) -> Expression:
    """An INT operand, such as a position or a length."""
    if expr.dtype.kind in ("tinyint", "smallint", "int", "void"):
        return cast_literal(expr, INT)
    if expr.dtype.is_numeric:
        return cast_literal(expr, INT)
    raise AnalysisError(f"expected a whole number, found {expr.dtype}")


def as_double(expr: Expression) -> Expression:
    """A DOUBLE operand."""
    if expr.dtype.is_numeric or expr.dtype == NULL:
        return cast_literal(expr, DOUBLE)
    if expr.dtype == STRING:
        raise UnsupportedSqlError("a string is implicitly read as a number")
    raise AnalysisError(f"expected a number, found {expr.dtype}")
