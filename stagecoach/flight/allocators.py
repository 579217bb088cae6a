"""The C library's allocator in a server that sends large messages.

Every message is a new block of a few megabytes, which the allocator would get from the system and
give back each time, with a page fault for each 4 kB. So it keeps what is freed while streams are
open, and gives it back when the last one has ended. What it keeps is bounded by what open streams
hold. Other C libraries than glibc are left as they are.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import pyarrow as pa

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of `mallopt`
_LARGEST_KEPT_BYTES = 32 << 20  # the most that glibc takes
_MOST_KEPT_BYTES = 256 << 20


def keep_freed_memory() -> bool:
    """Let the allocator keep blocks for the next message; return whether it does."""
    library = _glibc()
    if library is None:
        return False
    library.mallopt(_TRIM_THRESHOLD, _MOST_KEPT_BYTES)
    return bool(library.mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT_BYTES))


def give_back_memory() -> None:
    """Return what is kept to the system."""
    pa.default_memory_pool().release_unused()
    library = _glibc()
    if library is not None:
        library.malloc_trim(0)


@cache
def _glibc() -> Any:
    """The library; None for another one."""
    try:
        library = ctypes.CDLL(None)
        return library if library.mallopt and library.malloc_trim else None
    except (OSError, AttributeError, TypeError):
        return None
