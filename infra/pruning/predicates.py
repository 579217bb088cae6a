"""Which predicates the bounds of columns rule out.

A predicate becomes a test of the bounds of a file or a row group: whether some row may pass it. The
answer is yes wherever that is not certain.

Source of the trust in footers: Spark skips row groups by the same numbers.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping

from stagecoach.infra.reading.row_bounds import (
    ALWAYS,
    EPOCH,
    INTEGERS,
    NEVER,
    TIMES,
    Bounds,
    BoundsTest,
    Ordered,
    all_of,
    any_of,
    day_text,
    instant_text,
)
from stagecoach.planner.optimizer.constants import is_null, ordered
from stagecoach.planner.optimizer.convert_outer_joins import null_rejected
from stagecoach.planner.optimizer.proofs import is_total
from stagecoach.planner.plan.comparisons import constant_last
from stagecoach.planner.plan.expressions import Call, Cast, ColumnRef, Expression, Literal
from stagecoach.planner.text.time_zones import UTC_NAMES, zone_info

_FIRST_YEAR = 1971  # of time zones whose rules all engines have alike
_PLAIN_TIME = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?)?")
_WILDCARD = re.compile(r"[%_\\]")  # and the character that escapes them


def timed(expr: Expression, time_zone: str) -> Expression:
    """A text or date that is cast to a time, as a constant; all else, and odd forms, as it is.

    Args:
        expr: An expression.
        time_zone: Session time zone, in which text is read.
    """
    if not isinstance(expr, Cast) or not isinstance(expr.arg, Literal):
        return expr
    if expr.dtype.kind not in TIMES or expr.arg.dtype.kind not in ("string", "date"):
        return expr
    moment = _plain_moment(str(expr.arg.value))
    if moment is None:
        return expr
    if expr.dtype.kind == "timestamp" and time_zone not in UTC_NAMES:
        zone = zone_info(time_zone)
        both = {moment.replace(tzinfo=zone, fold=n).astimezone(datetime.UTC) for n in (0, 1)}
        if len(both) > 1 or moment.year < _FIRST_YEAR:  # where clocks change, or none were kept
            return expr
        moment = both.pop().replace(tzinfo=None)
    return Literal(expr.dtype, instant_text(moment))


def whole_range(predicate: Expression) -> tuple[int, float, float] | None:
    """A column that is compared with a constant, and which of its whole numbers or times pass.

    Returns:
        The column, the first value that passes and the last, in the units of `StoredBounds`; None
        for any other predicate, and for columns of other types than whole numbers and times.
    """
    compared = constant_last(predicate)
    if compared is None:
        return None
    function, left, right = compared
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
    if expr.dtype.kind in INTEGERS:
        return expr.value if isinstance(expr.value, int) else None
    moment = _plain_moment(str(expr.value)) if expr.dtype.is_datetime else None
    if moment is None:
        return None
    if expr.dtype.kind == "date":
        return (moment.date() - EPOCH.date()).days
    return (moment - EPOCH) // datetime.timedelta(microseconds=1)


def may_hold(predicate: Expression, known: Mapping[int, Bounds]) -> bool:
    """Whether the predicate may be true for a row whose columns lie within bounds."""
    return bounds_test(predicate).may_hold(known)


def bounds_test(predicate: Expression) -> BoundsTest:
    """What a predicate asks of the bounds of columns, which go by their ids."""
    if isinstance(predicate, Literal):
        return ALWAYS if predicate.value is True else NEVER
    if not isinstance(predicate, Call):
        return ALWAYS
    values = (BoundsTest("value", i) for i in sorted(null_rejected(predicate)))
    return all_of((*values, _call_test(predicate)))


def _call_test(predicate: Call) -> BoundsTest:
    match predicate.function:
        case "and":
            return all_of(map(bounds_test, predicate.args))
        case "or":
            return any_of(map(bounds_test, predicate.args))
        case "is_null" | "is_not_null":
            column = _column_of(predicate.args[0])
            kind = "null" if predicate.function == "is_null" else "value"
            return ALWAYS if column is None else BoundsTest(kind, column)
        case "in":
            return any_of(_equal(predicate.args[0], item) for item in predicate.args[1:])
        case "eq":
            left, right = predicate.args
            return all_of((_equal(left, right), _equal(right, left)))
        case "lt" | "le" | "gt" | "ge":
            compared = constant_last(predicate)
            return ALWAYS if compared is None else _compare(*compared)
        case "startswith":
            return _starts(predicate.args[0], _text(predicate.args[1]))
        case "like" if len(predicate.args) == 2:
            pattern = _text(predicate.args[1])
            prefix = None if pattern is None else _WILDCARD.split(pattern)[0]
            return _starts(predicate.args[0], prefix)
    return ALWAYS


def _column_of(expr: Expression) -> int | None:
    """The column that is meant, or whose value is meant in a wider type of exact numbers."""
    while isinstance(expr, Cast) and not expr.safe:
        exact = expr.dtype.is_integral or expr.dtype.is_decimal
        numeric = expr.arg.dtype.is_integral or expr.arg.dtype.is_decimal
        if not (exact and numeric and is_total(expr)):
            return None
        expr = expr.arg
    return expr.id if isinstance(expr, ColumnRef) else None


def _value(expr: Expression) -> Ordered | None:
    if not isinstance(expr, Literal) or not expr.dtype.is_datetime:
        return ordered(expr)
    moment = _plain_moment(str(expr.value))
    if moment is None:
        return None
    return day_text(moment) if expr.dtype.kind == "date" else instant_text(moment)


def _plain_moment(text: str) -> datetime.datetime | None:
    """A time in the usual form; None for any other text, and where there is no such day."""
    if not _PLAIN_TIME.fullmatch(text):
        return None
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        return None


def _equal(expr: Expression, item: Expression) -> BoundsTest:
    return all_of((_compare("ge", expr, item), _compare("le", expr, item)))


def _compare(function: str, expr: Expression, item: Expression) -> BoundsTest:
    """The test of a comparison with a constant."""
    if is_null(item):
        return NEVER
    column = _column_of(expr)
    if column is None:
        return ALWAYS
    has_value = BoundsTest("value", column)
    value = _value(item) if expr.dtype == item.dtype else None
    return has_value if value is None else all_of((has_value, BoundsTest(function, column, value)))


def _text(expr: Expression) -> str | None:
    if not isinstance(expr, Literal) or expr.dtype.kind != "string" or expr.value is None:
        return None
    return str(expr.value)


def _starts(expr: Expression, prefix: str | None) -> BoundsTest:
    column = _column_of(expr)
    if prefix is None or column is None or expr.dtype.kind != "string":
        return ALWAYS
    return BoundsTest("starts", column, prefix)
