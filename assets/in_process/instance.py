"""A Dagster instance in memory, for runs that nobody looks up later.

Dagster's storages in memory are SQLite databases to which they connect anew, with two settings, for
each of some fifty looks and events of a run. That was a quarter of what Dagster costs a small
query; here each storage has one connection for all threads, one after the other. Dagster also loads
all of its migrations to note in a new database that none is needed; nobody migrates these.

As in `assets.executor`, `dagster._core` is what Dagster keeps to itself (`dagster>=1.13,<1.14`).
"""

import threading
import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
from dagster._core.instance.types import InstanceType
from dagster._core.launcher.sync_in_memory_run_launcher import SyncInMemoryRunLauncher
from dagster._core.run_coordinator import DefaultRunCoordinator
from dagster._core.storage.event_log import InMemoryEventLogStorage
from dagster._core.storage.event_log.schema import SqlEventLogStorageMetadata
from dagster._core.storage.noop_compute_log_manager import NoOpComputeLogManager
from dagster._core.storage.root import TemporaryLocalArtifactStorage
from dagster._core.storage.runs import InMemoryRunStorage
from dagster._core.storage.runs.schema import InstanceInfo, RunStorageSqlMetadata
from dagster._core.storage.sqlite import create_in_memory_conn_string
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.pool import NullPool, StaticPool


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
        # Instead of Dagster's own, which also notes the revision of the schema.
        self._engine = create_engine(
            create_in_memory_conn_string(f"runs-{uuid.uuid4()}"), poolclass=NullPool
        )
        self._held_conn = self._engine.connect()
        with self._held_conn.begin():
            RunStorageSqlMetadata.create_all(self._held_conn)
            InstanceInfo.create(self._held_conn, checkfirst=True)
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
        # As above.
        self._inst_data = None
        self._engine = create_engine(
            create_in_memory_conn_string(f"events-{uuid.uuid4()}"), poolclass=NullPool
        )
        self._handlers = defaultdict(set)
        self._storage_id = 0
        self._db_lock = threading.Lock()
        self._held_conn = self._engine.connect()
        with self._held_conn.begin():
            SqlEventLogStorageMetadata.create_all(self._held_conn)
        self._database = _Database(self._engine)

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        with self._database.transaction() as connection:
            yield connection

    def dispose(self) -> None:
        self._database.close()
        super().dispose()
