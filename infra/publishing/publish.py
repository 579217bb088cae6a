"""Publishes a result: the committed output of a head stage becomes a new version of a table.

    fingerprint published already? ─▶ done
        │ no
    map files ─▶ one Spark job ─▶ Parquet files ─▶ commit ─▶ hint

A merge also rewrites files of the table (`merging`). Driver code, DataFrame API only. A small
result is written by this process, through the same worker function (`jobs`).
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.formats.merge_keys import check_merge, delete_position
from stagecoach.infra.formats.protocol import Access
from stagecoach.infra.formats.publishing import (
    MergeWriter,
    ResultWriter,
    TableChangedError,
    WritePlan,
    WrittenFile,
    stored_columns,
)
from stagecoach.infra.formats.publishing import PartitionWindow as PartitionWindow
from stagecoach.infra.formats.publishing import PublishError as PublishError
from stagecoach.infra.formats.publishing import PublishTarget as PublishTarget
from stagecoach.infra.formats.registry import result_format, stored_formats
from stagecoach.infra.formats.staged_version import StagedVersion
from stagecoach.infra.formats.stored_version import StoredVersion
from stagecoach.infra.publishing.jobs import PublishJobs, fits_driver
from stagecoach.infra.publishing.merging import Merge
from stagecoach.infra.publishing.tasks import StageOutput
from stagecoach.infra.publishing.write_task import WriteTask
from stagecoach.infra.runtime.stages.todays_times import identity_of_rows
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.spark.jobs import ProgressListener
from stagecoach.infra.storage.forwarding import marked
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.types import Field

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.infra.runtime.stages.run import Run, StageResult

log = logging.getLogger(__name__)

MIN_TASK_BYTES = 64 << 20
"""Stored bytes below which a task is not split."""
_ANY_BYTES = 1 << 62


@dataclass(frozen=True, kw_only=True)
class Published:
    """What a publication came to.

    Attributes:
        version: The version that holds the result.
        fingerprint: Identity of the rows in the table, as of `StagedVersion`.
        files: The files of this result.
        partition_rows: Rows by partition key; the one key is None without partitions.
        num_rows: Rows of this result.
        num_bytes: Size of its files in bytes.
        reused: Whether it was published already.
        seconds: Time that it took.
    """

    version: StoredVersion
    fingerprint: str
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
        merge: Looks at files that are new in the table, for mode `merge`.
    """

    version: StagedVersion
    writer: ResultWriter
    started: float
    merge: Merge | None = None

    def publish(self) -> Published:
        """Make it visible to readers, on whatever the table is by now.

        Raises:
            StagedGoneError: It was discarded, or replaced by a later result.
            PublishError: The table does not take it any more; it stays staged.
            StorageError: The store failed.
        """
        try:
            self.writer.publish()
        except TableChangedError:
            if self.merge is None:
                raise
            self.merge.publish()
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
        keeps_files: Whether each map file becomes a file of the table, whatever its size.

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
        keeps_files=keeps_files,
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
        target: The table.
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
        merge = self._merge(writer)
        if merge is not None:
            merge.check_keys()
            merge.first_task = self._write(writer)
            number = merge.publish()
        else:
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
        writer = self._writer()
        if (there := writer.find_published()) is not None:
            return _published(writer, there, started, reused=True)
        merge = self._merge(writer)
        staged = writer.find_staged()
        if staged is None:
            if merge is not None:
                merge.check_keys()
                merge.first_task = self._write(writer)
                merge.rewrite()
            else:
                self._write(writer)
            staged = writer.stage_commit()
        if staged is None:
            writer.publish()  # another run has published the same rows meanwhile
            return _published(writer, writer.version, started, reused=True)
        if merge is not None and writer.adopted:
            merge = self._merge(writer)  # the files that this run has rewritten are gone
        return Staged(staged, writer, started, merge)

    def _writer(self) -> ResultWriter:
        _check_format(self.store, self.target)
        return _writer(self.manifest, self.columns, self.target, self.store, self.run_id)

    def _merge(self, writer: ResultWriter) -> Merge | None:
        """What a merge does to the files of the table; None for another mode."""
        if self.target.mode != "merge":
            return None
        return Merge(self._jobs, cast("MergeWriter", writer), self.target, self.columns)

    @property
    def _jobs(self) -> PublishJobs:
        return PublishJobs(
            manifest=self.manifest,
            table=self.target.table,
            store=self.store,
            settings=self.settings,
            spark=self.spark,
            run_id=self.run_id,
            progress=self.progress,
        )

    def _write(self, writer: ResultWriter) -> int:
        """Have tasks write the files of a writer; how many tasks there were."""
        manifest, target = self.manifest, self.target
        if self.keeps_files:
            ranges, target_bytes = _single_files(manifest), _ANY_BYTES
        else:
            target_bytes = target.target_file_bytes
            ranges = list(_file_ranges(manifest, target_bytes, self.settings))
        plan = writer.plan.sized(target_bytes)
        values = marked(self.store.to_dict(), self.settings.credentials)
        deletes, is_merge = delete_position(self.columns, target), target.mode == "merge"
        tasks = list(_tasks(manifest, plan, values, ranges, deletes, is_merge=is_merge))
        writer.add(
            file for report in self._jobs.run(tasks, manifest.num_bytes) for file in report.found
        )
        return len(tasks)


def _writer(
    manifest: Manifest,
    columns: Sequence[Field],
    target: PublishTarget,
    store: ObjectStore,
    run_id: str,
) -> ResultWriter:
    """The commit of a result."""
    found, fingerprint = result_format(target.format), identity_of_rows(manifest)
    if target.mode == "merge":
        if not found.takes_merges:
            raise PublishError(
                f"table '{target.table}': results are not merged into tables of the format "
                f"'{found.name}'; use another mode"
            )
        try:
            check_merge(columns, target.key, target.delete_column)
        except PublishError as error:
            raise PublishError(f"table '{target.table}': {error}") from None
        # The same rows make another table with another key, or in another mode.
        how = json.dumps([fingerprint, target.key, target.delete_column]).lower()
        fingerprint = hashlib.sha256(how.encode()).hexdigest()
    stored = stored_columns(columns, target.delete_column)
    names = {column.name for column in stored}
    comments = tuple(comment for comment in target.comments if comment[0] in names)
    target = replace(target, comments=comments)
    return found.result_writer(store, target, stored, fingerprint=fingerprint, run_id=run_id)


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
    manifest: Manifest,
    plan: WritePlan,
    store: Mapping[str, Any],
    ranges: Sequence[tuple[int, int]],
    delete_position: int | None,
    *,
    is_merge: bool,
) -> Iterator[WriteTask]:
    # A merge may remove all rows of the table, and then needs a file that tells the columns.
    needs_file = is_merge or not manifest.num_rows
    for index, (first, end) in enumerate(ranges):
        yield WriteTask(
            store=store,
            output=StageOutput.of(manifest),
            first_file=first,
            end_file=end,
            task_index=index,
            plan=plan,
            delete_position=delete_position,
            writes_empty=index == 0 and needs_file,
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
    if not fits_driver(total) and total // small > count:
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


def _published(
    writer: ResultWriter, version: StoredVersion, started: float, *, reused: bool
) -> Published:
    """What a version holds of a writer's result."""
    part = writer.part_of(version)
    return Published(
        version=version,
        fingerprint=writer.fingerprint,
        files=part.files,
        partition_rows=part.partition_rows,
        num_rows=sum(part.partition_rows.values()),
        num_bytes=sum(file.num_bytes for file in part.files),
        reused=reused,
        seconds=time.perf_counter() - started,
    )
