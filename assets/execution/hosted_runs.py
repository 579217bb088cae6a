"""The Dagster runs whose steps all run in this process.

The end of this process is the end of such a run. Other executors give each step a process of its
own, so that nothing follows from the end of one of them.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class HostedRuns:
    """Ids of the runs that this process hosts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: set[str] = set()

    @contextmanager
    def hosting(self, run_id: str) -> Iterator[None]:
        """Host a run while the block runs."""
        with self._lock:
            self._runs.add(run_id)
        try:
            yield
        finally:
            with self._lock:
                self._runs.discard(run_id)

    def __contains__(self, run_id: str) -> bool:
        with self._lock:
            return run_id in self._runs


hosted_runs = HostedRuns()
"""Those of this process: the executor adds them, the engine marks them in storage."""
