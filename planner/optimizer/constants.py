"""Compare constants in Python where that gives the engines' result.

Literals whose order is not certain have no comparable value.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from stagecoach.planner.plan.expressions import Expression, Literal
from stagecoach.planner.text.moments import wall_clock, wall_clock_text

Ordered = Decimal | str

COMPARE: dict[str, Callable[[int], bool]] = {
    "eq": lambda sign: sign == 0,
    "ne": lambda sign: sign != 0,
    "lt": lambda sign: sign < 0,
    "le": lambda sign: sign <= 0,
    "gt": lambda sign: sign > 0,
    "ge": lambda sign: sign >= 0,
}
"""What a comparison makes of -1, 0 or 1: the first operand is less, equal or greater."""


def is_null(expr: Expression) -> bool:
    """Whether it is a NULL that is written out."""
    return isinstance(expr, Literal) and expr.value is None


def ordered(expr: Expression) -> Ordered | None:
    """The value of a whole number, decimal, text, date or timestamp.

    Floating point has values of its own order (NaN, -0.0); years beyond four digits do not sort
    as text.
    """
    if not isinstance(expr, Literal) or expr.value is None or isinstance(expr.value, bool):
        return None
    if expr.dtype.is_integral or expr.dtype.is_decimal:
        return Decimal(str(expr.value))
    text = str(expr.value)
    if expr.dtype.kind == "string":
        return text
    if expr.dtype.is_datetime and len(text) >= 10 and text[4] == "-" and text[:4].isdigit():
        return text if expr.dtype.kind == "date" else _canonical(text)
    return None


def _canonical(text: str) -> str | None:
    """A moment with its microseconds, which some literals leave out where they are 0."""
    try:
        return wall_clock_text(wall_clock(text))
    except ValueError:
        return None


def compared(left: Ordered, right: Ordered) -> int:
    """-1, 0 or 1: the first is less, equal or greater; both are of one kind.

    Text is ordered by code points, which is the order of its UTF-8 bytes.
    """
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return (left > right) - (left < right)
    return (str(left) > str(right)) - (str(left) < str(right))
