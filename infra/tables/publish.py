"""Publishing a result: in, the committed output of a head stage; out, a new version of a table.

    fingerprint published already? ─▶ done
        │ no
    map files ─▶ one Spark job ─▶ Parquet files ─▶ commit ─▶ hint

Driver code, DataFrame API only. A small result is written by this process, through the same
worker function: a Spark job would take longer than the work.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from infra.engines.errors import StageCanceledError
from infra.errors import ShuffleReadError, TaskFailedError
from infra.runtime.jobs import ProgressListener, job_tag, tagged_job, was_canceled
from infra.settings import EngineSettings
from infra.shuffle.commit import mark_lost
from infra.shuffle.manifest import Manifest
from infra.shuffle.reader import verify_files
from infra.storage import layout
from infra.storage.object_store import ObjectStore
from infra.tables.changes import TableChange, apply_change, is_published
from infra.tables.log import commit, new_token, read_current
from infra.tables.row_keys import PartitionWindow as PartitionWindow
from infra.tables.row_keys import RowKeys
from infra.tables.target import PublishTarget as PublishTarget
from infra.tables.target import check_publishable as check_publishable
from infra.tables.target import checked_columns, table_columns, target_row_keys
from infra.tables.version import PublishError as PublishError
from infra.tables.version import TableFile, TableVersion
from infra.tables.write_task import WriteReport, WriteTask, run_write_task
from planner.types import Field

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from infra.runtime.context import StageContext, StageResult

log = logging.getLogger(__name__)

DRIVER_BYTES = 8 << 20
"""Largest stored result that this process writes itself."""
MIN_TASK_BYTES = 64 << 20
"""Stored bytes below which a task is not split."""
_ANY_BYTES = 1 << 62
_REPORT_SCHEMA = "task bigint, report string"


@dataclass(frozen=True, kw_only=True)
class Published:
    """What a publication came to.

    Attributes:
        version: The version that holds the result.
        files: The files of this result.
        partition_rows: Rows by partition key; the one key is None without partitions.
        num_rows: Rows of this result.
        num_bytes: Size of its files in bytes.
        reused: Whether it was published already.
        seconds: Time that it took.
    """

    version: TableVersion
    files: tuple[TableFile, ...]
    partition_rows: Mapping[str | None, int] = field(default_factory=dict)
    num_rows: int = 0
    num_bytes: int = 0
    reused: bool = False
    seconds: float = 0.0


def publish_stage(context: StageContext, result: StageResult, target: PublishTarget) -> Published:
    """Publish what the head stage of a run came to; see `publish`.

    Raises:
        PublishError: The stage has no output, or see `publish`.
    """
    from infra.runtime.adaptive.requested import asks_for_tasks  # the planner with it

    if result.manifest is None:
        raise PublishError(f"query '{context.graph.query}' has no result to publish; run it again")
    return publish(
        result.manifest,
        result.columns or context.graph.result,
        target,
        store=context.store,
        settings=context.settings,
        spark=context.session,
        run_id=context.run_id,
        progress=context.progress,
        keeps_files=asks_for_tasks(context.graph.head),
    )


def publish(
    manifest: Manifest,
    columns: Sequence[Field],
    target: PublishTarget,
    *,
    store: ObjectStore,
    settings: EngineSettings,
    spark: Callable[[], SparkSession],
    run_id: str = "",
    progress: ProgressListener | None = None,
    keeps_files: bool = False,
) -> Published:
    """Write a head stage's output as Parquet and commit it as a version of a table.

    Args:
        manifest: The committed output.
        columns: The result's columns: Spark's names and types, in its order.
        target: The table.
        store: The storage root.
        settings: The knobs of a run.
        spark: Gives the Spark session if one is needed.
        run_id: The run.
        progress: Told of completed tasks, from another thread.
        keeps_files: Whether each map file becomes a file of the table, whatever its size.

    Returns:
        The version; one that is there already if this result has been published before.

    Raises:
        PublishError: The columns, the rows or the table do not fit the target.
        ShuffleReadError: The stage's output is lost; says what to run again.
        TaskFailedError: Spark failed; a retry may help.
        StorageError: The store failed.
    """
    started = time.perf_counter()
    columns = checked_columns(columns, target)
    row_keys = target_row_keys(columns, target)
    change = _new_change(manifest, columns, target, run_id)
    current = read_current(store, target.table)
    if current is not None and is_published(current, change):
        return _reused(current, change, started)
    apply_change(current, change)  # refuses what does not fit before anything is written
    if keeps_files:
        ranges, target_bytes = _single_files(manifest), _ANY_BYTES
    else:
        target_bytes = target.target_file_bytes
        ranges = list(_file_ranges(manifest, target_bytes, settings))
    tasks = list(
        _tasks(manifest, columns, target, row_keys, change.token, store, ranges, target_bytes)
    )
    reports = _run(tasks, manifest, store, settings, spark, run_id, progress)
    change = _with_files(change, [file for report in reports for file in report.files])
    return _commit(store, change, started)


def _new_change(
    manifest: Manifest, columns: tuple[Field, ...], target: PublishTarget, run_id: str
) -> TableChange:
    """The change of a table, without files yet."""
    return TableChange(
        table=target.table,
        mode=target.mode,
        token=new_token(),
        committed_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        fingerprint=manifest.fingerprint,
        rows=dict.fromkeys(target.partition_keys or (None,), 0),
        columns=table_columns(columns, target.partition_by),
        partition_by=target.partition_by,
        keep_versions=target.keep_versions,
        run_id=run_id,
    )


def _commit(store: ObjectStore, change: TableChange, started: float) -> Published:
    """Commit written files, or delete them where the table does not take them."""
    try:
        committed = commit(store, change)
    except PublishError:
        _delete(store, change)
        raise
    if committed.reused:
        log.info("table %s: another run has just published the same result", change.table)
        _delete(store, change)
        return _reused(committed.version, change, started)
    published = _published(committed.version, change, started)
    log.info(
        "table %s: version %d, %d rows in %d files",
        change.table,
        committed.version.number,
        published.num_rows,
        len(published.files),
    )
    return published


def _tasks(
    manifest: Manifest,
    columns: tuple[Field, ...],
    target: PublishTarget,
    row_keys: RowKeys | None,
    token: str,
    store: ObjectStore,
    ranges: Sequence[tuple[int, int]],
    target_bytes: int,
) -> Iterator[WriteTask]:
    for index, (first, end) in enumerate(ranges):
        yield WriteTask(
            store=store.to_dict(),
            fingerprint=manifest.fingerprint,
            manifest_hash=manifest.manifest_hash,
            stage=manifest.stage_name,
            first_file=first,
            end_file=end,
            task_index=index,
            table=target.table,
            token=token,
            columns=columns,
            partition_by=target.partition_by,
            partition_key=target.partition_keys[0] if target.partition_keys else None,
            row_keys=row_keys,
            target_bytes=target_bytes,
            writes_empty=index == 0 and not manifest.num_rows,
        )


def _single_files(manifest: Manifest) -> list[tuple[int, int]]:
    """A range for each map file; one that is empty where there is no file."""
    count = len(manifest.files)
    return [(place, place + 1) for place in range(count)] or [(0, 0)]


def _file_ranges(
    manifest: Manifest, target_bytes: int, settings: EngineSettings
) -> Iterator[tuple[int, int]]:
    """Neighbouring map files of about equal bytes together; the order of rows is theirs.

    A map file is the smallest unit, because the reader finds no row inside of one.
    """
    total = manifest.num_bytes
    small = min(MIN_TASK_BYTES, target_bytes)
    count = -(-total // target_bytes)
    if total > DRIVER_BYTES and total // small > count:
        from infra.spark.session import task_slots

        count = max(count, min(task_slots(settings), total // small))
    share = total / max(count, 1)
    first, taken = 0, 0
    for position, file in enumerate(manifest.files):
        taken += file.num_bytes
        if count > 1 and taken >= share and position + 1 < len(manifest.files):
            yield first, position + 1
            first, taken = position + 1, 0
    yield first, len(manifest.files)


def _run(
    tasks: Sequence[WriteTask],
    manifest: Manifest,
    store: ObjectStore,
    settings: EngineSettings,
    spark: Callable[[], SparkSession],
    run_id: str,
    progress: ProgressListener | None,
) -> list[WriteReport]:
    if manifest.num_bytes <= DRIVER_BYTES:
        reports = [run_write_task(task) for task in tasks]
    else:
        reports = _run_on_spark(tasks, manifest, settings, spark(), run_id, progress)
    for report in reports:
        error = report.error(manifest.stage_name)
        if isinstance(error, ShuffleReadError):
            _forget_lost(store, manifest)
        if error is not None:
            raise error
    return reports


def _run_on_spark(
    tasks: Sequence[WriteTask],
    manifest: Manifest,
    settings: EngineSettings,
    spark: SparkSession,
    run_id: str,
    progress: ProgressListener | None,
) -> list[WriteReport]:
    """One Spark job, one Spark task each."""
    from infra.engines.spark import SPARK_ERRORS, explain_error

    payload = [task.to_dict() for task in tasks]
    count = len(tasks)
    tag = job_tag(run_id, manifest.stage_id)
    description = f"{manifest.stage_name}: publish {tasks[0].table}"
    try:
        with tagged_job(spark, tag, description, progress, settings.progress_seconds):
            frame = spark.range(0, count, 1, count).mapInArrow(
                _write_function(payload), _REPORT_SCHEMA
            )
            rows = frame.collect()
    except SPARK_ERRORS as error:
        if was_canceled(tag):
            raise StageCanceledError(f"{manifest.stage_name} was canceled") from error
        explained = explain_error(error, manifest.query, manifest.stage_name)
        # Whatever Spark calls it, there is no SQL of the user's in this job.
        raise TaskFailedError(manifest.stage_name, None, str(explained)) from error
    reports = [WriteReport.from_dict(json.loads(row["report"])) for row in rows]
    return sorted(reports, key=lambda report: report.task_index)


def _write_function(
    payload: list[dict[str, Any]],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    # A nested function is pickled by value, so executors do not import this module.
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        from infra.tables.write_task import WriteTask, run_write_task

        context = TaskContext.get()
        attempt = 0 if context is None else context.attemptNumber()
        for batch in batches:
            for index in batch.column(0).to_pylist():
                report = run_write_task(WriteTask.from_dict(payload[index]), attempt)
                rows = {"task": [index], "report": [json.dumps(report.to_dict())]}
                yield pa.RecordBatch.from_pydict(rows)

    return write


def _forget_lost(store: ObjectStore, manifest: Manifest) -> None:
    """Undo the commit of a damaged output: run again, the stage recomputes it."""
    try:
        verify_files(store, manifest)
    except ShuffleReadError:
        mark_lost(store, manifest.fingerprint, manifest.manifest_hash)


def _with_files(change: TableChange, files: Sequence[TableFile]) -> TableChange:
    """The change with its files, and the rows in them by partition key."""
    rows: Counter[str | None] = Counter(dict(change.rows))
    for file in files:
        rows[file.partition_key] += file.num_rows
    marked = tuple(replace(file, fingerprint=change.fingerprint) for file in files)
    return replace(change, files=marked, rows=dict(rows))


def _delete(store: ObjectStore, change: TableChange) -> None:
    """Remove files that no version will ever name; gc would find them too."""
    store.delete([layout.table_file(change.table, file.path) for file in change.files])


def _reused(version: TableVersion, change: TableChange, started: float) -> Published:
    return replace(_published(version, change, started), reused=True)


def _published(version: TableVersion, change: TableChange, started: float) -> Published:
    """What a version holds of a change's result."""
    files = tuple(
        file
        for file in version.files
        if file.fingerprint == change.fingerprint and file.partition_key in change.rows
    )
    rows = {
        part.partition_key: part.num_rows
        for part in version.parts
        if part.fingerprint == change.fingerprint and part.partition_key in change.rows
    }
    return Published(
        version=version,
        files=files,
        partition_rows=rows,
        num_rows=sum(rows.values()),
        num_bytes=sum(file.num_bytes for file in files),
        seconds=time.perf_counter() - started,
    )
