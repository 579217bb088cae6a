"""Doubles and floats as Java writes them, over Arrow columns.

Worker code; `java_functions` registers it. Since version 19, Java writes the fewest digits that
tell a number from its neighbours (Raffaello Giulietti, "The Schubfach way to render doubles"; the
documentation of `Double.toString`). Before, it made digits as Steele and White do ("How to Print
Floating-Point Numbers Accurately"), with shortcuts that now and then give a digit more, or another
last one: 2e23 was 1.9999999999999998E23. Proven beside Spark in `test_java_float_texts`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

_MOST_BINARY_PLACES = 62  # of a number that fits a 64-bit integer


class _Digits(NamedTuple):
    """A positive number: `0.` and these digits, times ten to the power `point`."""

    digits: str
    point: int


class _Width(NamedTuple):
    """A type of floating-point numbers.

    Args:
        precision: Bits of the fraction, the hidden one included.
        smallest: The binary exponent of the smallest number.
        reads: The number of the type that is nearest to a text.
    """

    precision: int
    smallest: int
    reads: Callable[[str], float]


def _read_float(text: str) -> float:
    return float(np.float32(text))


_DOUBLE = _Width(53, -1074, float)
_FLOAT = _Width(24, -149, _read_float)


def double_texts(numbers: pa.ChunkedArray, fewest: pa.ChunkedArray) -> pa.Array:
    """Doubles as Java writes them.

    Args:
        numbers: The doubles.
        fewest: 1 for Java 19 or later, 0 for an older one; NULL where that is not known, which
            gives NULL for the numbers that versions write differently.
    """
    return _texts(_DOUBLE, numbers, fewest)


def double_text(number: float, fewest: int | None) -> str | None:
    """One double as Java writes it; for `fewest` and for None see `double_texts`."""
    return _text(number, repr(number), _DOUBLE, fewest)


def float_texts(numbers: pa.ChunkedArray, fewest: pa.ChunkedArray) -> pa.Array:
    """The same of 32-bit floats."""
    return _texts(_FLOAT, numbers, fewest)


def _texts(width: _Width, numbers: pa.ChunkedArray, fewest: pa.ChunkedArray) -> pa.Array:
    values, shortest = numbers.to_pylist(), numbers.cast(pa.string()).to_pylist()
    rows = zip(values, shortest, fewest.to_pylist(), strict=True)
    return pa.array(
        [None if v is None else _text(v, text, width, new) for v, text, new in rows], pa.string()
    )


def _text(number: float, shortest: str, width: _Width, fewest: int | None) -> str | None:
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    sign = "-" if math.copysign(1.0, number) < 0 else ""
    if number == 0:
        return f"{sign}0.0"
    size = abs(number)
    new = _written(_fewest(size, shortest.lstrip("-"), width))
    if fewest or _is_same_in_old_java(size, width):
        return sign + new
    old = _written(_of_old_java(size, width))
    return sign + old if fewest is not None or old == new else None


def _written(number: _Digits) -> str:
    """Java's form: with an exponent below 1e-3 and from 1e7 on, always a digit after the point."""
    digits, point = number
    if 0 < point < 8:
        whole, rest = digits[:point].ljust(point, "0"), digits[point:]
    elif -3 < point <= 0:
        whole, rest = "0", "0" * -point + digits
    else:
        return f"{digits[0]}.{digits[1:] or '0'}E{point - 1}"
    return f"{whole}.{rest or '0'}"


# ---------------------------------------------------------------- Java 19 and later


def _fewest(size: float, shortest: str, width: _Width) -> _Digits:
    """The fewest digits, but the nearest of those with two where one would do."""
    found = _parsed(shortest)
    if len(found.digits) == 1:
        two = f"{size:.1e}"
        if width.reads(two) == size:
            return _parsed(two)
    return found


def _parsed(text: str) -> _Digits:
    """A positive number as Python or Arrow writes it, without zeros at both ends."""
    fraction, _, exponent = text.partition("e")
    whole, _, places = fraction.partition(".")
    digits = (whole + places).lstrip("0")
    point = len(digits) - len(places) + int(exponent or 0)
    return _Digits(digits.rstrip("0"), point)


# ---------------------------------------------------------------- before Java 19


def _is_same_in_old_java(size: float, width: _Width) -> bool:
    """Whether the digits are surely the fewest ones.

    They differ only where a text of so few digits lies halfway between two neighbours, which are
    large then, or where the two neighbours are not equally far away.
    """
    least, most = width.smallest + width.precision - 1, width.precision - 4
    return 2.0**least < size < 2.0**most and math.frexp(size)[0] != 0.5


