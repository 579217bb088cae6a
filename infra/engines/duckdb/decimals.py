"""Spark's arithmetic on decimals, exact over Arrow columns.

Worker code. Spark computes in Java's `BigDecimal`, keeps more digits than a result can hold, and
then rounds half up to the scale of the result type, so each result is the exact one rounded once.
A result that exceeds its type raises an error; operations named `try_…` return NULL instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from stagecoach.infra.engines.duckdb.wide_integers import (
    WIDE,
    Arithmetic,
    Mask,
    Rounding,
    Words,
    arithmetic,
    largest,
)
from stagecoach.planner.text.decimal_calls import DecimalFunction
from stagecoach.planner.types import DataType

_NEGATED_DIGITS = 34  # of Scala's `BigDecimal.unary_-`, by which Spark negates
_QUOTIENT_DIGITS = 39  # Spark gives up on a remainder whose whole quotient has more


class DecimalError(ArithmeticError):
    """An operation that is an error in Spark."""


@dataclass(frozen=True)
class _Column:
    """Unscaled values in 128 bits, 0 for NULL, and which rows are not NULL (None: all)."""

    words: Words
    valid: Mask | None

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> _Column:
        array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        if not len(array):
            return cls(np.empty((0, 2), np.int64), None)
        start, count = array.offset * 16, len(array) * 2
        words = np.frombuffer(array.buffers()[1], np.int64, count, start).reshape(-1, 2)
        if not array.null_count:
            return cls(words, None)
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        return cls(np.where(valid[:, None], words, np.int64(0)), valid)

    def where(self, rows: Mask | None, number: int) -> _Column:
        """The column with a small number in all other rows."""
        if rows is None:
            return self
        return _Column(np.where(rows[:, None], self.words, np.array([number, 0])), self.valid)


@dataclass(frozen=True)
class _Pair:
    """The two operands of an operation.

    Args:
        sides: The columns. In rows without a result, dividends are 0 and divisors 1.
        types: Their types.
        result: Type of the result.
    """

    sides: tuple[_Column, _Column]
    types: tuple[DataType, DataType]
    result: DataType

    @property
    def sizes(self) -> tuple[int, int]:
        left, right = (largest(side.words) for side in self.sides)
        return left, right

    def aligned(self, factor: int = 1) -> tuple[Arithmetic[Any], Any, Any, int]:
        """Both at the larger scale: what computes with them, the numbers, and the scale.

        Args:
            factor: How many times their sum must have room.
        """
        scale = max(t.scale for t in self.types)
        shifts = [scale - t.scale for t in self.types]
        reach = sum(size * 10**shift for size, shift in zip(self.sizes, shifts, strict=True))
        math = arithmetic(max(factor * reach, 10**scale))
        left, right = (
            math.scaled(math.load(side.words), shift)
            for side, shift in zip(self.sides, shifts, strict=True)
        )
        return math, left, right, scale


_Stored = tuple[Words, Mask]
"""Results in 128 bits, and which of them do not fit."""


def _add(pair: _Pair) -> _Stored:
    math, left, right, scale = pair.aligned()
    return _stored(math, math.plus(left, right), scale - pair.result.scale, pair.result)


def _subtract(pair: _Pair) -> _Stored:
    math, left, right, scale = pair.aligned()
    return _stored(math, math.minus(left, right), scale - pair.result.scale, pair.result)


def _multiply(pair: _Pair) -> _Stored:
    left, right = pair.sizes
    dropped = sum(t.scale for t in pair.types) - pair.result.scale
    math = arithmetic(max(left * right, 10**dropped))
    exact = math.times(*(math.load(side.words) for side in pair.sides))
    return _stored(math, exact, dropped, pair.result)


def _divide(pair: _Pair) -> _Stored:
    left, right = pair.sizes
    shift = pair.result.scale - pair.types[0].scale + pair.types[1].scale
    up, down = max(shift, 0), max(-shift, 0)
    math = arithmetic(max(max(left, 1) * 10**up, right * 10**down))
    top, bottom = (math.load(side.words) for side in pair.sides)
    found = math.rounded(math.scaled(top, up), math.scaled(bottom, down), "half_up")
    return math.store(found, pair.result.precision)


def _div(pair: _Pair) -> _Stored:
    math, left, right, _ = pair.aligned()
    return math.store(math.divided(left, right)[0], pair.result.precision)


def _mod(pair: _Pair) -> _Stored:
    math, left, right, _ = pair.aligned()
    return math.store(_remainder(math, left, right), pair.result.precision)


def _pmod(pair: _Pair) -> _Stored:
    math, left, right, _ = pair.aligned(factor=2)
    rest = _remainder(math, left, right)
    again = _remainder(math, math.plus(rest, right), right)
    (words, outside), (others, beside) = (
        math.store(found, pair.result.precision) for found in (rest, again)
    )
    negative = math.negative(rest)
    return np.where(negative[:, None], others, words), np.where(negative, beside, outside)


def _remainder(math: Arithmetic[Any], left: Any, right: Any) -> Any:
    """What is left of a division, with the sign of the dividend."""
    quotients, rest = math.divided(left, right)
    if math is WIDE:
        limit = math.power(_QUOTIENT_DIGITS, len(quotients))
        if not math.greater(limit, math.sizes(quotients)).all():
            raise DecimalError("division impossible")
    return rest


def _stored(
    math: Arithmetic[Any],
    numbers: Any,
    dropped: int,
    result: DataType,
    mode: Rounding = "half_up",
) -> _Stored:
    """The numbers without their last digits."""
    if dropped:
        numbers = math.rounded(numbers, math.power(dropped, len(numbers)), mode)
    return math.store(numbers, result.precision)


OPERATIONS: Mapping[str, Callable[[_Pair], _Stored]] = MappingProxyType(
    {
        "add": _add,
        "subtract": _subtract,
        "multiply": _multiply,
        "divide": _divide,
        "div": _div,
        "mod": _mod,
        "pmod": _pmod,
    }
)
"""Operations on two decimals; each also exists as `try_…`."""
ROUNDINGS: Mapping[str, Rounding] = MappingProxyType(
    {"round": "half_up", "bround": "half_even", "ceil": "ceil", "floor": "floor"}
)
"""Operations on one decimal."""
NEGATIONS = ("negate", "abs")
"""Operations on one decimal, in which Spark rounds what it negates to 34 digits."""
_ZERO_ERRORS = {
    "divide": "DIVIDE_BY_ZERO",
    "div": "DIVIDE_BY_ZERO",
    "mod": "REMAINDER_BY_ZERO",
    "pmod": "REMAINDER_BY_ZERO",
}


def compute(function: DecimalFunction, columns: Sequence[pa.ChunkedArray]) -> pa.Array:
    """The function of the columns; NULL where one of them is.

    Raises:
        DecimalError: Spark raises for one of the rows.
    """
    sides = [_Column.of(column) for column in columns]
    operation = function.operation.removeprefix("try_")
    safe = operation != function.operation
    valid = _both([side.valid for side in sides])
    if operation in ROUNDINGS:
        words, outside = _round(sides[0].words, ROUNDINGS[operation], function)
    elif operation in NEGATIONS:
        words, outside = _negate(sides[0].words, operation, function.result)
    else:
        if operation in _ZERO_ERRORS:
            valid = _check_divisors(sides[1], valid, "" if safe else _ZERO_ERRORS[operation])
            sides = [side.where(valid, number) for side, number in zip(sides, (0, 1), strict=True)]
        left, right = sides
        types = function.arguments[0], function.arguments[1]
        words, outside = OPERATIONS[operation](_Pair((left, right), types, function.result))
    if valid is not None:
        outside = outside & valid
    if outside.any():
        if not safe:
            raise DecimalError(f"NUMERIC_VALUE_OUT_OF_RANGE: a result exceeds {function.result}")
        valid = _both([valid, ~outside])
    return _to_arrow(words, valid, function.result)


def _round(words: Words, mode: Rounding, function: DecimalFunction) -> _Stored:
    dropped = function.arguments[0].scale - function.result.scale
    math = arithmetic(max(largest(words), 10**dropped))
    return _stored(math, math.load(words), dropped, function.result, mode)


def _negate(words: Words, operation: str, result: DataType) -> _Stored:
    negated = WIDE.minus(WIDE.load(np.zeros_like(words)), WIDE.load(words))
    found, outside = WIDE.store(negated, result.precision)
    if operation == "abs":
        found = np.where((words[:, 1] < 0)[:, None], found, words)
    limit = WIDE.power(_NEGATED_DIGITS, len(words))
    for row in np.flatnonzero(~WIDE.greater(limit, WIDE.sizes(negated))):
        if operation == "abs" and words[row, 1] >= 0:
            continue
        number = int.from_bytes(found[row].tobytes(), "little", signed=True)
        unit = 10 ** (len(str(abs(number))) - _NEGATED_DIGITS)
        rounded = round(Fraction(number, unit)) * unit
        outside[row] = abs(rounded) >= 10**result.precision
        found[row] = np.frombuffer(rounded.to_bytes(16, "little", signed=True), np.int64)
    return found, outside


def _check_divisors(divisor: _Column, valid: Mask | None, error: str) -> Mask | None:
    """The rows that have a result. A divisor of 0 is an error, unless the error is empty."""
    zero = (divisor.words == 0).all(axis=1)
    if not zero.any():
        return valid
    if error and (zero if valid is None else zero & valid).any():
        raise DecimalError(error)
    return _both([valid, ~zero])


def _both(masks: Sequence[Mask | None]) -> Mask | None:
    known = [mask for mask in masks if mask is not None]
    return np.logical_and.reduce(known) if known else None


def _to_arrow(words: Words, valid: Mask | None, dtype: DataType) -> pa.Array:
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    data = pa.py_buffer(np.ascontiguousarray(words))
    arrow = pa.decimal128(dtype.precision, dtype.scale)
    return pa.Array.from_buffers(arrow, len(words), [bits, data])
