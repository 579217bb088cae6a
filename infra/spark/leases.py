"""Who uses the Spark of this process: it is stopped when the last of them lets go of it.

Sessions of the public API share one Spark. Closing one of them must not end the queries of another.
"""

from __future__ import annotations

import threading

_lock = threading.Lock()
_held: set[SparkLease] = set()


class SparkLease:
    """Keeps the Spark of this process from being stopped while it is held."""

    @property
    def is_held(self) -> bool:
        """Whether it has been taken and not released."""
        return self in _held

    def take(self) -> None:
        """Use Spark from now on; whoever holds the lease already goes on holding it."""
        with _lock:
            _held.add(self)

    def release(self) -> None:
        """Stop using Spark, and stop it unless somebody else uses it; no effect if not held."""
        # Imports pyspark, which who takes a lease need not wait for.
        from stagecoach.infra.spark.session import stop_sessions

        with _lock:
            if self not in _held:
                return
            _held.remove(self)
            if not _held:
                stop_sessions()
