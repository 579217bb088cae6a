"""Waiting for what happens in other threads and processes."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_for(condition: Callable[[], object], seconds: float = 120) -> None:
    """Wait until a condition holds.

    Args:
        condition: Asked again and again.
        seconds: After which it hangs; however slow the machine, it takes less.

    Raises:
        TimeoutError: It did not come to hold.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the condition did not come to hold")
        time.sleep(0.01)
