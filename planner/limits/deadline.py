"""The time limit of planning, and the only clock in the planner.

A plan must not depend on when it is made, so no decision reads a clock. The one exception is
whether planning continues. `deadline` sets the end for its body, and everything that loops over a
query (the parser, tree walks, rules, the search for a join order) calls `check_deadline`, which
reads the clock on every 64th call.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from stagecoach.planner.errors import PlanningTimeoutError

_CALLS_PER_READING = 64
_REASON = "planning took longer than"


class _Deadline:
    """When planning ends.

    Args:
        seconds: In how many seconds.
    """

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._calls = 0

    def check(self) -> None:
        self._calls += 1
        if self._calls % _CALLS_PER_READING == 0 and time.monotonic() > self._end:
            raise PlanningTimeoutError(
                f"{_REASON} {self._seconds} seconds; simplify the query, or raise "
                "planner.timeout_seconds"
            )


_current: ContextVar[_Deadline | None] = ContextVar("planning_deadline", default=None)


@contextmanager
def deadline(seconds: int) -> Iterator[None]:
    """End the body with an error when it takes too long.

    A deadline inside of another one is ignored.

    Args:
        seconds: How long it may take; 0 for as long as it needs.

    Raises:
        PlanningTimeoutError: It took longer.
    """
    if seconds == 0 or _current.get() is not None:
        yield
        return
    token = _current.set(_Deadline(seconds))
    try:
        yield
    finally:
        _current.reset(token)


def check_deadline() -> None:
    """Raise an error where the time that the caller set has passed.

    Raises:
        PlanningTimeoutError: It has.
    """
    if (current := _current.get()) is not None:
        current.check()


def is_timeout(reason: str | None) -> bool:
    """Whether a query is one Spark stage for this reason because of its deadline."""
    return reason is not None and reason.startswith(_REASON)
