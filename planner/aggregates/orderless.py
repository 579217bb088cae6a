"""Aggregates whose value does not depend on the order of the rows."""

from __future__ import annotations

ORDERLESS = frozenset(
    ("count", "min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor")
)
"""Those of which this is true whatever their arguments are."""

SUMS = frozenset(("sum", "try_sum", "avg", "try_avg"))
"""Those of which it is true for decimals and whole numbers: sums of floats are rounded."""
