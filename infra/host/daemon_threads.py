"""Threads that are used again, and that keep no process alive.

pyspark connects each thread to the JVM anew, which takes 3 ms of a small stage. The threads of
`concurrent.futures` are used again, too, but a process waits for these when it ends, however long
their work takes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextvars import Context
from queue import SimpleQueue

IDLE = "idle"
"""The name of a thread that has nothing to do."""

Work = Callable[[], None]


class DaemonThreads:
    """Runs work in threads: in one that is idle, else in a new one.

    Args:
        max_idle: How many threads may wait for work; those beyond end with theirs.
    """

    def __init__(self, max_idle: int) -> None:
        self._max_idle = max_idle
        self._forget()
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """Begin without threads: a forked process has none of its parent's."""
        self._lock = threading.Lock()
        self._idle: list[SimpleQueue[tuple[str, Work]]] = []

    def start(self, name: str, work: Work) -> None:
        """Run work in a thread.

        Args:
            name: Of the thread while it does this.
            work: What to do; it must not raise. It begins in an empty context, as in a new thread.
        """
        with self._lock:
            inbox = self._idle.pop() if self._idle else None
        if inbox is None:
            inbox = SimpleQueue()
            threading.Thread(target=self._serve, args=(inbox,), name=name, daemon=True).start()
        inbox.put((name, work))

    def _serve(self, inbox: SimpleQueue[tuple[str, Work]]) -> None:
        thread = threading.current_thread()
        while True:
            thread.name, work = inbox.get()
            Context().run(work)
            del work  # and all that it holds
            thread.name = IDLE
            with self._lock:
                if len(self._idle) >= self._max_idle:
                    return
                self._idle.append(inbox)
