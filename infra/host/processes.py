"""Processes of this machine: whether one runs, and which ones another has started. Worker code."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

_PROC = Path("/proc")
_PR_SET_PDEATHSIG = 1


def is_running(pid: int) -> bool:
    """Whether a process of this machine has the number; also where there is no telling."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # somebody else's process, or no number of one
        return True
    return True


def descendants(pid: int, earlier: Collection[int] = ()) -> Sequence[int]:
    """Return the processes that a process has started, directly or not, parents first.

    Processes that have ended and whose parent has not noticed yet are left out.

    Args:
        pid: The process.
        earlier: Descendants of a moment ago: those that still run are returned as well, though
            their parents may have ended, so that they are no longer connected with the process.
    """
    children: dict[int, list[int]] = defaultdict(list)
    found: list[int] = []
    for child, parent in _parents():
        if child in earlier:
            found.append(child)
        else:
            children[parent].append(child)
    left = [pid, *found]
    while left:
        new = children.pop(left.pop(), [])
        found += new
        left += new
    return found


def send_signal(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to processes, and to the process groups that they lead; skip ended ones.

    Spark's Python workers are a group of their own: those that are forked while the signal is sent
    get it as well.
    """
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getpgid(pid) == pid:
                os.killpg(pid, number)
            else:
                os.kill(pid, number)


def die_with_parent() -> None:
    """In a child before its exec: have the kernel kill it when its parent is gone (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _parents() -> Iterator[tuple[int, int]]:
    """Yield each living process of the machine with its parent."""
    # Slim images of Linux have no `ps`, and other systems no /proc.
    if (_PROC / "self" / "stat").exists():
        for name in filter(str.isdecimal, os.listdir(_PROC)):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                # The name of the program is in parentheses and may hold any character.
                state, parent = (
                    _PROC.joinpath(name, "stat").read_text().rpartition(")")[2].split()[:2]
                )
                if state != "Z":
                    yield int(name), int(parent)
        return
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=False
    )
    for line in listed.stdout.splitlines():
        child, parent, state = line.split()[:3]
        if not state.startswith("Z"):
            yield int(child), int(parent)
