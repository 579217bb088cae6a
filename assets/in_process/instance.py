"""A Dagster instance of plain objects, for runs that nobody looks up later.

Dagster's storages in memory are SQLite databases: each event and each look at a run becomes SQL and
JSON and comes back from it, which was half of what Dagster costs a small query, and making the
tables took as long again. Here a run is an object and its events are a list. What a run in this
process does not ask of a storage, these refuse.

As in `assets.execution.executor`, `dagster._core` is what Dagster keeps to itself
(`dagster>=1.13,<1.14`).
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import NoReturn

import dagster as dg
from dagster._core.definitions.job_definition import JobDefinition
from dagster._core.errors import DagsterRunAlreadyExists
from dagster._core.event_api import EventLogRecord
from dagster._core.events import EVENT_TYPE_TO_PIPELINE_RUN_STATUS, DagsterEvent
from dagster._core.events.log import EventLogEntry
from dagster._core.execution.plan.plan import ExecutionPlan
from dagster._core.instance.types import InstanceType
from dagster._core.launcher.sync_in_memory_run_launcher import SyncInMemoryRunLauncher
from dagster._core.run_coordinator import DefaultRunCoordinator
from dagster._core.storage.dagster_run import (
    DagsterRun,
    JobBucket,
    RunRecord,
    RunsFilter,
    TagBucket,
)
from dagster._core.storage.event_log.base import AssetRecord, EventLogConnection
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage
from dagster._core.storage.noop_compute_log_manager import NoOpComputeLogManager
from dagster._core.storage.root import TemporaryLocalArtifactStorage
from dagster._core.storage.runs.sql_run_storage import SqlRunStorage
from sqlalchemy import Connection

_Handler = Callable[[EventLogEntry, str], None]


def ephemeral_instance() -> dg.DagsterInstance:
    """Return an instance for `execute_in_process`, as `DagsterInstance.ephemeral()` does."""
    return _Instance(
        instance_type=InstanceType.EPHEMERAL,
        local_artifact_storage=_Artifacts(),
        run_storage=_Runs(),
        event_storage=_Events(),
        compute_log_manager=NoOpComputeLogManager(),
        run_coordinator=DefaultRunCoordinator(),
        run_launcher=SyncInMemoryRunLauncher(),
    )


class _Artifacts(TemporaryLocalArtifactStorage):
    """A folder that is made once it is asked for, by several threads maybe.

    Of two that Dagster's own makes at once, one is removed while its thread uses it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    @property
    def base_dir(self) -> str:
        """The folder."""
        with self._lock:
            return str(super().base_dir)


class _Instance(dg.DagsterInstance):
    """An instance whose runs have no snapshots of their job and plan: nobody opens them later."""

    def create_run_for_job(
        self,
        job_def: JobDefinition,
        execution_plan: ExecutionPlan | None = None,
        run_id: str | None = None,
        run_config: Mapping[str, object] | None = None,
        *args: object,
        tags: Mapping[str, str] | None = None,
        asset_selection: object = None,
    ) -> DagsterRun:
        """Create the run of all of a job."""
        if args or asset_selection or execution_plan is None:
            raise NotImplementedError("a run in this process is one of a whole job")
        return self.create_run(
            job_name=job_def.name,
            run_id=run_id,
            run_config=run_config,
            status=None,
            tags=tags,
            root_run_id=None,
            parent_run_id=None,
            step_keys_to_execute=execution_plan.step_keys_to_execute,
            execution_plan_snapshot=None,
            job_snapshot=None,
            parent_job_snapshot=None,
            asset_selection=None,
            asset_check_selection=None,
            resolved_op_selection=None,
            op_selection=None,
            remote_job_origin=None,
            job_code_origin=None,
            asset_graph=job_def.asset_layer.asset_graph,
        )


def _refuse() -> NoReturn:
    raise NotImplementedError("runs in this process keep neither SQL nor anything about assets")


