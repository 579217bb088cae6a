"""CI runs a share of long lists of cases; `make test-all` runs all of them."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

EVERYTHING = os.environ.get("STAGECOACH_TEST_ALL", "") not in ("", "0")


def share(cases: Iterable[T], one_of: int) -> list[T]:
    """About one of every `one_of` cases, in their order.

    A case is chosen by its text, so that every run has the same ones, and other cases that come or
    go do not change the choice.
    """
    if EVERYTHING:
        return list(cases)
    return [case for case in cases if zlib.crc32(str(case).encode()) % one_of == 0]
