"""Functions of texts over Arrow columns that DuckDB computes in another way than Java.

Worker code; `java_functions` registers them.
"""

from __future__ import annotations

import hmac
import operator

import pyarrow as pa


def similarities(left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.Array:
    """The Jaro-Winkler similarity of two texts as Java's UTF-16."""
    pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
    return pa.array(
        [None if a is None or b is None else _similarity(_units(a), _units(b)) for a, b in pairs],
        pa.float64(),
    )


def _units(text: str) -> str:
    """The text with two characters for each that Java has two of."""
    if text.isascii():
        return text
    return "".join(map(chr, memoryview(text.encode("utf-16-le")).cast("H")))


def _similarity(left: str, right: str) -> float:
    """Additions and divisions are in the order of Spark's `ExpressionImplUtils`."""
    if left == right:
        return 1.0
    taken, partners = _partners(left, right)
    matches = len(taken)
    if not matches:
        return 0.0
    moved = sum(map(operator.ne, taken, partners))
    jaro = (matches / len(left) + matches / len(right) + (matches - moved / 2.0) / matches) / 3.0
    prefix = 0
    while prefix < min(4, len(left), len(right)) and left[prefix] == right[prefix]:
        prefix += 1
    return jaro + prefix * 0.1 * (1.0 - jaro)


def _partners(left: str, right: str) -> tuple[list[str], list[str]]:
    """The characters of both texts that have a partner nearby, in their order."""
    reach = max(0, max(len(left), len(right)) // 2 - 1)
    rest: list[str | None] = list(right)
    found = []
    for i, character in enumerate(left):
        low, high = max(0, i - reach), i + reach + 1
        if character in rest[low:high]:
            rest[rest.index(character, low)] = None
            found.append(character)
    return found, [c for c, other in zip(right, rest, strict=True) if other is None]


def authentication_codes(
    keys: pa.ChunkedArray, messages: pa.ChunkedArray, algorithms: pa.ChunkedArray
) -> pa.Array:
    """The keyed hashes of messages, by an algorithm with Python's name."""
    rows = zip(keys.to_pylist(), messages.to_pylist(), algorithms.to_pylist(), strict=True)
    return pa.array([hmac.digest(*row) if None not in row else None for row in rows], pa.binary())
