"""Follows the tasks of a job on a Spark Connect server, by the progress that the server reports.

A server does not tell of its executors, and does not report again while nothing changes. So a job
that has tasks of which none runs, for as long as nobody reports another state, has no executor that
would take them. Whether all have ended says nothing: the server counts a task whose executor was
lost among those, and not the next try that waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol


class ReportedStage(Protocol):
    """A Spark stage, as `pyspark.sql.connect.shell.progress.StageInfo` tells of it."""

    num_tasks: int
    num_completed_tasks: int


@dataclass(frozen=True)
class TaskCounts:
    """How far the tasks of an operation are.

    Args:
        running: Tasks that executors work on.
        completed: Tasks that have ended.
        total: Tasks that are known so far.
    """

    running: int = 0
    completed: int = 0
    total: int = 0

    @property
    def are_idle(self) -> bool:
        """Whether there are tasks and none runs."""
        return self.total > 0 and self.running <= 0


class ConnectTasks:
    """A progress handler of a Connect session, for the operations of one of its threads.

    A session calls its handlers in the thread that waits for the operation, and for the operations
    of all threads. This one follows those of the thread that makes it.

    Args:
        listener: Told of every report in which there are tasks, in that thread.
    """

    def __init__(self, listener: Callable[[TaskCounts], None] | None = None) -> None:
        self._listener = listener
        self._thread = threading.get_ident()
        self.counts = TaskCounts()

    def __call__(
        self,
        stages: Iterable[ReportedStage] | None,
        inflight_tasks: int,
        operation_id: str | None,
        done: bool,
    ) -> None:
        """Take over a report; see `pyspark.sql.connect.shell.progress.ProgressHandler`."""
        if threading.get_ident() != self._thread:
            return
        found = list(stages or ())
        counts = TaskCounts(
            inflight_tasks,
            sum(stage.num_completed_tasks for stage in found),
            sum(stage.num_tasks for stage in found),
        )
        self.counts = TaskCounts() if done else counts
        if self._listener is not None and counts.total:
            self._listener(counts)
