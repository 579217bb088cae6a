"""Starts Spark in a thread while the process that will need it does something else.

Nothing waits for it here: `get_session` does, and raises what it fails with.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING

from stagecoach.infra.host.processes import descendants, send_signal

if TYPE_CHECKING:
    from stagecoach.infra.config.settings import EngineSettings

_POLL_SECONDS = 0.05
_ABANDON_SECONDS = 3.0


class EarlyStart:
    """A session that is being started.

    Args:
        settings: Those of the session.
    """

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._is_new = False
        self._earlier = frozenset(descendants(os.getpid()))
        # A daemon: it must not keep a process alive that ends before Spark is there.
        self._thread = threading.Thread(target=self._start, name="spark", daemon=True)
        self._thread.start()

    def abandon(self) -> None:
        """End what has been started; the process turns out not to need it.

        All children that this process has got since then are killed.
        """
        deadline = time.monotonic() + _ABANDON_SECONDS
        # A JVM that was about to be started is found in one of the next rounds.
        while self._thread.is_alive() and time.monotonic() < deadline:
            new = set(descendants(os.getpid())).difference(self._earlier)
            send_signal(new, signal.SIGKILL)
            self._thread.join(_POLL_SECONDS)
        if not self._thread.is_alive():
            from stagecoach.infra.spark.session import forget_failure, stop_sessions

            forget_failure(self._settings)
            if self._is_new:
                stop_sessions()

    def _start(self) -> None:
        # Imports pyspark, for which the process need not wait.
        from stagecoach.infra.spark.session import prepare_session

        self._is_new = prepare_session(self._settings)
