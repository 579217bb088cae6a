"""Lets a bounded number of statements compute or be planned, and a bounded number wait for it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stagecoach.flight.errors import BusyError


class Gate:
    """A queue before a number of slots: first come, first served.

    Args:
        running: Number of slots.
        waiting: Most that wait.
    """

    def __init__(self, running: int, waiting: int) -> None:
        self._running = running
        self._waiting = waiting
        self._free = running
        self._queue: deque[threading.Event] = deque()
        self._lock = threading.Lock()

    @property
    def num_running(self) -> int:
        """Slots that are taken."""
        with self._lock:
            return self._running - self._free

    @property
    def num_waiting(self) -> int:
        """How many wait."""
        with self._lock:
            return len(self._queue)

    def enter(self, check: Callable[[], None], seconds: float = 0.1) -> None:
        """Wait for a slot and take it.

        Args:
            check: Called now and then; whatever it raises ends the wait.
            seconds: How often.

        Raises:
            BusyError: Too many wait already.
        """
        turn = threading.Event()
        with self._lock:
            if self._free and not self._queue:
                self._free -= 1
                return
            if len(self._queue) >= self._waiting:
                raise BusyError(
                    f"the server is busy: {self._running} statements run and {self._waiting} wait; "
                    "try again later"
                )
            self._queue.append(turn)
        try:
            while not turn.wait(seconds):
                check()
            check()
        except BaseException:
            with self._lock:
                if turn.is_set():
                    self._pass_on()
                else:
                    self._queue.remove(turn)
            raise

    @contextmanager
    def passed(self) -> Iterator[None]:
        """Wait for a slot and hold it while the block runs.

        Raises:
            BusyError: Too many wait already.
        """
        self.enter(lambda: None)
        try:
            yield
        finally:
            self.leave()

    def leave(self) -> None:
        """Give the slot back."""
        with self._lock:
            self._pass_on()

    def _pass_on(self) -> None:
        if self._queue:
            self._queue.popleft().set()
        else:
            self._free += 1
