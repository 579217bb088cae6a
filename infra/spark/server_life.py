"""How long a warm Spark Connect server stays: with its parent, or until nobody uses it for a time.

While a client holds the server's announcement it is in use, and does not end for want of use.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stagecoach.infra.spark.announcements import Published


class Life:
    """The life of a server, as its watcher sees it.

    Args:
        parent: The process that launched this one.
        ttl_seconds: How long the server stays without use; None if it ends with its parent.
    """

    def __init__(self, parent: int, ttl_seconds: float | None) -> None:
        self._parent = parent
        self._ttl_seconds = ttl_seconds
        self._used = time.monotonic()
        self._published: Published | None = None

    @property
    def is_starting(self) -> bool:
        """Whether a server without a parent is not announced yet: somebody may wait for that."""
        return self._ttl_seconds is not None and self._published is None

    @property
    def is_announced(self) -> bool:
        """Whether others know of the server."""
        return self._published is not None

    def announce(self, published: Published) -> None:
        """Take note that clients can find the server from now on."""
        self._used = time.monotonic()
        self._published = published

    def is_over(self) -> bool:
        """Whether the server should end; if it is for want of use, no client finds it any more."""
        if self._ttl_seconds is None:
            return os.getppid() != self._parent
        if self._published is None:
            return False
        if self._published.is_withdrawn():
            return True
        if self._published.is_in_use():
            self._used = time.monotonic()
            return False
        is_late = time.monotonic() - self._used >= self._ttl_seconds
        return is_late and self._published.withdraw_if_unused()

    def end(self) -> None:
        """Withdraw the announcement, if there is one."""
        if self._published is not None:
            self._published.withdraw()
