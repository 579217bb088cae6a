"""Comparisons of a column with a constant, whichever way round they are written.

Estimates, rules, pruning and the distribution of windows all look for `column < constant`. SQL may
say `constant > column`; this is the one place that knows the two are the same.
"""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

from stagecoach.planner.plan.expressions import Call, Cast, ColumnRef, Expression, Literal
from stagecoach.planner.text.moments import wall_clock
from stagecoach.planner.types import STRING, DataType

MIRRORED = {"eq": "eq", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
"""For each comparison the one with its operands exchanged."""


def constant_last(part: Expression) -> tuple[str, Expression, Expression] | None:
    """A comparison as function, left and right operand, a literal on the right if there is one.

    None for any other expression.
    """
    if not isinstance(part, Call) or part.function not in MIRRORED or len(part.args) != 2:
        return None
    left, right = part.args
    if isinstance(left, Literal):
        return MIRRORED[part.function], right, left
    return part.function, left, right


def column_range(part: Expression) -> tuple[int, float, float] | None:
    """A column, and the values from which and up to which a comparison lets it through.

    Days for dates, microseconds for timestamps; None where it compares no column with a constant.
    """
    compared = constant_last(part)
    if compared is None or compared[0] == "eq":
        return None
    function, left, right = compared
    value = _literal_number(right)
    if value is None or not isinstance(left, ColumnRef):
        return None
    if function in ("lt", "le"):
        return left.id, -math.inf, value
    return left.id, value, math.inf


def _literal_number(expr: Expression) -> float | None:
    if isinstance(expr, Cast) and isinstance(expr.arg, Literal) and expr.arg.dtype == STRING:
        # TIMESTAMP '...' is a text until the run, for its zone; hours do not matter here.
        return _moment_number(str(expr.arg.value), expr.dtype)
    if not isinstance(expr, Literal) or expr.value is None or isinstance(expr.value, bool):
        return None
    if expr.dtype.is_decimal:
        return float(Decimal(str(expr.value)))
    if isinstance(expr.value, str):
        return _moment_number(expr.value, expr.dtype)
    return float(expr.value)


def _moment_number(text: str, dtype: DataType) -> float | None:
    """Days of a date, microseconds of a timestamp; None for other types and invalid texts."""
    if dtype.kind not in ("date", "timestamp", "timestamp_ntz"):
        return None
    try:
        since = wall_clock(text) - datetime.datetime(1970, 1, 1)
    except ValueError:
        return None
    return float(since.days) if dtype.kind == "date" else since.total_seconds() * 1e6
