"""Spell decimal operations as the exact functions of the worker, such as `decimal_multiply_…`.

DuckDB's own operators raise where Spark cuts the scale of a result, and divide decimals as doubles.
The functions compute with up to 76 digits and round as Spark does (`decimal_calls`).
"""

from __future__ import annotations

from collections.abc import Callable

from stagecoach.planner.plan.expressions import Call
from stagecoach.planner.text.decimal_calls import DecimalFunction
from stagecoach.planner.types import DataType, decimal

_SUM_DIGITS = 75
_DIVISION_DIGITS = 73
"""Digits for which the 256-bit numbers of the functions have room."""

COUNT = decimal(20, 0)
"""A BIGINT as a decimal."""
BIGINT_DIGITS = decimal(19, 0)
"""What a quotient of DIV is before it becomes a BIGINT."""


def decimal_call(operation: str, arguments: tuple[DataType, ...], result: DataType) -> str:
    """The template of a call; `{0}` and `{1}` are the arguments, of exactly these types."""
    name = DecimalFunction(operation, arguments, result).name
    return f"{name}({', '.join(f'{{{i}}}' for i in range(len(arguments)))})"


def exact(operation: str) -> Callable[[Call], str]:
    """A rule that spells an operation on decimals."""
    return lambda node: decimal_call(operation, tuple(a.dtype for a in node.args), node.dtype)


def refuse_exact(operation: str, arguments: tuple[DataType, ...], result: DataType) -> str | None:
    """Why the functions cannot compute the operation: it needs more than 76 digits on the way."""
    left, right = arguments
    scale = max(left.scale, right.scale)
    aligned = max(t.precision - t.scale + scale for t in arguments)
    match operation:
        case "add" | "subtract":
            wide = aligned > _SUM_DIGITS
        case "divide":
            shift = result.scale - left.scale + right.scale
            digits = max(left.precision + max(shift, 0), right.precision + max(-shift, 0))
            wide = digits > _DIVISION_DIGITS
        case "div" | "mod" | "pmod":
            wide = aligned > _DIVISION_DIGITS
        case _:
            wide = False
    return f"{operation} of {left} and {right} needs too many digits" if wide else None


def refuse(operation: str) -> Callable[[Call], str | None]:
    """A rule that refuses decimals of too many digits."""

    def of_call(node: Call) -> str | None:
        types = tuple(a.dtype for a in node.args)
        return refuse_exact(operation, types, node.dtype) if types[0].is_decimal else None

    return of_call
