"""What the tasks of a stage said: in, log records in workers; out, `runs/<run>/logs/stage_<n>.log`.

A worker keeps the lines of the task that a thread runs (`captured_lines`) and sends them with the
task's report. Where a stage fails, the driver writes them to the storage, the first failure on top.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from infra.errors import StorageError
from infra.runtime.task_spec import TaskReport
from infra.storage import layout, secrets
from infra.storage.object_store import ObjectMissingError, ObjectStore

MAX_TASK_LINES = 100
"""Lines that a task's report carries; the last ones count."""

_MAX_LINE = 2_000
_OURS = ("infra", "planner")

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


@contextmanager
def captured_lines() -> Iterator[deque[str]]:
    """Collect what our packages log in this thread while the block runs, the last lines of it."""
    lines: deque[str] = deque(maxlen=MAX_TASK_LINES)
    handler = _Lines(lines, threading.get_ident())
    loggers = [logging.getLogger(name) for name in _OURS]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield lines
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


def error_lines(error: BaseException) -> list[str]:
    """The traceback of an error as log lines."""
    text = "".join(traceback.format_exception(error))
    return [line[:_MAX_LINE] for line in text.splitlines()]


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


class _Lines(logging.Handler):
    """Formats the records of one thread into a bounded list."""

    def __init__(self, lines: deque[str], thread: int) -> None:
        super().__init__()
        self._lines = lines
        self._thread = thread
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread:
            self._lines.extend(line[:_MAX_LINE] for line in self.format(record).splitlines())


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
    return ["Spark:", *(f"  {line[:_MAX_LINE]}" for line in str(cause).splitlines())]


def _key(run_id: str, stage_id: int) -> str:
    return layout.run_log(run_id, f"stage_{stage_id}")
