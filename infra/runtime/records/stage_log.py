"""The log of a failed stage: `runs/<run>/logs/stage_<n>.log`.

A worker sends the lines of a task with its report (`stagecoach.infra.worker.log_lines`). Where a
stage fails, the driver writes them to storage, the first failure on top.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from stagecoach.infra.errors import StorageError
from stagecoach.infra.storage import layout, secrets
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore
from stagecoach.infra.worker.log_lines import MAX_LINE
from stagecoach.infra.worker.reports import TaskReport

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StageLog:
    """The log of a failed stage.

    Args:
        uri: Where all of it is.
        lines: Its lines.
    """

    uri: str
    lines: tuple[str, ...]


def write_stage_log(
    store: ObjectStore,
    run_id: str,
    stage_id: int,
    error: BaseException,
    reports: Sequence[TaskReport] = (),
) -> None:
    """Keep the log of a failed stage; a store that refuses it does not hide the error.

    Args:
        store: The storage root.
        run_id: The run.
        stage_id: Number of the stage.
        error: What it fails with.
        reports: What its tasks reported, if they could.
    """
    lines = [*_cause_lines(error), *(line for r in _ordered(reports) for line in _task_lines(r))]
    try:
        text = secrets.redact("\n".join(lines) + "\n")
        store.write_bytes(_key(run_id, stage_id), text.encode())
    except StorageError:
        log.warning("run %s: the log of stage_%d could not be kept", run_id, stage_id)


def read_stage_log(store: ObjectStore, run_id: str, stage_id: int) -> StageLog | None:
    """The log of a stage that failed in a run, or None if none was kept."""
    key = _key(run_id, stage_id)
    try:
        text = store.read_bytes(key).decode(errors="replace")
    except (ObjectMissingError, StorageError):
        return None
    return StageLog(store.uri(key), tuple(text.splitlines()))


def _ordered(reports: Sequence[TaskReport]) -> list[TaskReport]:
    """Failed tasks first, the first to fail on top; then the others by number."""
    return sorted(
        reports,
        key=lambda r: (
            r.failure is None,
            r.started_at + r.total_seconds if r.failure is not None else 0.0,
            r.task_index,
        ),
    )


def _task_lines(report: TaskReport) -> list[str]:
    began = time.strftime("%H:%M:%S", time.gmtime(report.started_at))
    how = "failed" if report.failure is not None else "ended"
    head = (
        f"task {report.task_index}, attempt {report.attempt} on {report.host} (pid {report.pid}): "
        f"began {began} UTC, {how} after {report.total_seconds:.2f} s, "
        f"peak memory {report.peak_memory_bytes >> 20} MB"
    )
    return [head, *(f"  {line}" for line in report.log)]


def _cause_lines(error: BaseException) -> list[str]:
    """What Spark said of a job that died, in full: our error has its first line only."""
    cause = error.__cause__
    if cause is None:
        return []
    return ["Spark:", *(f"  {line[:MAX_LINE]}" for line in str(cause).splitlines())]


def _key(run_id: str, stage_id: int) -> str:
    return layout.run_log(run_id, f"stage_{stage_id}")
