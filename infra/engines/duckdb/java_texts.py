"""Functions of texts over Arrow columns that DuckDB computes in another way than Java.

Worker code; `java_functions` registers them.
"""

from __future__ import annotations

import hmac

import pyarrow as pa


def similarities(left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.Array:
    """The Jaro-Winkler similarity of two texts as Java's UTF-16."""
    pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
    return pa.array(
        [None if a is None or b is None else _similarity(_units(a), _units(b)) for a, b in pairs],
        pa.float64(),
    )


def _units(text: str) -> memoryview:
    return memoryview(text.encode("utf-16-le")).cast("H")


def _similarity(left: memoryview, right: memoryview) -> float:
    """Additions and divisions are in the order of Spark's `ExpressionImplUtils`."""
    if not left or not right:
        return 1.0 if len(left) == len(right) else 0.0
    found, taken = _matches(left, right)
    matches = len(found)
    if not matches:
        return 0.0
    moved = sum(left[i] != right[j] for i, j in zip(found, sorted(taken), strict=True))
    jaro = (matches / len(left) + matches / len(right) + (matches - moved / 2.0) / matches) / 3.0
    prefix = 0
    while prefix < min(4, len(left), len(right)) and left[prefix] == right[prefix]:
        prefix += 1
    return jaro + prefix * 0.1 * (1.0 - jaro)


def _matches(left: memoryview, right: memoryview) -> tuple[list[int], set[int]]:
    """Positions in both texts that have a partner nearby."""
    reach = max(0, max(len(left), len(right)) // 2 - 1)
    found, taken = [], set[int]()
    for i, unit in enumerate(left):
        for j in range(max(0, i - reach), min(i + reach + 1, len(right))):
            if j not in taken and right[j] == unit:
                found.append(i)
                taken.add(j)
                break
    return found, taken


def authentication_codes(
    keys: pa.ChunkedArray, messages: pa.ChunkedArray, algorithms: pa.ChunkedArray
) -> pa.Array:
    """The keyed hashes of messages, by an algorithm with Python's name."""
    rows = zip(keys.to_pylist(), messages.to_pylist(), algorithms.to_pylist(), strict=True)
    return pa.array([hmac.digest(*row) if None not in row else None for row in rows], pa.binary())
