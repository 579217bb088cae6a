"""Keeps results that clients read safe from gc.

gc keeps what a run in progress has pinned. So a server takes part in the run whose result it hands
out: it begins there, as a re-execution of the run would, and ends when the tickets have expired and
nobody reads. On a local storage root gc notices the death of the server by its lock; elsewhere a
server that died counts as alive for a day.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from stagecoach.infra.errors import StorageError
from stagecoach.infra.runtime.records.run_marks import mark_begun, mark_ended
from stagecoach.infra.storage.object_store import ObjectStore

log = logging.getLogger(__name__)


@dataclass
class _Hold:
    """A mark in the folder of a run.

    Args:
        reader: Name of the mark.
        until: When the tickets expire, in seconds since 1970.
        streams: How many streams are open.
        is_begun: Whether the mark is there.
        lock: Held while it is made, which takes the storage a while.
    """

    reader: str
    until: float = 0.0
    streams: int = 0
    is_begun: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


class Holds:
    """The runs whose results this server holds.

    Args:
        store: The storage root.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        # A stream that the garbage collector closes gives its result back, at any moment.
        self._lock = threading.RLock()
        self._held: dict[str, _Hold] = {}

    def __len__(self) -> int:
        return len(self._held)

    def keep(self, run_id: str, until: float) -> None:
        """Hold the result of a run until then.

        Args:
            run_id: The run.
            until: Seconds since 1970.

        Raises:
            StorageError: The storage refused.
        """
        with self._lock:
            hold = self._held_or_new(run_id)
            hold.until = max(hold.until, until)
        self._begin(run_id, hold)  # who asks again after a failure tries again

    @contextmanager
    def reading(self, run_id: str) -> Iterator[None]:
        """Hold the result of a run while the block runs."""
        self.open_stream(run_id)
        try:
            yield
        finally:
            self.close_stream(run_id)

    def open_stream(self, run_id: str) -> None:
        """Hold the result of a run until `close_stream`.

        Raises:
            StorageError: The storage refused.
        """
        with self._lock:
            hold = self._held_or_new(run_id)
            hold.streams += 1
        try:
            self._begin(run_id, hold)
        except BaseException:
            self.close_stream(run_id)
            raise

    def close_stream(self, run_id: str) -> None:
        """End what `open_stream` began."""
        with self._lock:
            if (hold := self._held.get(run_id)) is not None:
                hold.streams -= 1

    def release(self, run_id: str) -> None:
        """Forget the tickets of a run; streams that are open go on."""
        with self._lock:
            if (hold := self._held.get(run_id)) is not None:
                hold.until = 0.0
        self.sweep()

    def sweep(self, now: float | None = None) -> None:
        """End the holds that nobody needs any more.

        Args:
            now: Seconds since 1970; the present by default.
        """
        now = time.time() if now is None else now
        with self._lock:
            over = {r: h for r, h in self._held.items() if h.streams <= 0 and h.until < now}
            for run_id in over:
                del self._held[run_id]
        self._end(over)

    def close(self) -> None:
        """End all holds."""
        with self._lock:
            over, self._held = self._held, {}
        self._end(over)

    def _held_or_new(self, run_id: str) -> _Hold:
        hold = self._held.get(run_id)
        if hold is None:
            # A name of its own each time: a reader that has ended does not begin again.
            hold = self._held[run_id] = _Hold(f"reader-{uuid.uuid4()}")
        return hold

    def _begin(self, run_id: str, hold: _Hold) -> None:
        """Make the mark, once; who needs it meanwhile waits."""
        with hold.lock:
            if hold.is_begun:
                return
            mark_begun(self._store, run_id, hold.reader, is_hosted=True)
            hold.is_begun = True

    def _end(self, over: dict[str, _Hold]) -> None:
        for run_id, hold in over.items():
            try:
                with hold.lock:  # it may be beginning
                    if hold.is_begun:
                        mark_ended(self._store, run_id, hold.reader)
            except StorageError:
                # The rows have been read; gc takes the reader for alive while this process lives.
                log.warning("the end of a read of run %s could not be marked", run_id)
