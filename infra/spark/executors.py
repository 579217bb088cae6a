"""Notices that a job waits for executors which do not come.

A standalone master that was started anew without a recovery folder knows no application any more:
it gives them no executors, and does not tell them. Spark itself waits for ever then, as it does for
a cluster without workers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from stagecoach.infra.spark.session_kinds import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.infra.spark.connect_tasks import ConnectTasks


class ExecutorWatch:
    """Looks whether an application has executors.

    Args:
        count: How many it has.
        seconds: How long there may be none.
        clock: Seconds that only ever grow.
    """

    def __init__(
        self,
        count: Callable[[], int],
        seconds: float,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._count = count
        self._clock = clock
        self._seen_at = clock()
        self.seconds = seconds

    def are_missing(self) -> bool:
        """Whether there has been none for too long."""
        now = self._clock()
        if self._count() > 0:
            self._seen_at = now
        return now - self._seen_at >= self.seconds


def executor_watch(
    spark: SparkSession, seconds: float, tasks: ConnectTasks | None
) -> ExecutorWatch | None:
    """A watch for a job; None where nobody wants to know.

    A Spark Connect server does not tell of its executors, so there the job lacks them while none of
    its tasks runs. Those of a local master are processes of this one.

    Args:
        spark: The session that runs it.
        seconds: How long it may be without executors; 0 for as long as it takes.
        tasks: Follows its tasks, if the session is one of Spark Connect.
    """
    if not seconds:
        return None
    if tasks is not None:
        return ExecutorWatch(lambda: 0 if tasks.counts.are_idle else 1, seconds)
    if is_local(spark.sparkContext.master or ""):
        return None
    context = spark.sparkContext._jsc.sc()
    # The driver counts as one.
    return ExecutorWatch(lambda: len(context.statusTracker().getExecutorInfos()) - 1, seconds)
