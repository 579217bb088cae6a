"""Who uses the Spark of this process: it is stopped when the last of them lets go of it.

Sessions of the public API share one Spark. Closing one of them must not end the queries of another.
"""

from __future__ import annotations

import threading

_lock = threading.Lock()
_held: set[SparkLease] = set()


class SparkLease:
    """Keeps the Spark of this process from being stopped until it is released."""

    def __init__(self) -> None:
        with _lock:
            _held.add(self)

    def release(self) -> None:
        """Let go of Spark, and stop it unless somebody else uses it; a second call does nothing."""
        # Imports pyspark, which who takes a lease need not wait for.
        from stagecoach.infra.spark.session import stop_sessions

        with _lock:
            if self not in _held:
                return
            _held.remove(self)
            if not _held:
                stop_sessions()
