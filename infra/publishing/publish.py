"""Publishes a result: the committed output of a head stage becomes a new version of a table.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.errors import ShuffleReadError, StageCanceledError, TaskFailedError
from stagecoach.infra.formats.protocol import Access
from stagecoach.infra.formats.publishing import PartitionWindow as PartitionWindow
from stagecoach.infra.formats.publishing import PublishError as PublishError
from stagecoach.infra.formats.publishing import PublishTarget as PublishTarget
from stagecoach.infra.formats.publishing import (
    ResultWriter,
    StagingWriter,
    WritePlan,
    WrittenFile,
)
from stagecoach.infra.formats.registry import result_format, stored_formats
from stagecoach.infra.formats.staged_version import StagedVersion
from stagecoach.infra.formats.stored_version import StoredVersion
from stagecoach.infra.publishing.write_task import WriteReport, WriteTask, run_write_task
from stagecoach.infra.shuffle.commit import mark_lost
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.shuffle.reader import verify_files
from stagecoach.infra.spark.jobs import ProgressListener, job_tag, tagged_job, was_canceled
from stagecoach.infra.storage.forwarding import marked
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.types import Field

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.infra.runtime.stages.run import Run, StageResult

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

    version: StoredVersion
    files: tuple[WrittenFile, ...]
    partition_rows: Mapping[str | None, int] = field(default_factory=dict)
    num_rows: int = 0
    num_bytes: int = 0
    reused: bool = False
    seconds: float = 0.0


@dataclass(frozen=True)
class Staged:
    """A result that is written and waits until it is published.

    Args:
        version: What waits.
        writer: Publishes it.
        started: When it was begun, by the clock of `time.perf_counter`.
    """

    version: StagedVersion
    writer: StagingWriter
    started: float

    def publish(self) -> Published:
        """Make it visible to readers.

        Raises:
            StagedGoneError: It was discarded, or replaced by a later result.
            PublishError: The table does not take it any more; it stays staged.
            StorageError: The store failed.
        """
        self.writer.publish()
        reused = self.writer.reused
        return _published(self.writer, self.writer.version, self.started, reused=reused)


def publish_stage(context: Run, result: StageResult, target: PublishTarget) -> Published:
    """Publish what the head stage of a run came to; see `publish`.

    Raises:
        PublishError: The stage has no output, or see `publish`.
    """
    return _of_stage(context, result, target).publish()


def stage_result(context: Run, result: StageResult, target: PublishTarget) -> Staged | Published:
    """Stage what the head stage of a run came to; see `stage`.

    Raises:
        PublishError: The stage has no output, or see `stage`.
    """
    return _of_stage(context, result, target).stage()


def _of_stage(context: Run, result: StageResult, target: PublishTarget) -> _Publication:
    from stagecoach.infra.runtime.adaptive.requested import asks_for_tasks  # the planner with it

    if result.manifest is None:
        raise PublishError(f"query '{context.graph.query}' has no result to publish; run it again")
    return _Publication(
        manifest=result.manifest,
        columns=result.columns or context.graph.result,
        target=target,
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

    Returns:
        The version; one that is there already if this result has been published before.

    Raises:
        PublishError: The columns, the rows or the table do not fit the target.
        ShuffleReadError: The stage's output is lost; says what to run again.
        TaskFailedError: Spark failed; a retry may help.
        StorageError: The store failed.
    """
    return _Publication(
        manifest=manifest,
        columns=columns,
        target=target,
        store=store,
        settings=settings,
        spark=spark,
        run_id=run_id,
    ).publish()


def stage(
    manifest: Manifest,
    columns: Sequence[Field],
    target: PublishTarget,
    *,
    store: ObjectStore,
    settings: EngineSettings,
    spark: Callable[[], SparkSession],
    run_id: str = "",
) -> Staged | Published:
    """Write a head stage's output as `publish` does, but leave it invisible to readers.

    Args:
        manifest: The committed output.
        columns: The result's columns: Spark's names and types, in its order.
        target: The table, of a format that can stage.
        store: The storage root.
        settings: The knobs of a run.
        spark: Gives the Spark session if one is needed.
        run_id: The run.

    Returns:
        What waits, which an earlier run may have staged; a version if this result has been
        published before.

    Raises:
        PublishError: As of `publish`.
        ShuffleReadError: The stage's output is lost; says what to run again.
        TaskFailedError: Spark failed; a retry may help.
        StorageError: The store failed.
    """
    return _Publication(
        manifest=manifest,
        columns=columns,
        target=target,
        store=store,
        settings=settings,
        spark=spark,
        run_id=run_id,
    ).stage()


