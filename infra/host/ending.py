"""Whether this process is being ended, so that nothing new is started for it.

A signal that ends the command line kills the JVM of Spark. A stage that was waiting for that JVM
would start another one, unless it is told that the process is about to end.
"""

from __future__ import annotations

import threading

_ending = threading.Event()


def begin_ending() -> None:
    """Mark this process as one that is being ended; there is no way back."""
    _ending.set()


def is_ending() -> bool:
    """Return whether this process is being ended."""
    return _ending.is_set()
