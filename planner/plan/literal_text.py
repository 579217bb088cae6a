"""Convert text to typed literals and back.

All parameter values pass through here: from the command line, run tags, front matter and the
defaults of a plan. A text that does not fit its type without loss is rejected.
"""

from __future__ import annotations

import datetime
import math
import re
from decimal import Context, Decimal, Inexact, InvalidOperation

from stagecoach.planner.errors import UnsupportedSqlError
from stagecoach.planner.plan.coercion import date_text, decimal_literal_type, integer_literal_type
from stagecoach.planner.plan.expressions import Literal, LiteralValue
from stagecoach.planner.text.moments import moment_text, wall_clock, wall_clock_text
from stagecoach.planner.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
)

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.[0-9]*|\.[0-9]+)")
_DOUBLE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+")
_TYPED = re.compile(r"(DATE|TIMESTAMP|TIMESTAMP_NTZ)\s*('[^']*'|\"[^\"]*\")", re.IGNORECASE)
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_NOT_FINITE = ("nan", "inf", "infinity")


def parse_literal(text: str, dtype: DataType, time_zone: str = "UTC") -> Literal:
    """The literal of a type that a text spells.

    Args:
        text: The value; around all but strings, spaces do not count.
        dtype: Its type.
        time_zone: Zone of a timestamp that names none; canonical texts are in UTC.

    Raises:
        ValueError: The text is no value of the type, or only one that would be rounded.
    """
    if dtype == STRING:
        return Literal(STRING, text)
    try:
        return Literal(dtype, _value(text.strip(), dtype, time_zone))
    except (ArithmeticError, ValueError) as error:
        raise ValueError(f"'{text}' is not a valid {dtype}") from error


def to_text(literal: Literal) -> str:
    """The canonical text of a literal's value, which `parse_literal` reads; timestamps are UTC."""
    value = literal.value
    return str(value).lower() if isinstance(value, bool) else str(value)


def sql_literal(text: str, time_zone: str = "UTC") -> Literal | None:
    """The value of a text that is a literal of Spark's SQL, such as `DATE '1995-03-15'`, else None.

    Raises:
        ValueError: The text has the form of a literal, but no such value exists.
    """
    if text.upper() == "NULL":
        return Literal(NULL, None)
    if text.lower() in ("true", "false"):
        return Literal(BOOLEAN, text.lower() == "true")
    try:
        if _INTEGER.fullmatch(text):
            return integer(int(text))
        if _DECIMAL.fullmatch(text):
            return fraction(Decimal(text))
    except UnsupportedSqlError as error:
        raise ValueError(f"{text} has more than 38 digits, which no number can hold") from error
    if _DOUBLE.fullmatch(text):
        return Literal(DOUBLE, float(text))
    if match := _TYPED.fullmatch(text):
        dtype = {"DATE": DATE, "TIMESTAMP": TIMESTAMP}.get(match[1].upper(), TIMESTAMP_NTZ)
        try:
            return parse_literal(match[2][1:-1], dtype, time_zone)
        except ValueError as error:
            raise ValueError(f"{text} is not a valid {dtype}") from error
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return Literal(STRING, text[1:-1].replace(text[0] * 2, text[0]))
    return None


def integer(value: int) -> Literal:
    """A whole number in the type that Spark gives it.

    Raises:
        UnsupportedSqlError: It has more than 38 digits.
    """
    dtype = integer_literal_type(value)
    return Literal(dtype, str(value) if dtype.is_decimal else value)


def fraction(value: Decimal) -> Literal:
    """A decimal in the type that Spark gives it.

    Raises:
        UnsupportedSqlError: It has more than 38 digits.
    """
    text = format(value, "f")
    return Literal(decimal_literal_type(text), text)


def _value(text: str, dtype: DataType, time_zone: str) -> LiteralValue:
    match dtype.kind:
        case "boolean" if text.lower() in ("true", "false"):
            return text.lower() == "true"
        case kind if kind in _BITS:
            return _integer(text, _BITS[kind])
        case "float" | "double":
            return _float(text)
        case "decimal":
            return _decimal(text, dtype)
        case "date" if (day := date_text(text)) is not None:
            return day
        case "timestamp" | "timestamp_ntz":
            return _timestamp(text, dtype, time_zone)
    raise ValueError(f"no {dtype}")


def _integer(text: str, bits: int) -> int:
    limit = 1 << (bits - 1)
    if not _INTEGER.fullmatch(text) or not -limit <= int(text) < limit:
        raise ValueError("not a whole number, or out of range")
    return int(text)


def _float(text: str) -> float:
    number = float(text.replace("_", "!"))  # Python reads 1_000, Spark does not
    if not math.isfinite(number) and text.lower().lstrip("+-") not in _NOT_FINITE:
        raise ValueError("out of range")
    return number


def _decimal(text: str, dtype: DataType) -> str:
    context = Context(prec=dtype.precision, traps=[Inexact, InvalidOperation])
    number = Decimal(text.replace("_", "!"))
    if not number.is_finite():
        raise ValueError("not finite")
    return format(number.quantize(Decimal(1).scaleb(-dtype.scale), context=context), "f")


def _timestamp(text: str, dtype: DataType, time_zone: str) -> str:
    if dtype.kind == "timestamp":
        return moment_text(datetime.datetime.fromisoformat(text), time_zone)
    return wall_clock_text(wall_clock(text))
