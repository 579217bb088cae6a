"""Which predicates the bounds of a file's columns rule out.

In: what the snapshot keeps of a footer, and a predicate over the columns. Out: whether some row may
pass; "it may" wherever that is not certain.

Source of the trust in footers: Spark skips row groups by the same numbers.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from zoneinfo import ZoneInfo

from infra.catalog.file_bounds import StoredBounds
from planner.catalog import StatValue
from planner.expressions import Call, Cast, ColumnRef, Expression, Literal
from planner.optimizer.constants import COMPARE, Ordered, compared, ordered
from planner.optimizer.convert_outer_joins import null_rejected
from planner.optimizer.proofs import is_total
from planner.types import DataType

UTC_NAMES = ("UTC", "Etc/UTC", "Z")
"""Time zones in which no clock is ever changed."""

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_EPOCH = datetime.datetime(1970, 1, 1)
_FIRST_YEAR = 1971  # of time zones whose rules all engines have alike
_PLAIN_TIME = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?)?")
_WILDCARD = re.compile(r"[%_\\]")  # and the character that escapes them
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_COMPARISONS = ("lt", "le", "gt", "ge", "eq")
_TIMES = ("timestamp", "timestamp_ntz")


@dataclass(frozen=True)
class Bounds:
    """The values that a column of a file may have.

    Args:
        has_null: Whether there may be a NULL.
        has_value: Whether there may be anything else.
        low: No value is below, None where unknown.
        high: No value is above, None where unknown.
    """

    has_null: bool = True
    has_value: bool = True
    low: Ordered | None = None
    high: Ordered | None = None


def column_bounds(dtype: DataType, num_rows: int, stored: StoredBounds) -> Bounds:
    """The bounds of a column in the terms of the planner's constants.

    Args:
        dtype: Type of the column.
        num_rows: Rows of the file.
        stored: What the snapshot has.
    """
    nulls, low, high = stored
    return Bounds(
        has_null=nulls != 0,
        has_value=nulls is None or nulls < num_rows,
        low=_ordered_bound(dtype, low, -math.inf),
        high=_ordered_bound(dtype, high, math.inf),
    )


def _ordered_bound(dtype: DataType, value: StatValue | None, towards: float) -> Ordered | None:
    if isinstance(value, str):
        return value if dtype.kind == "string" else None
    if value is None or not math.isfinite(value):
        return None
    if dtype.is_decimal:  # kept as the nearest double: the next one is surely a bound
        return Decimal(math.nextafter(value, towards))
    if not isinstance(value, int):
        return None
    if dtype.kind in _INTEGERS:
        return Decimal(value)
    try:
        if dtype.kind == "date":
            return _day(_EPOCH + datetime.timedelta(days=value))
        if dtype.kind in _TIMES:
            return _instant(_EPOCH + datetime.timedelta(microseconds=value))
    except OverflowError:  # a year that does not sort as text
        return None
    return None


def timed(expr: Expression, time_zone: str) -> Expression:
    """A text that is cast to a time, as a constant; anything else, and odd forms, as it is.

    Args:
        expr: An expression.
        time_zone: Session time zone, in which text is read.
    """
    if not isinstance(expr, Cast) or not isinstance(expr.arg, Literal):
        return expr
    if expr.dtype.kind not in _TIMES or expr.arg.dtype.kind != "string":
        return expr
    moment = _plain_moment(str(expr.arg.value))
    if moment is None:
        return expr
    if expr.dtype.kind == "timestamp" and time_zone not in UTC_NAMES:
        zone = ZoneInfo(time_zone)
        both = {moment.replace(tzinfo=zone, fold=n).astimezone(datetime.UTC) for n in (0, 1)}
        if len(both) > 1 or moment.year < _FIRST_YEAR:  # where clocks change, or none were kept
            return expr
        moment = both.pop().replace(tzinfo=None)
    return Literal(expr.dtype, _instant(moment))


def whole_range(predicate: Expression) -> tuple[int, float, float] | None:
    """A column that is compared with a constant, and which of its whole numbers or times pass.

    Returns:
        The column, the first value that passes and the last, in the units of `StoredBounds`; None
        for any other predicate, and for columns of other types than whole numbers and times.
    """
    if not isinstance(predicate, Call) or predicate.function not in _COMPARISONS:
        return None
    left, right = predicate.args
    function = predicate.function
    if isinstance(left, Literal):
        left, right, function = right, left, _MIRRORED.get(function, function)
    if not isinstance(left, ColumnRef) or left.dtype != right.dtype:
        return None
    value = _whole_number(right)
    if value is None:
        return None
    match function:
        case "lt":
            return left.id, -math.inf, value - 1
        case "le":
            return left.id, -math.inf, value
        case "gt":
            return left.id, value + 1, math.inf
        case "ge":
            return left.id, value, math.inf
    return left.id, value, value


def _whole_number(expr: Expression) -> int | None:
    """A constant in the units of `StoredBounds`: days of a date, microseconds of a time."""
    if not isinstance(expr, Literal) or expr.value is None:
        return None
    if expr.dtype.kind in _INTEGERS:
        return expr.value if isinstance(expr.value, int) else None
    moment = _plain_moment(str(expr.value)) if expr.dtype.is_datetime else None
    if moment is None:
        return None
    if expr.dtype.kind == "date":
        return (moment.date() - _EPOCH.date()).days
    return (moment - _EPOCH) // datetime.timedelta(microseconds=1)


def may_hold(predicate: Expression, known: Mapping[int, Bounds]) -> bool:
    """Whether the predicate may be true for a row whose columns lie within bounds."""
    if isinstance(predicate, Literal):
        return predicate.value is True
    if not isinstance(predicate, Call):
        return True
    if any(i in known and not known[i].has_value for i in null_rejected(predicate)):
        return False
    match predicate.function:
        case "and":
            return all(may_hold(arg, known) for arg in predicate.args)
        case "or":
            return any(may_hold(arg, known) for arg in predicate.args)
        case "is_null" | "is_not_null":
            bounds = _bounds_of(predicate.args[0], known)
            return bounds.has_null if predicate.function == "is_null" else bounds.has_value
        case "in":
            return any(_may_equal(predicate.args[0], item, known) for item in predicate.args[1:])
        case "eq":
            left, right = predicate.args
            return _may_equal(left, right, known) and _may_equal(right, left, known)
        case "lt" | "le" | "gt" | "ge":
            left, right = predicate.args
            if isinstance(left, Literal):
                return _may_compare(_MIRRORED[predicate.function], right, left, known)
            return _may_compare(predicate.function, left, right, known)
        case "startswith":
            return _may_start(predicate.args[0], _text(predicate.args[1]), known)
        case "like" if len(predicate.args) == 2:
            pattern = _text(predicate.args[1])
            prefix = None if pattern is None else _WILDCARD.split(pattern)[0]
            return _may_start(predicate.args[0], prefix, known)
    return True


def _bounds_of(expr: Expression, known: Mapping[int, Bounds]) -> Bounds:
    """The bounds of a column, or of its values in a wider type of whole or decimal numbers."""
    while isinstance(expr, Cast) and not expr.safe:
        exact = expr.dtype.is_integral or expr.dtype.is_decimal
        numeric = expr.arg.dtype.is_integral or expr.arg.dtype.is_decimal
        if not (exact and numeric and is_total(expr)):
            return Bounds()
        expr = expr.arg
    return known.get(expr.id, Bounds()) if isinstance(expr, ColumnRef) else Bounds()


def _value(expr: Expression) -> Ordered | None:
    if not isinstance(expr, Literal) or not expr.dtype.is_datetime:
        return ordered(expr)
    moment = _plain_moment(str(expr.value))
    if moment is None:
        return None
    return _day(moment) if expr.dtype.kind == "date" else _instant(moment)


def _plain_moment(text: str) -> datetime.datetime | None:
    """A time in the usual form; None for any other text, and where there is no such day."""
    if not _PLAIN_TIME.fullmatch(text):
        return None
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        return None


def _day(moment: datetime.datetime) -> str:
    return moment.date().isoformat()


def _instant(moment: datetime.datetime) -> str:
    return moment.isoformat(" ", "microseconds")


def _is_null(expr: Expression) -> bool:
    return isinstance(expr, Literal) and expr.value is None


def _may_equal(expr: Expression, item: Expression, known: Mapping[int, Bounds]) -> bool:
    return _may_compare("ge", expr, item, known) and _may_compare("le", expr, item, known)


def _may_compare(
    function: str, expr: Expression, item: Expression, known: Mapping[int, Bounds]
) -> bool:
    """Whether a comparison with a constant may be true."""
    bounds = _bounds_of(expr, known)
    if _is_null(item) or not bounds.has_value:
        return False
    value = _value(item) if expr.dtype == item.dtype else None
    bound = bounds.low if function in ("lt", "le") else bounds.high
    if value is None or bound is None or isinstance(value, str) != isinstance(bound, str):
        return True
    return COMPARE[function](compared(bound, value))


def _text(expr: Expression) -> str | None:
    if not isinstance(expr, Literal) or expr.dtype.kind != "string" or expr.value is None:
        return None
    return str(expr.value)


def _may_start(expr: Expression, prefix: str | None, known: Mapping[int, Bounds]) -> bool:
    bounds = _bounds_of(expr, known)
    if prefix is None or expr.dtype.kind != "string":
        return True
    below = isinstance(bounds.high, str) and bounds.high < prefix
    above = isinstance(bounds.low, str) and bounds.low[: len(prefix)] > prefix
    return not below and not above