class _Runs(SqlRunStorage):
    """Runs by their ids."""

    def __init__(self) -> None:
        self._records: dict[str, RunRecord] = {}
        self._lock = threading.Lock()

    def add_run(self, dagster_run: DagsterRun) -> DagsterRun:
        now = datetime.now(UTC)
        record = RunRecord(
            storage_id=len(self._records) + 1,
            dagster_run=dagster_run,
            create_timestamp=now,
            update_timestamp=now,
        )
        with self._lock:
            if self._records.setdefault(dagster_run.run_id, record) is not record:
                raise DagsterRunAlreadyExists(f"there is a run {dagster_run.run_id} already")
        return dagster_run

    def delete_run(self, run_id: str) -> None:
        with self._lock:
            self._records.pop(run_id, None)

    def handle_run_event(
        self, run_id: str, event: DagsterEvent, update_timestamp: datetime | None = None
    ) -> None:
        status = EVENT_TYPE_TO_PIPELINE_RUN_STATUS.get(event.event_type)
        with self._lock:
            record = self._records.get(run_id)
            if record is None or status is None:
                return
            self._records[run_id] = RunRecord(
                storage_id=record.storage_id,
                dagster_run=record.dagster_run.with_status(status),
                create_timestamp=record.create_timestamp,
                update_timestamp=update_timestamp or datetime.now(UTC),
            )

    def get_run_records(
        self,
        filters: RunsFilter | None = None,
        limit: int | None = None,
        order_by: str | None = None,
        ascending: bool = False,
        cursor: str | None = None,
        bucket_by: JobBucket | TagBucket | None = None,
    ) -> Sequence[RunRecord]:
        ids = filters.run_ids if filters is not None else None
        if not ids or filters != RunsFilter(run_ids=ids):
            _refuse()
        if order_by or ascending or cursor or bucket_by:
            _refuse()
        with self._lock:
            found = [self._records[i] for i in ids if i in self._records]
        return found[:limit]

    def connect(self) -> AbstractContextManager[Connection]:
        _refuse()

    def upgrade(self) -> None:
        """There is nothing to upgrade."""


class _Events(SqlEventLogStorage):
    """The events of each run, in the order in which they came."""

    def __init__(self) -> None:
        self._records: defaultdict[str, list[EventLogRecord]] = defaultdict(list)
        self._lock = threading.Lock()

    @property
    def is_persistent(self) -> bool:
        return False

    @property
    def supports_global_concurrency_limits(self) -> bool:
        return False

    @property
    def asset_records_have_last_observation(self) -> bool:
        return True  # so that nothing else is asked for it

    def store_event(self, event: EventLogEntry) -> None:
        with self._lock:
            records = self._records[event.run_id]
            records.append(EventLogRecord(len(records) + 1, event))

    def get_records_for_run(
        self,
        run_id: str,
        cursor: str | None = None,
        of_type: object = None,
        limit: int | None = None,
        ascending: bool = True,
    ) -> EventLogConnection:
        if cursor or of_type or limit or not ascending:
            _refuse()
        with self._lock:
            found = list(self._records.get(run_id, ()))
        return EventLogConnection(found, cursor="", has_more=False)

    def get_asset_records(
        self, asset_keys: Sequence[dg.AssetKey] | None = None
    ) -> Sequence[AssetRecord]:
        """None: a stage knows the versions of its inputs by itself."""
        return ()

    def delete_events(self, run_id: str) -> None:
        with self._lock:
            self._records.pop(run_id, None)

    def run_connection(self, run_id: str | None = None) -> AbstractContextManager[Connection]:
        _refuse()

    def index_connection(self) -> AbstractContextManager[Connection]:
        _refuse()

    def has_table(self, table_name: str) -> bool:
        return False

    def watch(self, run_id: str, cursor: str | None, callback: _Handler) -> None:
        _refuse()

    def end_watch(self, run_id: str, handler: _Handler) -> None:
        _refuse()

    def upgrade(self) -> None:
        """There is nothing to upgrade."""
