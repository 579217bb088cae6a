"""How this process ends: what need not be started for it, and what need not be stopped.

A signal that ends the command line kills the JVM of Spark. A stage that was waiting for that JVM
would start another one, unless it is told that the process is about to end. A command that has its
answer ends; a Spark that ends with it need not be waited for, which takes most of a second.
"""

from __future__ import annotations

import threading

_ending = threading.Event()
_command = threading.Event()


def begin_ending() -> None:
    """Mark this process as one that is being ended; there is no way back."""
    _ending.set()


def is_ending() -> bool:
    """Return whether this process is being ended."""
    return _ending.is_set()


def begin_command() -> None:
    """Mark this process as a command, which ends soon after it closes its session."""
    _command.set()


def is_command() -> bool:
    """Return whether this process is a command."""
    return _command.is_set()
