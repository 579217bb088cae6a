"""Begin to read an input before its turn, so that round trips of several do not add up.

An engine reads its inputs one after another, the build sides of joins first. Each begins with round
trips to the store, for a footer or an index and for the first rows.

Worker code.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

MOST_BYTES = 64 << 20
"""Larger inputs wait for their turn: what they have fetched counts for the memory of the task."""


def primed(items: Iterator[T]) -> Iterator[T]:
    """Ask for the first item at once, in a thread; return all of them.

    An error of the first item is raised when it is its turn.
    """
    pool = ThreadPoolExecutor(1, "first-rows")
    first: Future[list[T]] = pool.submit(_first, items)
    pool.shutdown(wait=False)
    return _from_first(first, items)


def _first(items: Iterator[T]) -> list[T]:
    """The first item, if there is one."""
    return list(itertools.islice(items, 1))


def _from_first(first: Future[list[T]], items: Iterator[T]) -> Iterator[T]:
    yield from first.result()
    yield from items
