"""Runs the tasks of a publication: as one Spark job, or in this process if there is little to do.

Driver code, DataFrame API only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.errors import ShuffleReadError, StageCanceledError, TaskFailedError
from stagecoach.infra.publishing.tasks import (
    PublishReport,
    PublishTask,
    run_publish_task,
    task_to_dict,
)
from stagecoach.infra.shuffle.commit import mark_lost
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.shuffle.reader import verify_files
from stagecoach.infra.spark.jobs import ProgressListener, job_tag, tagged_job, was_canceled
from stagecoach.infra.storage.object_store import ObjectStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DRIVER_BYTES = 8 << 20
"""Most stored bytes that this process reads itself: a Spark job would take longer than the work."""

_REPORT_SCHEMA = "task bigint, report string"


def fits_driver(num_bytes: int) -> bool:
    """Return whether this process reads so many stored bytes itself."""
    return num_bytes <= DRIVER_BYTES


@dataclass(frozen=True, kw_only=True)
class PublishJobs:
    """What the jobs of one publication have in common.

    Attributes:
        manifest: The committed output that is published.
        table: Name of the table.
        store: The storage root.
        settings: The knobs of a run.
        spark: Gives the Spark session if one is needed.
        run_id: The run.
        progress: Told of completed tasks, from another thread.
    """

    manifest: Manifest
    table: str
    store: ObjectStore
    settings: EngineSettings
    spark: Callable[[], SparkSession]
    run_id: str = ""
    progress: ProgressListener | None = None

    def run(self, tasks: Sequence[PublishTask], num_bytes: int) -> list[PublishReport]:
        """Run tasks and return their reports in order.

        Args:
            tasks: At least one; all have the same store.
            num_bytes: Stored bytes that they read.

        Raises:
            PublishError: The rows do not fit the table.
            ShuffleReadError: The stage's output is lost.
            TaskFailedError: Spark failed; a retry may help.
            StorageError: The store failed.
        """
        if fits_driver(num_bytes):
            reports = [run_publish_task(task) for task in tasks]
        else:
            reports = self._run_on_spark(tasks)
        for report in reports:
            error = report.error(self.manifest.stage_name)
            if isinstance(error, ShuffleReadError):
                self._forget_lost()
            if error is not None:
                raise error
        return reports

    def _run_on_spark(self, tasks: Sequence[PublishTask]) -> list[PublishReport]:
        """One Spark job, one Spark task each."""
        from stagecoach.infra.engines.spark.errors import SPARK_ERRORS, explain_error
        from stagecoach.infra.spark.secret_channel import sent

        manifest, spark, count = self.manifest, self.spark(), len(tasks)
        tag = job_tag(self.run_id, manifest.stage_id)
        description = f"{manifest.stage_name}: publish {self.table}"
        seconds = (self.settings.progress_seconds, self.settings.executor_seconds)
        try:
            with (
                tagged_job(spark, tag, description, self.progress, *seconds),
                sent(spark, tasks[0].store) as store,
            ):
                payload = []
                for task in tasks:
                    plain = task_to_dict(task)
                    payload.append({**plain, "values": {**plain["values"], "store": store}})
                frame = spark.range(0, count, 1, count).mapInArrow(
                    _run_function(payload), _REPORT_SCHEMA
                )
                rows = frame.collect()
        except SPARK_ERRORS as error:
            if was_canceled(tag):
                raise StageCanceledError(f"{manifest.stage_name} was canceled") from error
            explained = explain_error(error, manifest.query, manifest.stage_name)
            # Whatever Spark calls it, there is no SQL of the user's in this job.
            raise TaskFailedError(manifest.stage_name, None, str(explained)) from error
        reports = [PublishReport.from_dict(json.loads(row["report"])) for row in rows]
        return sorted(reports, key=lambda report: report.task_index)

    def _forget_lost(self) -> None:
        """Undo the commit of a damaged output: run again, the stage recomputes it."""
        manifest = self.manifest
        try:
            verify_files(self.store, manifest)
        except ShuffleReadError:
            mark_lost(self.store, manifest.fingerprint, manifest.manifest_hash)


def _run_function(
    payload: Sequence[Mapping[str, Any]],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    # A nested function is pickled by value, so executors do not import this module.
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        from stagecoach.infra.publishing.tasks import run_publish_task, task_from_dict

        context = TaskContext.get()
        attempt = 0 if context is None else context.attemptNumber()
        read = None if context is None else context.getLocalProperty
        for batch in batches:
            for index in batch.column(0).to_pylist():
                report = run_publish_task(task_from_dict(payload[index], read), attempt)
                rows = {"task": [index], "report": [json.dumps(report.to_dict())]}
                yield pa.RecordBatch.from_pydict(rows)

    return run
