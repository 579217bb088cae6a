"""Keeps Python's garbage collector from slowing down the loading of a code location.

Definitions are a million objects that all stay, and refer to one another in circles. The collector
looks at all of them again and again while they are made, and twice when the process ends, which
the processes of runs do soon: a third of the time to load and to leave a project of 1,000 stages.
"""

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

MIN_STAGES = 100
"""Projects with fewer stages are left to the collector as they are: it takes no time for them."""

# What planning leaves behind is young, and is found by looking at the youngest objects alone.
_YOUNG_OBJECTS = 100_000
_COLLECTIONS = 20
_NEVER = 1 << 30

_lock = threading.Lock()
_is_frozen = False


@contextmanager
def young_objects_only() -> Iterator[None]:
    """While the block runs, the collector looks at young objects only, and less often."""
    before = gc.get_threshold()
    if before[0]:  # else it is off, and that is the caller's business
        gc.set_threshold(max(before[0], _YOUNG_OBJECTS), _COLLECTIONS, _NEVER)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def leave_out(num_stages: int) -> None:
    """Have the collector never look again at what there is, where that is a large project.

    Once a process: it is for the one code location that a process of Dagster's loads and keeps.
    What there is by then and becomes garbage later stays if it is part of a circle, so this is not
    for sessions in which people make and drop things.

    Args:
        num_stages: Of the project whose definitions were made.
    """
    global _is_frozen
    with _lock:
        if num_stages < MIN_STAGES or _is_frozen or hasattr(sys, "ps1"):
            return
        _is_frozen = True
        gc.freeze()
