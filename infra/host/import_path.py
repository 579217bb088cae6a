"""Changes of what Python can import, by one thread at a time."""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Iterator

_lock = threading.RLock()


@contextlib.contextmanager
def changing_imports() -> Iterator[None]:
    """Let no other thread drop Python's import caches, or change its path, in the block.

    `importlib.invalidate_caches` deletes entries of a list that it has made before, so that of two
    threads that call it at once one may end with a `KeyError` (CPython 3.11 to 3.13).
    """
    with _lock:
        yield


def forget_missing_modules() -> None:
    """Have the next import look at the disk again; what is imported already stays."""
    with changing_imports():
        importlib.invalidate_caches()