def _of_old_java(size: float, width: _Width) -> _Digits:
    fraction, exponent = math.frexp(size)
    exponent -= 1  # of the highest bit
    bits = int(fraction * (1 << 53))
    bits >>= (bits & -bits).bit_length() - 1
    places = max(0, bits.bit_length() - 1 - exponent)
    precision = min(width.precision, exponent - width.smallest + 1)
    if not places and exponent <= _MOST_BINARY_PLACES:
        return _of_integer(int(size), exponent - precision - 1)
    return _generated(bits, exponent, places, precision)


def _of_integer(number: int, spare_bits: int) -> _Digits:
    """The digits but for those that bits below the precision make, which are `spare_bits`."""
    dropped = len(str(1 << spare_bits)) - 1 if spare_bits > 0 else 0
    power = 10**dropped
    kept, rest = divmod(number, power)
    if dropped and rest >= power // 2:
        kept += 1
    digits = str(kept)
    return _Digits(digits.rstrip("0"), len(digits) + dropped)


class _Scaled(NamedTuple):
    """A number and half the distance to its neighbours as integers over a common divisor.

    Args:
        number: The number, times `divisor`.
        half: Half the distance, times `divisor`.
        divisor: A power of ten, about the size of the number, scaled alike.
        width: Bits of the integers that Java computes with; None for as many as are needed.
    """

    number: int
    half: int
    divisor: int
    width: int | None


def _generated(bits: int, exponent: int, places: int, precision: int) -> _Digits:
    """Digits one by one, until what is left is less than half the distance to a neighbour."""
    power = _estimated_power(bits, exponent)
    number, half, divisor, width = _scaled(bits, exponent, places, precision, power)
    ten, digits = divisor * 10, list[int]()

    def next_digit() -> tuple[int, bool, bool]:
        nonlocal number, half
        digit, rest = divmod(number, divisor)
        number, half = rest * 10, half * 10
        if width is None:
            return digit, number < half, number + half >= ten
        half = _wrapped(half, width)
        if digits and half <= 0:
            return digit, True, True
        # NOTE: the sum may overflow, which lets Java round down.
        return digit, number < half, _wrapped(number + half, width) > ten

    digit, is_low, is_high = next_digit()
    if digit or is_high:
        digits.append(digit)
    else:
        power -= 1  # the estimate was too large
    if not -3 <= power < 8:
        is_low = is_high = False  # with an exponent, a second digit is written in any case
    while not (is_low or is_high):
        digit, is_low, is_high = next_digit()
        digits.append(digit)
    nearer_above = number * 2 - ten
    if is_high and (not is_low or nearer_above > 0 or (nearer_above == 0 and digits[-1] % 2)):
        return _next_above(digits, power + 1)
    return _Digits("".join(map(str, digits)), power + 1)


def _next_above(digits: list[int], point: int) -> _Digits:
    """One more in the last place, with as many digits."""
    text = str(int("".join(map(str, digits))) + 1).zfill(len(digits))
    return _Digits(text[: len(digits)], point + len(text) - len(digits))


def _estimated_power(bits: int, exponent: int) -> int:
    """The power of ten of the first digit, or one more."""
    fraction = bits / (1 << (bits.bit_length() - 1))
    return math.floor(
        (fraction - 1.5) * 0.289529654 + 0.176091259 + float(exponent) * 0.301029995663981
    )


def _scaled(bits: int, exponent: int, places: int, precision: int, power: int) -> _Scaled:
    fives = max(0, -power), max(0, power)  # in the number and its half, and in the divisor
    number_twos = fives[0] + places + exponent - bits.bit_length() + 1
    divisor_twos = fives[1] + places
    half_twos = fives[0] + places + exponent - precision
    common = min(number_twos, divisor_twos)
    number_twos, divisor_twos, half_twos = (
        twos - common for twos in (number_twos, divisor_twos, half_twos)
    )
    if bits == 1:
        half_twos -= 1  # the neighbour below a power of two is half as far away
    if half_twos < 0:
        number_twos, divisor_twos, half_twos = number_twos - half_twos, divisor_twos - half_twos, 0
    number_bits = bits.bit_length() + number_twos + _bits_of_five(fives[0])
    ten_bits = divisor_twos + 1 + _bits_of_five(fives[1] + 1)
    return _Scaled(
        bits * 5 ** fives[0] << number_twos,
        5 ** fives[0] << half_twos,
        5 ** fives[1] << divisor_twos,
        next((width for width in (32, 64) if max(number_bits, ten_bits) < width), None),
    )


def _wrapped(number: int, width: int) -> int:
    """What an overflow makes of a number."""
    half = 1 << (width - 1)
    return (number + half) % (1 << width) - half


def _bits_of_five(power: int) -> int:
    """Bits of a power of five as Java counts them, which are too many for large ones."""
    if power == 0:
        return 0
    return (5**power).bit_length() if power < 27 else 3 * power
