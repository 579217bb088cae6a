"""Interval literals, and moments moved by them.

In: months, days and microseconds. Out: expressions of the interval type, or shifted dates.
"""

from __future__ import annotations

from sqlglot import exp

from planner.coercion import (
    as_timestamp_like,
)
from planner.errors import UnsupportedSqlError
from planner.expressions import (
    Expression,
    Literal,
)
from planner.functions import make_call
from planner.scalars.handlers import Names, handles
from planner.types import (
    DATE,
    INTERVAL,
    STRING,
    parse_type,
)

_UNITS = {
    "year": (12, 0, 0),
    "quarter": (3, 0, 0),
    "month": (1, 0, 0),
    "week": (0, 7, 0),
    "day": (0, 1, 0),
}
_MICROS = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}


@handles(exp.Interval)
def _interval(node: exp.Interval, names: Names) -> Expression:
    del names
    unit = str(node.unit).lower().removesuffix("s") if node.unit else ""
    amount = node.this.name if isinstance(node.this, exp.Literal) else ""
    if isinstance(node.this, exp.Neg):
        amount = f"-{node.this.this.name}"
    try:
        count = int(amount)
    except ValueError:
        raise UnsupportedSqlError("an interval that is not a whole number of one unit") from None
    if unit in _UNITS:
        return interval_literal(*(count * n for n in _UNITS[unit]))
    if unit in _MICROS:
        return interval_literal(0, 0, count * _MICROS[unit])
    raise UnsupportedSqlError(f"an interval of '{unit}'")


def interval_literal(months: int, days: int, micros: int) -> Literal:
    """An interval literal."""
    return Literal(INTERVAL, f"{months} {days} {micros}")


def interval_parts(literal: Literal) -> tuple[int, int, int]:
    """Months, days and microseconds of an interval literal."""
    months, days, micros = (int(n) for n in str(literal.value).split())
    return months, days, micros


def shift_time(moment: Expression, interval: Expression, sign: int) -> Expression:
    """`moment` moved by an interval, forwards or (sign -1) backwards."""
    if not isinstance(interval, Literal):
        raise UnsupportedSqlError("arithmetic on computed intervals")
    months, days, micros = (sign * n for n in interval_parts(interval))
    if moment.dtype == STRING:
        raise UnsupportedSqlError("an interval is added to a string")
    if moment.dtype == DATE and not micros:
        if months:
            return make_call("add_months", moment, Literal(parse_type("int"), months))
        return make_call("date_add", moment, Literal(parse_type("int"), days))
    as_timestamp_like(moment)
    raise UnsupportedSqlError("an interval is added to a timestamp")
