"""A Dagster instance in memory, for runs that nobody looks up later.

Dagster's storages in memory are SQLite databases to which they connect anew, with two settings, for
each of some fifty looks and events of a run. That was a quarter of what Dagster costs a small
query; here each storage has one connection for all threads, one after the other.

As in `assets.executor`, `dagster._core` is what Dagster keeps to itself (`dagster>=1.13,<1.14`).
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
from dagster._core.instance.types import InstanceType
from dagster._core.launcher.sync_in_memory_run_launcher import SyncInMemoryRunLauncher
from dagster._core.run_coordinator import DefaultRunCoordinator
from dagster._core.storage.event_log import InMemoryEventLogStorage
from dagster._core.storage.noop_compute_log_manager import NoOpComputeLogManager
from dagster._core.storage.root import TemporaryLocalArtifactStorage
from dagster._core.storage.runs import InMemoryRunStorage
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.pool import StaticPool


def ephemeral_instance() -> dg.DagsterInstance:
    """Return what `DagsterInstance.ephemeral()` does, with quicker storages."""
    return dg.DagsterInstance(
        instance_type=InstanceType.EPHEMERAL,
        local_artifact_storage=TemporaryLocalArtifactStorage(),
        run_storage=_Runs(),
        event_storage=_Events(),
        compute_log_manager=NoOpComputeLogManager(),
        run_coordinator=DefaultRunCoordinator(),
        run_launcher=SyncInMemoryRunLauncher(),
    )


class _Database:
    """One connection to a database in memory, for one transaction at a time.

    Args:
        engine: An engine of that database.
    """

    def __init__(self, engine: Engine) -> None:
        shared = create_engine(
            engine.url, poolclass=StaticPool, connect_args={"check_same_thread": False}
        )
        self._connection = shared.connect()
        self._connection.exec_driver_sql("PRAGMA foreign_keys=ON")
        self._connection.commit()
        self._lock = threading.RLock()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Yield the connection; within a transaction of the same thread, that one goes on."""
        with self._lock:
            if self._connection.in_transaction():
                yield self._connection
                return
            with self._connection.begin():
                yield self._connection

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
        self._connection.engine.dispose()


class _Runs(InMemoryRunStorage):
    def __init__(self) -> None:
        super().__init__()
        self._database = _Database(self._engine)

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        with self._database.transaction() as connection:
            yield connection

    def dispose(self) -> None:
        self._database.close()
        super().dispose()


class _Events(InMemoryEventLogStorage):
    def __init__(self) -> None:
        super().__init__()
        self._database = _Database(self._engine)

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        with self._database.transaction() as connection:
            yield connection

    def dispose(self) -> None:
        self._database.close()
        super().dispose()
