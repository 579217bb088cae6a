"""Build interval literals, and arithmetic on timestamps and intervals.

As in Spark, a day-time interval holds microseconds and a year-month interval months.
"""

from __future__ import annotations

import re
from decimal import Decimal

from sqlglot import exp

from stagecoach.planner.analysis.scalars.handlers import Names, handles
from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.functions import make_call
from stagecoach.planner.plan.expressions import Expression, Literal, cast
from stagecoach.planner.syntax.spark_syntax import UnaryPlus
from stagecoach.planner.types import (
    DATE,
    INT,
    INTERVAL,
    NULL,
    STRING,
    TIMESTAMP,
    DataType,
    common_type,
    interval_of,
)

DAY_MICROS = 86_400_000_000
_MONTHS = {"year": 12, "month": 1}
_MICROS = {
    "week": 7 * DAY_MICROS,
    "day": DAY_MICROS,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
# The field of the type that a unit falls in.
_FIELDS = {"week": "day", "millisecond": "second", "microsecond": "second"}
_ORDER = ("year", "month", "day", "hour", "minute", "second")
_NUMBER = re.compile(r"\s*([+-]?)\s*(\d+)(?:\.(\d{1,9}))?\s*")
_PAIR = re.compile(r"\s*([+-]?\d*(?:\.\d+)?)\s*([a-z]+)", re.I)
_YEAR_MONTH = re.compile(r"\s*([+-]?)(\d{1,9})-(\d{1,2})\s*")
_DAY_TIME = {
    ("day", "hour"): r"(?P<day>\d{1,9}) (?P<hour>\d{1,2})",
    ("day", "minute"): r"(?P<day>\d{1,9}) (?P<hour>\d{1,2}):(?P<minute>\d{1,2})",
    (
        "day",
        "second",
    ): r"(?P<day>\d{1,9}) (?P<hour>\d{1,2}):(?P<minute>\d{1,2}):(?P<second>\d{1,2}(?:\.\d{1,9})?)",
    ("hour", "minute"): r"(?P<hour>\d{1,10}):(?P<minute>\d{1,2})",
    ("hour", "second"): r"(?P<hour>\d{1,10}):(?P<minute>\d{1,2}):(?P<second>\d{1,2}(?:\.\d{1,9})?)",
    ("minute", "second"): r"(?P<minute>\d{1,12}):(?P<second>\d{1,2}(?:\.\d{1,9})?)",
}
_LIMITS = {"hour": 24, "minute": 60, "second": 60}


@handles(exp.Interval)
def _interval(node: exp.Interval, names: Names) -> Expression:
    del names
    value = node.this
    sign = 1
    if isinstance(value, UnaryPlus):
        value = value.this
    if isinstance(value, exp.Neg):
        sign, value = -1, value.this
    if not isinstance(value, exp.Literal):
        raise UnsupportedSqlError("an interval that is not a literal")
    text = str(value.this)
    unit = node.args.get("unit")
    if unit is None:
        return _scaled(words_as_interval(text), sign)
    if isinstance(unit, exp.IntervalSpan):
        first, last = unit.this.name.lower(), unit.expression.name.lower()
        return _scaled(_from_span(text, first, last), sign)
    return _scaled(_of_unit(text, unit.name.lower().removesuffix("s")), sign)


def _of_unit(text: str, unit: str) -> Literal:
    match = _NUMBER.fullmatch(text)
    if match is None or (unit not in _MONTHS and unit not in _MICROS):
        raise UnsupportedSqlError(f"an interval of '{text}' {unit}")
    if match[3] and unit != "second":
        raise UnsupportedSqlError(f"an interval of a part of a {unit}")
    sign = -1 if match[1] == "-" else 1
    field = _FIELDS.get(unit, unit)
    # Spark cuts digits after the microsecond off.
    amount = int(match[2]) * (_MONTHS.get(unit) or _MICROS[unit])
    fraction = int((match[3] or "").ljust(6, "0")[:6])
    return duration_literal(interval_of(field, field), sign * (amount + fraction))


def words_as_interval(text: str) -> Literal:
    """The interval of a text such as `1 day 2 hours`, which may start with `interval`.

    Raises:
        UnsupportedSqlError: For another text, and for months and days side by side.
    """
    rest = re.sub(r"^\s*interval\s+", "", text, flags=re.I)
    result: Literal | None = None
    position = 0
    while position < len(rest.rstrip()):
        match = _PAIR.match(rest, position)
        if match is None:
            raise UnsupportedSqlError(f"the interval '{text}'")
        position = match.end()
        part = _of_unit(match[1], match[2].lower().removesuffix("s"))
        result = part if result is None else add_literals(result, part)
    if result is None:
        raise UnsupportedSqlError(f"the interval '{text}'")
    return result


def _from_span(text: str, first: str, last: str) -> Literal:
    dtype = interval_of(first, last)
    if dtype.is_year_month:
        match = _YEAR_MONTH.fullmatch(text)
        if match is None or int(match[3]) > 11:
            raise UnsupportedSqlError(f"the interval '{text}' {first} to {last}")
        months = int(match[2]) * 12 + int(match[3])
        return duration_literal(dtype, -months if match[1] == "-" else months)
    pattern = rf"\s*(?P<sign>[+-]?)\s*{_DAY_TIME[first, last]}\s*"
    match = re.fullmatch(pattern, text)
    if match is None:
        raise UnsupportedSqlError(f"the interval '{text}' {first} to {last}")
    micros = 0
    for field, amount in match.groupdict().items():
        if field == "sign":
            continue
        if field != first and Decimal(amount) >= _LIMITS.get(field, 1 << 40):
            raise UnsupportedSqlError(f"the interval '{text}' has too many {field}s")
        whole, _, fraction = amount.partition(".")
        micros += int(whole) * _MICROS[field] + int(fraction.ljust(6, "0")[:6])
    return duration_literal(dtype, -micros if match["sign"] == "-" else micros)


def _scaled(literal: Literal, sign: int) -> Literal:
    assert isinstance(literal.value, int)
    return duration_literal(literal.dtype, sign * literal.value)


def duration_literal(dtype: DataType, amount: int) -> Literal:
    """An interval literal.

    Args:
        dtype: A day-time or year-month interval type.
        amount: Microseconds or months.

    Raises:
        AnalysisError: If Spark cannot hold it.
    """
    bits = 63 if dtype.is_day_time else 31
    if not -(1 << bits) <= amount < 1 << bits:
        raise AnalysisError(f"an {dtype} of {amount} is out of range")
    return Literal(dtype, amount)


def add_literals(left: Literal, right: Literal) -> Literal:
    """The sum of two interval literals of one kind.

    Raises:
        UnsupportedSqlError: For months and days side by side.
    """
    dtype = common_type(left.dtype, right.dtype)
    if dtype is None or not isinstance(left.value, int) or not isinstance(right.value, int):
        raise UnsupportedSqlError("an interval of months and of days")
    return duration_literal(dtype, left.value + right.value)


def interval_parts(literal: Literal) -> tuple[int, int, int]:
    """Months, days and microseconds of an interval literal; whole days count as days."""
    amount = int(literal.value or 0)
    if literal.dtype.is_year_month:
        return amount, 0, 0
    days = abs(amount) // DAY_MICROS * (1 if amount >= 0 else -1)
    return 0, days, amount - days * DAY_MICROS


def negated(interval: Expression) -> Expression:
    """The interval backwards."""
    if isinstance(interval, Literal) and isinstance(interval.value, int):
        return duration_literal(interval.dtype, -interval.value)
    return make_call("negate", interval)


def is_interval(dtype: DataType) -> bool:
    """Whether values of the type move a moment; the calendar interval included."""
    return dtype.is_interval or dtype == INTERVAL


def shift_time(moment: Expression, interval: Expression, sign: int) -> Expression:
    """`moment` moved by an interval, forwards or (sign -1) backwards.

    Raises:
        UnsupportedSqlError: For what Spark itself must decide.
        AnalysisError: For a moment that is none.
    """
    if moment.dtype in (STRING, NULL):
        # To Spark the sum of a text and an interval is a text.
        raise UnsupportedSqlError(f"cannot add an interval to a {moment.dtype}")
    if not moment.dtype.is_datetime:
        raise AnalysisError(f"cannot add an interval to {moment.dtype}")
    if interval.dtype == INTERVAL:
        return make_call("plus_interval" if sign > 0 else "minus_interval", moment, interval)
    if moment.dtype == DATE and isinstance(interval, Literal) and interval.value is not None:
        months, days, micros = (sign * n for n in interval_parts(interval))
        if interval.dtype.is_year_month:
            return make_call("add_months", moment, Literal(INT, months))
        if interval.dtype == interval_of("day", "day") and not micros and abs(days) < 1 << 31:
            return make_call("date_add", moment, Literal(INT, days))
    amount = interval if sign > 0 else negated(interval)
    if moment.dtype == DATE:
        if interval.dtype.is_year_month:
            return make_call("date_plus_months", moment, amount)
        if interval.dtype == interval_of("day", "day"):
            return make_call("date_plus_days", moment, amount)
        moment = cast(moment, TIMESTAMP)
    name = "time_plus_months" if interval.dtype.is_year_month else "time_plus_duration"
    return make_call(name, moment, amount)


def add_or_subtract(left: Expression, right: Expression, minus: bool) -> Expression | None:
    """`left + right` or `left - right` where one of them is a moment or an interval, else None.

    Raises:
        UnsupportedSqlError: For a combination that only Spark knows.
    """
    if is_interval(left.dtype) and is_interval(right.dtype):
        if (
            isinstance(left, Literal)
            and isinstance(right, Literal)
            and INTERVAL not in (left.dtype, right.dtype)
        ):
            return add_literals(left, _scaled(right, -1) if minus else right)
        if common_type(left.dtype, right.dtype) is None or left.dtype == INTERVAL:
            raise UnsupportedSqlError(f"arithmetic on {left.dtype} and {right.dtype}")
        return None
    if is_interval(right.dtype):
        return shift_time(left, right, -1 if minus else 1)
    if is_interval(left.dtype):
        if minus:
            raise AnalysisError(f"cannot subtract {right.dtype} from {left.dtype}")
        return shift_time(right, left, 1)
    if left.dtype == DATE and right.dtype.is_integral:
        return make_call("date_sub" if minus else "date_add", left, right)
    if right.dtype == DATE and left.dtype.is_integral and not minus:
        return make_call("date_add", right, left)
    if minus and left.dtype.is_datetime and right.dtype.is_datetime:
        if left.dtype == right.dtype == DATE:
            return make_call("date_difference", left, right)
        return make_call("time_difference", left, right)
    return None


def times_or_divided(left: Expression, right: Expression, name: str) -> Expression | None:
    """`left * right` or `left / right` where an interval takes part, else None."""
    if name == "multiply" and right.dtype.is_interval and not left.dtype.is_interval:
        left, right = right, left
    if not left.dtype.is_interval:
        return None
    if right.dtype.is_interval:
        raise AnalysisError(f"{name} of {left.dtype} and {right.dtype}")
    if not right.dtype.is_numeric:
        raise UnsupportedSqlError(f"an interval times {right.dtype}")
    return make_call(f"interval_{name}", left, right)
