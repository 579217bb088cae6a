"""Changes of what Python can import, beside other threads."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_TRIES = 100
_CHANGED_WHILE_LISTED = "dictionary changed size during iteration"


def dropping_import_caches(call: Callable[[], T]) -> T:
    """Return what a function returns that calls `importlib.invalidate_caches`.

    That lists `sys.path_importer_cache` and then deletes entries of it, so that of two threads that
    call it at once one may end with an error (CPython 3.11 to 3.13). A lock would not do: pyspark
    calls it on its way to a server.

    Args:
        call: Safe to call again after such an error.
    """
    for _ in range(_TRIES):
        try:
            return call()
        except KeyError:  # of another thread, or of the function itself
            continue
        except RuntimeError as error:
            if _CHANGED_WHILE_LISTED not in str(error):
                raise
    return call()


def forget_missing_modules() -> None:
    """Have the next import look at the disk again; what is imported already stays."""
    dropping_import_caches(importlib.invalidate_caches)
