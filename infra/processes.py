"""Processes of this machine: in, a number; out, whether it is one that runs. Worker code."""

from __future__ import annotations

import os


def is_running(pid: int) -> bool:
    """Whether a process of this machine has the number; also where there is no telling."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # somebody else's process, or no number of one
        return True
    return True
