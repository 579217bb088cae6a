"""Decimals for tests: bounds, then values of all sizes, of which many end in a tie or nearly so."""

from __future__ import annotations

import random
from decimal import Decimal


def exact(unscaled: int, scale: int) -> Decimal:
    """A decimal of any size; arithmetic would round to 28 digits."""
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def unscaled_values(chosen: random.Random, precision: int, count: int) -> list[int]:
    """Unscaled values of a type with so many digits, in any order."""
    top = 10**precision - 1
    found = [0, 1, -1, top, -top, 5, -5]
    while len(found) < count:
        size = 10 ** chosen.randint(0, precision)
        near = chosen.choice(
            [size // 2, size // 2 - 1, size - 1, size // 4, chosen.randrange(size)]
        )
        found.append(chosen.choice([1, -1]) * min(near, top))
    chosen.shuffle(found)
    return found
