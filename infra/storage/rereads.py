"""Reading small objects again before their loss ends a run: what a proxy or a server says may pass.

A body that arrives damaged over HTTP looks like an object that is damaged, and a 404 that a cache
kept from before the object was written looks like an object that is gone. Both pass within moments.
So whatever is there remotely, and is checked, is asked for a few times before it counts as lost.
A local disk is asked once.

Worker code.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from stagecoach.infra.storage.object_store import ObjectStore, StorageOptions
from stagecoach.infra.storage.retries import wait_seconds

log = logging.getLogger(__name__)

_T = TypeVar("_T")

TRIES = 4
"""How often an object is read that is damaged or missing each time; the waits come to 0.7 s."""

_RECENT_SECONDS = 60.0
_MOST_RECENT = 4096


def reread(
    store: ObjectStore, key: str, read: Callable[[], _T], passing: tuple[type[Exception], ...]
) -> _T:
    """Return what `read` does; where it fails in a way that may pass, after further tries.

    Args:
        store: Where the object is.
        key: Its key, for the log.
        read: Reads the object and checks it.
        passing: What it raises where the object is damaged (or missing, if it is known to exist).

    Raises:
        Exception: What the last try raised.
    """
    if store.is_local:
        return read()
    options = StorageOptions.of(store)
    return _read_again(read, passing, options.retry_seconds, lambda: store.uri(key))


class RecentWrites:
    """Objects that this process has written within the last minute, so that a 404 must be stale."""

    def __init__(self) -> None:
        self._written: OrderedDict[str, float] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, path: str) -> None:
        """Note that an object is there."""
        with self._lock:
            self._written[path] = time.monotonic()
            self._written.move_to_end(path)
            while len(self._written) > _MOST_RECENT:
                self._written.popitem(last=False)

    def discard(self, path: str) -> None:
        """Note that an object was removed, or proved to be gone."""
        with self._lock:
            self._written.pop(path, None)

    def read(
        self,
        path: str,
        read: Callable[[], _T],
        missing: type[Exception],
        retry_seconds: float,
        uri: Callable[[], str],
    ) -> _T:
        """Return what `read` does; if it misses an object that must be there, after further tries.

        Args:
            path: The object.
            read: Asks for it.
            missing: What it raises where there is no such object.
            retry_seconds: Bound of the waits.
            uri: Names the object for the log.
        """
        with self._lock:
            written = self._written.get(path)
        if written is None or time.monotonic() - written > _RECENT_SECONDS:
            return read()
        try:
            return _read_again(read, (missing,), retry_seconds, uri)
        except missing:
            self.discard(path)  # somebody else removed it
            raise


RECENT_WRITES = RecentWrites()
"""Those of all stores of this process: many are opened for one root."""


def _read_again(
    read: Callable[[], _T],
    passing: tuple[type[Exception], ...],
    retry_seconds: float,
    uri: Callable[[], str],
) -> _T:
    deadline = time.monotonic() + retry_seconds
    for attempt in range(TRIES):
        try:
            return read()
        except passing as error:
            wait = wait_seconds(attempt)
            if attempt + 1 == TRIES or time.monotonic() + wait > deadline:
                raise
            log.warning("%s is read again: %s", uri(), error)
            time.sleep(wait)
    raise AssertionError("unreachable")
