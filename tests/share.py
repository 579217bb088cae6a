"""CI runs a share of long lists of cases, and leaves some tests out; `make test-all` runs everything.

A test is left out that takes a minute for processes of its own, and whose code paths others take.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Mapping
from typing import TypeVar

import pytest

T = TypeVar("T")

EVERYTHING = os.environ.get("STAGECOACH_TEST_ALL", "") not in ("", "0")

in_test_all = pytest.mark.skipif(not EVERYTHING, reason="`make test-all` runs it")
"""Marks a test that CI leaves out."""


def share(cases: Iterable[T], one_of: int) -> list[T]:
    """About one of every `one_of` cases, in their order.

    A case is chosen by its text, so that every run has the same ones, and other cases that come or
    go do not change the choice.
    """
    if EVERYTHING:
        return list(cases)
    return [case for case in cases if _number(case) % one_of == 0]


def some_ways(case: object, ways: Mapping[str, T]) -> dict[str, T]:
    """The first of the ways to run a case, and one of the others, which its text chooses."""
    first, *others = ways
    if EVERYTHING or not others:
        return dict(ways)
    chosen = others[_number(case) % len(others)]
    return {first: ways[first], chosen: ways[chosen]}


def _number(case: object) -> int:
    return zlib.crc32(str(case).encode())
