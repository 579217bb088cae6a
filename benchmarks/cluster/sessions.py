"""Sessions of processes that were started here, and their end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")


def started_at(pid: int) -> str:
    """When a process began, in ticks since the boot; empty if there is none.

    With its number it tells a process from a later one that has got the same number.
    """
    try:
        # The name of the program is in parentheses and may hold any character.
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def members(leaders: Iterable[int]) -> list[int]:
    """All processes of the sessions with these numbers."""
    wanted = set(leaders)
    found = []
    for name in filter(str.isdecimal, os.listdir(_PROC)):
        with suppress(ProcessLookupError, PermissionError):
            if os.getsid(int(name)) in wanted:
                found.append(int(name))
    return found


def end_sessions(leaders: Iterable[int]) -> int:
    """Kill all processes of the sessions with these numbers; return how many there were."""
    count = 0
    for pid in members(leaders):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
            count += 1
    return count
