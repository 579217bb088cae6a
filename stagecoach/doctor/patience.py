"""Waits for Spark no longer than a person would."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from stagecoach.infra.errors import SparkUnavailableError

_T = TypeVar("_T")


def within(seconds: float, call: Callable[[], _T], late: str, give_up: Callable[[], None]) -> _T:
    """Return what a call returns, or stop waiting for it.

    Args:
        seconds: How long to wait.
        call: May hang; it is then left to its thread.
        late: What it means that the call has not returned in time.
        give_up: Called before the error is raised.

    Raises:
        SparkUnavailableError: The call has not returned in time.
    """
    results: list[_T] = []
    failures: list[Exception] = []

    def run() -> None:
        try:
            results.append(call())
        except Exception as error:  # noqa: BLE001 -- raised in the thread that waits
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        give_up()
        raise SparkUnavailableError(f"{late} within {seconds:g} s")
    if failures:
        raise failures[0]
    return results[0]
