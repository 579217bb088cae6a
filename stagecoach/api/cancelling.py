"""Cancels a query from another thread than the one that runs it."""

from __future__ import annotations

import threading
import uuid

from stagecoach.api.errors import QueryCancelledError

_AGAIN_SECONDS = 0.25


class Cancellation:
    """The handle of one query: made before it runs, and closed when it has ended.

    Attributes:
        run_id: Id of its run.
    """

    def __init__(self) -> None:
        self.run_id = str(uuid.uuid4())
        self._is_asked = threading.Event()
        self._has_ended = threading.Event()

    @property
    def is_asked(self) -> bool:
        """Whether somebody has asked to cancel the query."""
        return self._is_asked.is_set()

    def cancel(self) -> None:
        """Have the query end soon with an error; does nothing if it has ended."""
        if not self._is_asked.is_set():
            self._is_asked.set()
            threading.Thread(target=self._work, name="cancel", daemon=True).start()

    def check(self) -> None:
        """Raise if the query is to end.

        Raises:
            QueryCancelledError: Somebody has cancelled it.
        """
        if self.is_asked:
            raise QueryCancelledError("the query was cancelled")

    def end(self) -> None:
        """Note that the query has ended."""
        self._has_ended.set()

    def _work(self) -> None:
        """Cancel the run's jobs until it has ended: it may be between two of them."""
        from stagecoach.assets.execution.cancellation import cancel_registry

        while True:
            cancel_registry.cancel(self.run_id)
            if self._has_ended.wait(_AGAIN_SECONDS):
                break
        cancel_registry.forget(self.run_id)
