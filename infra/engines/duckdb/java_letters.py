"""Large and small letters of texts as Spark has them, over Arrow columns.

Worker code; `java_functions` registers it. DuckDB gives one letter for one, and it and Python know
other versions of Unicode than Spark's ICU 78. Source: Spark's `CollationAwareUTF8String` over
Unicode 17.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import pyarrow as pa

# Letters newer than the Unicode 14 of Python 3.11: the first large and small one, and how many.
_NEW_LETTERS = (
    (0x1C89, 0x1C8A, 1),
    (0xA7CB, 0x0264, 1),
    (0xA7CC, 0xA7CD, 1),
    (0xA7CE, 0xA7CF, 1),
    (0xA7D2, 0xA7D3, 1),
    (0xA7D4, 0xA7D5, 1),
    (0xA7DA, 0xA7DB, 1),
    (0xA7DC, 0x019B, 1),
    (0x10D50, 0x10D70, 22),
    (0x16EA0, 0x16EBB, 25),
)
_SMALL = {large + i: small + i for large, small, n in _NEW_LETTERS for i in range(n)}
_LARGE = {small: large for large, small in _SMALL.items()}
_SIGMA = "Σ"


def large(texts: pa.ChunkedArray) -> pa.Array:
    """Texts in large letters."""
    return _each(_large, texts)


def small(texts: pa.ChunkedArray) -> pa.Array:
    """Texts in small letters.

    Raises:
        ValueError: A capital sigma stands beside letters that this Python does not know.
    """
    return _each(_small, texts)


def titled(texts: pa.ChunkedArray) -> pa.Array:
    """Texts in small letters, but for the first one after each space.

    Raises:
        ValueError: As `small`.
    """
    return _each(_titled, texts)


def _each(function: Callable[[str], str], texts: pa.ChunkedArray) -> pa.Array:
    return pa.array([None if t is None else function(t) for t in texts.to_pylist()], pa.string())


def _large(text: str) -> str:
    return text.upper().translate(_LARGE)


def _small(text: str) -> str:
    # A sigma at the end of a word is another one, and what a word is depends on all letters.
    if _SIGMA in text and any(unicodedata.category(c) == "Cn" for c in text):
        raise ValueError(f"a sigma beside letters of a newer Unicode: {text!r}")
    return text.lower().translate(_SMALL)


def _titled(text: str) -> str:
    return " ".join(map(_titled_word, text.split(" ")))


def _titled_word(word: str) -> str:
    first = word[:1]
    # The first letter counts where a sigma after it is made small.
    return first.title().translate(_LARGE) + _small(word)[len(_small(first)) :]
