"""Aggregates whose value does not depend on the order of the rows."""

from __future__ import annotations

ORDERLESS = frozenset(
    ("count", "min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor")
)
"""Those of which this is true whatever their arguments are."""

SUMS = frozenset(("sum", "try_sum", "avg", "try_avg"))
"""Aggregates for which it holds only over decimals and whole numbers: float sums are rounded."""
