"""The session that statements are planned with: one for all, made anew now and then.

A session keeps what it has read of tables, so that one planning sees one state. A server lives for
weeks, so it opens the catalog file again when the session is older than a few seconds: new tables
and columns are seen, and a planning that goes on keeps the session that it began with.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from stagecoach.api.session import Session


class Sessions:
    """Gives a session that is not old.

    Args:
        open_session: Makes one.
        seconds: How old it may be.
    """

    def __init__(self, open_session: Callable[[], Session], seconds: float = 10.0) -> None:
        self._open = open_session
        self._seconds = seconds
        self._lock = threading.Lock()
        self._session = open_session()
        self._opened = time.monotonic()

    def current(self, seconds: float | None = None) -> Session:
        """Return a session that is at most that old.

        Args:
            seconds: How old it may be; as the server has it by default.

        Raises:
            CatalogError: The catalog file has changed and cannot be used any more.
        """
        limit = self._seconds if seconds is None else seconds
        with self._lock:
            if time.monotonic() - self._opened >= limit:
                opened = self._open()
                opened.take_plans(self._session)
                self._session = opened
                self._opened = time.monotonic()
            return self._session