@dataclass(frozen=True, kw_only=True)
class _Publication:
    """One result on its way into a table; see `publish` for the attributes.

    Attributes:
        progress: Told of completed tasks, from another thread.
        keeps_files: Whether each map file becomes a file of the table, whatever its size.
    """

    manifest: Manifest
    columns: Sequence[Field]
    target: PublishTarget
    store: ObjectStore
    settings: EngineSettings
    spark: Callable[[], SparkSession]
    run_id: str = ""
    progress: ProgressListener | None = None
    keeps_files: bool = False

    def publish(self) -> Published:
        """Write the files and commit them."""
        started = time.perf_counter()
        writer = self._writer()
        if (there := writer.find_published()) is not None:
            return _published(writer, there, started, reused=True)
        self._write(writer)
        number = writer.publish()
        published = _published(writer, writer.version, started, reused=writer.reused)
        if not writer.reused:
            log.info(
                "table %s: version %d, %d rows in %d files",
                self.target.table,
                number,
                published.num_rows,
                len(published.files),
            )
        return published

    def stage(self) -> Staged | Published:
        """Write the files, unless an earlier run has, and leave them to wait."""
        started = time.perf_counter()
        item = result_format(self.target.format)
        if not item.can_stage:
            raise PublishError(f"tables of the format '{item.name}' have no staged versions")
        writer = cast("StagingWriter", self._writer())
        if (there := writer.find_published()) is not None:
            return _published(writer, there, started, reused=True)
        staged = writer.find_staged()
        if staged is None:
            self._write(writer)
            staged = writer.stage_commit()
        if staged is None:
            writer.publish()  # another run has published the same rows meanwhile
            return _published(writer, writer.version, started, reused=True)
        return Staged(staged, writer, started)

    def _writer(self) -> ResultWriter:
        _check_format(self.store, self.target)
        return result_format(self.target.format).result_writer(
            self.store,
            self.target,
            self.columns,
            fingerprint=self.manifest.fingerprint,
            run_id=self.run_id,
        )

    def _write(self, writer: ResultWriter) -> None:
        """Have tasks write the files of a writer."""
        manifest, store, settings = self.manifest, self.store, self.settings
        if self.keeps_files:
            ranges, target_bytes = _single_files(manifest), _ANY_BYTES
        else:
            target_bytes = self.target.target_file_bytes
            ranges = list(_file_ranges(manifest, target_bytes, settings))
        plan = writer.plan.sized(target_bytes)
        values = marked(store.to_dict(), settings.credentials)
        tasks = list(_tasks(manifest, plan, values, ranges))
        reports = _run(tasks, manifest, store, settings, self.spark, self.run_id, self.progress)
        writer.add(file for report in reports for file in report.files)


def _check_format(store: ObjectStore, target: PublishTarget) -> None:
    """Refuse a name under which there is a table of another format: readers take only one."""
    wanted = result_format(target.format)
    for item in stored_formats():
        if item is wanted:
            continue
        version = item.stored(store, target.table, Access()).current()
        if version is not None and version.has_data:
            raise PublishError(
                f"table '{target.table}' is of the format '{item.name}', not '{wanted.name}'; "
                f"clear it with `stagecoach tables clear {target.table}`, or give the output "
                "another name (output.table)"
            )


def _tasks(
    manifest: Manifest, plan: WritePlan, store: Mapping[str, Any], ranges: Sequence[tuple[int, int]]
) -> Iterator[WriteTask]:
    for index, (first, end) in enumerate(ranges):
        yield WriteTask(
            store=store,
            fingerprint=manifest.fingerprint,
            manifest_hash=manifest.manifest_hash,
            stage=manifest.stage_name,
            first_file=first,
            end_file=end,
            task_index=index,
            plan=plan,
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
        from stagecoach.infra.spark.session import task_slots

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
    from stagecoach.infra.engines.spark.errors import SPARK_ERRORS, explain_error
    from stagecoach.infra.spark.secret_channel import sent

    count = len(tasks)
    tag = job_tag(run_id, manifest.stage_id)
    description = f"{manifest.stage_name}: publish {tasks[0].plan.table}"
    try:
        with (
            tagged_job(spark, tag, description, progress, settings.progress_seconds),
            sent(spark, tasks[0].store) as store,
        ):
            payload = [{**task.to_dict(), "store": store} for task in tasks]
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

        from stagecoach.infra.publishing.write_task import WriteTask, run_write_task

        context = TaskContext.get()
        attempt = 0 if context is None else context.attemptNumber()
        read = None if context is None else context.getLocalProperty
        for batch in batches:
            for index in batch.column(0).to_pylist():
                report = run_write_task(WriteTask.from_dict(payload[index], read), attempt)
                rows = {"task": [index], "report": [json.dumps(report.to_dict())]}
                yield pa.RecordBatch.from_pydict(rows)

    return write


def _forget_lost(store: ObjectStore, manifest: Manifest) -> None:
    """Undo the commit of a damaged output: run again, the stage recomputes it."""
    try:
        verify_files(store, manifest)
    except ShuffleReadError:
        mark_lost(store, manifest.fingerprint, manifest.manifest_hash)


def _published(
    writer: ResultWriter, version: StoredVersion, started: float, *, reused: bool
) -> Published:
    """What a version holds of a writer's result."""
    part = writer.part_of(version)
    return Published(
        version=version,
        files=part.files,
        partition_rows=part.partition_rows,
        num_rows=sum(part.partition_rows.values()),
        num_bytes=sum(file.num_bytes for file in part.files),
        reused=reused,
        seconds=time.perf_counter() - started,
    )
