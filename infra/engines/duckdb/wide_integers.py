"""Arithmetic on columns of whole numbers of up to 76 digits.

Worker code. The operations exist twice: `NARROW` works on 64-bit integers of numpy, and `WIDE` on
Arrow's 256-bit decimals, which are about ten times slower. `arithmetic` chooses by the largest
number that an operation can meet.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from decimal import Decimal
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Words = npt.NDArray[np.int64]
"""Numbers of several 64-bit words: one row for each number, the lowest word first."""
Mask = npt.NDArray[np.bool_]
Numbers = TypeVar("Numbers")
Rounding = Literal["half_up", "half_even", "ceil", "floor"]
"""`half_up` rounds ties away from 0, as Spark calls it."""

_NARROW_LIMIT = 1 << 62
_DIGITS = 76
"""Digits of a 256-bit decimal."""
_DIVIDEND_DIGITS = 74
"""Arrow multiplies a dividend by 100 at least, to give some digits of the fraction."""


class Arithmetic(ABC, Generic[Numbers]):
    """What can be done with a column of whole numbers, in one of two widths."""

    @abstractmethod
    def load(self, words: Words) -> Numbers:
        """Numbers of 128 bits."""

    @abstractmethod
    def store(self, numbers: Numbers, digits: int) -> tuple[Words, Mask]:
        """The numbers in 128 bits, and which have more digits than given."""

    @abstractmethod
    def small(self, numbers: Words) -> Numbers:
        """Numbers of 64 bits."""

    @abstractmethod
    def times(self, left: Numbers, right: Numbers) -> Numbers:
        """The products."""

    @abstractmethod
    def scaled(self, numbers: Numbers, digits: int) -> Numbers:
        """The numbers times a power of ten."""

    @abstractmethod
    def plus(self, left: Numbers, right: Numbers) -> Numbers:
        """The sums."""

    @abstractmethod
    def minus(self, left: Numbers, right: Numbers) -> Numbers:
        """The differences."""

    @abstractmethod
    def divided(self, left: Numbers, right: Numbers) -> tuple[Numbers, Numbers]:
        """Quotients without their fractions, and remainders with the sign of the dividend.

        No divisor may be 0.
        """

    @abstractmethod
    def power(self, digits: int, count: int) -> Numbers:
        """A power of ten, so many times."""

    @abstractmethod
    def sizes(self, numbers: Numbers) -> Numbers:
        """The numbers without their signs."""

    @abstractmethod
    def negative(self, numbers: Numbers) -> Mask:
        """Which numbers are less than 0."""

    @abstractmethod
    def greater(self, left: Numbers, right: Numbers) -> Mask:
        """Which numbers on the left are greater than those on the right."""

    @abstractmethod
    def equal(self, left: Numbers, right: Numbers) -> Mask:
        """Which numbers are equal."""

    @abstractmethod
    def odd(self, numbers: Numbers) -> Mask:
        """Which numbers are odd."""

    def rounded(self, left: Numbers, right: Numbers, mode: Rounding) -> Numbers:
        """The quotients as whole numbers. No divisor may be 0."""
        quotients, rest = self.divided(left, right)
        below = self.negative(left) != self.negative(right)
        size, divisor = self.sizes(rest), self.sizes(right)
        if mode.startswith("half"):
            twice = self.plus(size, size)
            away = self.greater(twice, divisor)
            tie = self.equal(twice, divisor)
            away = away | (tie if mode == "half_up" else tie & self.odd(quotients))
        else:
            fraction = ~self.equal(size, self.minus(size, size))
            away = fraction & (below if mode == "floor" else ~below)
        step = np.where(below, np.int64(-1), np.int64(1))
        return self.plus(quotients, self.small(np.where(away, step, np.int64(0))))


class _Narrow(Arithmetic[Words]):
    def load(self, words: Words) -> Words:
        return words[:, 0]

    def store(self, numbers: Words, digits: int) -> tuple[Words, Mask]:
        words = np.empty((len(numbers), 2), np.int64)
        words[:, 0] = numbers
        words[:, 1] = numbers >> 63
        if digits > 18:
            return words, np.zeros(len(numbers), np.bool_)
        return words, np.abs(numbers) >= 10**digits

    def small(self, numbers: Words) -> Words:
        return numbers

    def times(self, left: Words, right: Words) -> Words:
        return left * right

    def scaled(self, numbers: Words, digits: int) -> Words:
        return numbers * np.int64(10**digits) if digits else numbers

    def plus(self, left: Words, right: Words) -> Words:
        return left + right

    def minus(self, left: Words, right: Words) -> Words:
        return left - right

    def divided(self, left: Words, right: Words) -> tuple[Words, Words]:
        sizes = np.abs(left) // np.abs(right)
        quotients: Words = np.where((left < 0) != (right < 0), -sizes, sizes)
        return quotients, left - quotients * right

    def power(self, digits: int, count: int) -> Words:
        return np.full(count, 10**digits)

    def sizes(self, numbers: Words) -> Words:
        return np.abs(numbers)

    def negative(self, numbers: Words) -> Mask:
        return numbers < 0

    def greater(self, left: Words, right: Words) -> Mask:
        return left > right

    def equal(self, left: Words, right: Words) -> Mask:
        return left == right

    def odd(self, numbers: Words) -> Mask:
        return numbers & 1 == 1


class _Wide(Arithmetic[pa.Array]):
    # Arrow derives the type of a result from the types of the operands and refuses more than 76
    # digits, whatever the values are. So each operation first gives its operands types that suit.

    def load(self, words: Words) -> pa.Array:
        wide = np.empty((len(words), 4), np.int64)
        wide[:, :2] = words
        wide[:, 2:] = (words[:, 1] >> 63)[:, None]
        return _from_words(wide)

    def store(self, numbers: pa.Array, digits: int) -> tuple[Words, Mask]:
        wide = _words(numbers)
        words = np.ascontiguousarray(wide[:, :2])
        outside = (wide[:, 2] != words[:, 1] >> 63) | (wide[:, 3] != wide[:, 2])
        return words, outside | _reaches(words, 10**digits)

    def small(self, numbers: Words) -> pa.Array:
        wide = np.empty((len(numbers), 4), np.int64)
        wide[:, 0] = numbers
        wide[:, 1:] = (numbers >> 63)[:, None]
        return _from_words(wide)

    def times(self, left: pa.Array, right: pa.Array) -> pa.Array:
        return pc.multiply(_typed(left, 37), _typed(right, 38))

    def scaled(self, numbers: pa.Array, digits: int) -> pa.Array:
        if not digits:
            return numbers
        power = pa.scalar(Decimal(10**digits), pa.decimal256(digits + 1, 0))
        return pc.multiply(_typed(numbers, _DIGITS - 2 - digits), power)

    def plus(self, left: pa.Array, right: pa.Array) -> pa.Array:
        return pc.add(_typed(left, _DIGITS - 1), _typed(right, _DIGITS - 1))

    def minus(self, left: pa.Array, right: pa.Array) -> pa.Array:
        return pc.subtract(_typed(left, _DIGITS - 1), _typed(right, _DIGITS - 1))

    def divided(self, left: pa.Array, right: pa.Array) -> tuple[pa.Array, pa.Array]:
        dividends = _words(left)
        top = 10**_DIVIDEND_DIGITS >> 192
        unfit = (dividends[:, 3] >= top) | (dividends[:, 3] < -top)
        if unfit.any():
            left = _from_words(np.where(unfit[:, None], np.int64(0), dividends))
        hundreds = _typed(self.scaled(right, 2), 1)
        quotients = pc.divide(_typed(left, _DIVIDEND_DIGITS, 10), hundreds)
        rest = self.minus(left, self.times(quotients, right))
        # NOTE: Arrow's 256-bit division is 1 off for some operands, such as 10^45 - 5 * 10^12 by
        # 10^18. A quotient is only taken where it proves right.
        below = self.negative(rest) != self.negative(left)
        unfit |= below & ~self.equal(rest, self.minus(rest, rest))
        unfit |= ~self.greater(self.sizes(right), self.sizes(rest))
        rows = np.flatnonzero(unfit)
        if not len(rows):
            return quotients, rest
        divisors, found, remains = _words(right), _words(quotients).copy(), _words(rest).copy()
        for row in rows:
            dividend, divisor = _to_int(dividends[row]), _to_int(divisors[row])
            size, left_over = divmod(abs(dividend), abs(divisor))
            found[row] = _of_int(size if (dividend < 0) == (divisor < 0) else -size)
            remains[row] = _of_int(left_over if dividend >= 0 else -left_over)
        return _from_words(found), _from_words(remains)

    def power(self, digits: int, count: int) -> pa.Array:
        return _from_words(np.tile(_of_int(10**digits), (count, 1)))

    def sizes(self, numbers: pa.Array) -> pa.Array:
        return pc.abs(_typed(numbers, _DIGITS))

    def negative(self, numbers: pa.Array) -> Mask:
        return _words(numbers)[:, 3] < 0

    def greater(self, left: pa.Array, right: pa.Array) -> Mask:
        return _mask(pc.greater(_typed(left, _DIGITS), _typed(right, _DIGITS)))

    def equal(self, left: pa.Array, right: pa.Array) -> Mask:
        return _mask(pc.equal(_typed(left, _DIGITS), _typed(right, _DIGITS)))

    def odd(self, numbers: pa.Array) -> Mask:
        return _words(numbers)[:, 0] & 1 == 1


NARROW: Arithmetic[Any] = _Narrow()
WIDE: Arithmetic[Any] = _Wide()


def arithmetic(reach: int) -> Arithmetic[Any]:
    """The narrowest arithmetic for numbers of this size. Rounding needs twice the room."""
    return NARROW if 2 * reach < _NARROW_LIMIT else WIDE


def largest(words: Words) -> int:
    """A bound on the sizes of numbers of 128 bits: exact if all of them fit 64 bits."""
    if not len(words):
        return 0
    low, high = words[:, 0], words[:, 1]
    if np.array_equal(low >> 63, high):
        return max(int(low.max()), -int(low.min()))
    return (max(int(high.max()), -int(high.min())) + 1) << 64


def _reaches(words: Words, bound: int) -> Mask:
    """Which numbers of 128 bits are not between -bound and bound, both excluded."""
    unsigned = words[:, 0].view(np.uint64)
    high = words[:, 1]
    top, bottom = _halves(bound), _halves(-bound)
    above: Mask = (high > top[0]) | ((high == top[0]) & (unsigned >= top[1]))
    below: Mask = (high < bottom[0]) | ((high == bottom[0]) & (unsigned <= bottom[1]))
    return above | below


def _halves(number: int) -> tuple[np.int64, np.uint64]:
    return np.int64(number >> 64), np.uint64(number & ((1 << 64) - 1))


def _typed(numbers: pa.Array, digits: int, scale: int = 0) -> pa.Array:
    """The same bits under another type."""
    dtype = pa.decimal256(digits, scale)
    return pa.Array.from_buffers(dtype, len(numbers), numbers.buffers(), offset=numbers.offset)


def _from_words(words: Words) -> pa.Array:
    data = pa.py_buffer(np.ascontiguousarray(words))
    return pa.Array.from_buffers(pa.decimal256(_DIGITS, 0), len(words), [None, data])


def _words(numbers: pa.Array) -> Words:
    start, count = numbers.offset * 32, len(numbers) * 4
    return np.frombuffer(numbers.buffers()[1], np.int64, count, start).reshape(-1, 4)


def _to_int(words: Words) -> int:
    return int.from_bytes(words.tobytes(), "little", signed=True)


def _of_int(number: int) -> Words:
    return np.frombuffer(number.to_bytes(32, "little", signed=True), np.int64)


def _mask(values: pa.Array) -> Mask:
    found: Mask = values.to_numpy(zero_copy_only=False)
    return found
