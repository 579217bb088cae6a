"""Cancels the work that a run has started elsewhere when the run is interrupted.

Steps register callbacks while they work (cancel these Spark jobs, interrupt that query). Signals
reach the main thread only, and steps are other threads; so the main thread calls each of them when
the run is interrupted, again and again until its step ends.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

CancelCallback = Callable[[], None]

logger = logging.getLogger(__name__)


CANCEL_AGAIN_SECONDS = 0.25


class TimeLimit:
    """Whether a step took longer than it may.

    Args:
        seconds: How long that is; None for as long as it takes.
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self.exceeded = False

    @contextmanager
    def over(self, callback: CancelCallback) -> Iterator[None]:
        """Call `callback`, again and again, when the block runs for longer than the limit."""
        if self.seconds is None:
            yield
            return
        done = threading.Event()
        watcher = threading.Thread(
            target=self._watch, args=(self.seconds, done, callback), name="time-limit", daemon=True
        )
        watcher.start()
        try:
            yield
        finally:
            done.set()

    def _watch(self, seconds: float, done: threading.Event, callback: CancelCallback) -> None:
        if done.wait(seconds):
            return
        self.exceeded = True
        while not done.is_set():
            # The step may be between two jobs, where there is nothing to cancel yet.
            _call("over its time limit", callback)
            done.wait(CANCEL_AGAIN_SECONDS)


class CancelRegistry:
    """Cancel callbacks of the runs of this process, by run id."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: dict[str, list[CancelCallback]] = {}
        self._cancelled: set[str] = set()

    @contextmanager
    def on_cancel(self, run_id: str, callback: CancelCallback) -> Iterator[None]:
        """Have `callback` called if the run is cancelled while the block runs.

        It may be called more than once. If the run was cancelled before, it is called at once: a
        step that was about to start work is not left behind.
        """
        with self._lock:
            self._callbacks.setdefault(run_id, []).append(callback)
            late = run_id in self._cancelled
        if late:
            _call(run_id, callback)
        try:
            yield
        finally:
            with self._lock:
                remaining = self._callbacks[run_id]
                remaining.remove(callback)
                if not remaining:
                    del self._callbacks[run_id]

    def cancel(self, run_id: str) -> None:
        """Call all callbacks of the run; a failing one is logged and stops no other."""
        with self._lock:
            self._cancelled.add(run_id)
            callbacks = list(self._callbacks.get(run_id, ()))
        for callback in callbacks:
            _call(run_id, callback)

    def is_cancelled(self, run_id: str) -> bool:
        """Whether the run was cancelled; long steps without a Spark job may poll it."""
        with self._lock:
            return run_id in self._cancelled

    def forget(self, run_id: str) -> None:
        """Drop what is known of a run that has ended."""
        with self._lock:
            self._cancelled.discard(run_id)


def _call(run_id: str, callback: CancelCallback) -> None:
    try:
        callback()
    except Exception:  # the other jobs of the run must be cancelled all the same
        logger.warning("run %s: a cancel callback failed", run_id, exc_info=True)


cancel_registry = CancelRegistry()
"""The registry of this process: the executor cancels through it, steps register with it."""
