"""Has tasks look at the machines that they run on.

A task needs nothing of ours to say what its machine lacks: what it runs is pickled by value.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from stagecoach.doctor.patience import within

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.infra.config.settings import EngineSettings

_START_SECONDS = 60.0
_LOOK_SECONDS = 90.0
_SETTLE_SECONDS, _MOST_SETTLE_SECONDS, _POLL_SECONDS = 5.0, 20.0, 0.2
_LOOKS = 3
_NO_EXECUTOR = (
    "the cluster has no executor to spare, none is large enough for spark.executor.memory and "
    "spark.executor.cores, or executors cannot connect to the driver (spark.driver.host): no task "
    "has run"
)
_NO_ANSWER = "executors run tasks, but have not looked at their machine"


@dataclass(frozen=True, kw_only=True)
class MachineReport:
    """What a task says of its executor.

    Args:
        host: Name of the machine.
        python: Its interpreter.
        executor: Its working directory, which tells executors of one machine apart.
        problem: What it lacks, which keeps it from looking further; None if nothing.
        skew: By how many seconds its clock is ahead of the driver's at least.
        disk: See `stagecoach.infra.worker.machine`.
        storage: As above.
        tables: As above.
    """

    host: str
    python: str
    executor: str
    problem: str | None = None
    skew: float = 0.0
    disk: Mapping[str, Any] = field(default_factory=dict)
    storage: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)


def look_at_executors(
    spark: SparkSession, settings: EngineSettings, files: Mapping[str, str]
) -> list[MachineReport]:
    """Have at least one task of each executor look at its machine.

    Args:
        spark: A session.
        settings: Storage and spill folder of tasks.
        files: URI of a file of each table, by the table's name.

    Raises:
        ExecutorError: No executor can run Python.
        SparkUnavailableError: No executor takes a task, or answers, in time.
        CredentialsError: The driver's credentials are to be sent, and there are none.
        TaskFailedError: Spark failed.
    """
    from stagecoach.infra.spark.secret_channel import sent
    from stagecoach.infra.spark.session import task_slots
    from stagecoach.infra.spark.session_kinds import is_connect, is_local
    from stagecoach.infra.spark.task_environment import environment_check
    from stagecoach.infra.storage.forwarding import marked

    cancel = partial(_cancel, spark)
    within(_START_SECONDS, lambda: _run(spark, 1, _nothing()), _NO_EXECUTOR, cancel)
    is_counted = not is_connect(spark) and not is_local(settings.master)
    if is_counted:
        await_executors(lambda: _count_executors(spark))
    tasks = max(2 * task_slots(settings), 4)
    store = marked(settings.open_store().to_dict(), settings.credentials)
    check = environment_check(spark)

    def look() -> list[MachineReport]:
        with sent(spark, store) as carried:
            function = question(carried, settings.spill_folder, dict(files), check)
            began, texts = time.time(), _run(spark, tasks, function)
            return read_reports(texts, began, time.time())

    def look_at_all() -> list[MachineReport]:
        found: dict[tuple[str, str], MachineReport] = {}
        # One executor may be given all tasks before another takes its first.
        for _ in range(_LOOKS):
            found = {(report.host, report.executor): report for report in look()} | found
            if not is_counted or len(found) >= _count_executors(spark):
                break
        return list(found.values())

    return within(_LOOK_SECONDS, look_at_all, _NO_ANSWER, cancel)


def await_executors(
    count: Callable[[], int], *, most_seconds: float = _MOST_SETTLE_SECONDS
) -> None:
    """Wait until the number of executors is stable: one that registers later gets no task.

    Args:
        count: Tells how many there are.
        most_seconds: How long to wait at most.
    """
    known, since = count(), time.monotonic()
    deadline = since + most_seconds
    while (now := time.monotonic()) < min(deadline, since + _SETTLE_SECONDS):
        time.sleep(_POLL_SECONDS)
        if (found := count()) != known:
            known, since = found, now


def read_reports(texts: Iterable[str], began: float, ended: float) -> list[MachineReport]:
    """Read what tasks have answered; the first answer of each executor.

    Args:
        texts: What functions of `question` returned.
        began: When they were started at the earliest, by the clock of the driver.
        ended: When the last had ended.
    """
    return list(_first_of_each(map(json.loads, texts), began, ended))


def clock_skew(clock: float, began: float, ended: float) -> float:
    """Seconds by which a clock is ahead of ours at least, if it was read between two moments."""
    return round(max(clock - ended, min(clock - began, 0.0)), 1)


def _first_of_each(
    reports: Iterable[dict[str, Any]], began: float, ended: float
) -> Iterator[MachineReport]:
    seen: set[tuple[str, str]] = set()
    for report in reports:
        key = (report["host"], report["executor"])
        if key not in seen:
            seen.add(key)
            skew = clock_skew(report.pop("clock"), began, ended)
            yield MachineReport(skew=skew, **report)


def question(
    store: Mapping[str, Any], spill_dir: str, files: dict[str, str], check: Callable[[], str | None]
) -> Callable[[int], str]:
    """Return what a task runs; it returns a `MachineReport` as JSON, with the time of its `clock`.

    Args:
        store: The storage root as `ObjectStore.to_dict` describes it, perhaps sealed.
        spill_dir: Where tasks spill.
        files: URI of a file of each table, by the table's name.
        check: Says what the machine lacks; see `EnvironmentCheck`.
    """

    def look(index: int) -> str:
        import json
        import os
        import socket
        import sys
        import time

        from pyspark import TaskContext

        del index
        report: dict[str, Any] = {
            "host": socket.gethostname(),
            "python": sys.executable,
            "executor": os.getcwd(),  # a folder of its own for each executor of a machine
            "clock": time.time(),
            "problem": check(),
        }
        time.sleep(0.5)  # so that other executors get tasks, too
        if report["problem"] is None:
            from stagecoach.infra.storage.sealed import opened
            from stagecoach.infra.worker.machine import look_at_machine

            context = TaskContext.get()
            read = None if context is None else context.getLocalProperty
            report.update(look_at_machine(opened(store, read), spill_dir, files))
        return json.dumps(report)

    return look


def _count_executors(spark: SparkSession) -> int:
    """How many executors a classic Spark with a cluster knows."""
    driver = 1
    return int(spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) - driver


def _nothing() -> Callable[[int], str]:
    def nothing(index: int) -> str:
        return str(index)

    return nothing


def _run(spark: SparkSession, count: int, function: Callable[[int], str]) -> list[str]:
    from stagecoach.infra.engines.spark.errors import SPARK_ERRORS, explain_error
    from stagecoach.infra.runtime.stages.dispatch import texts_of_tasks

    try:
        return texts_of_tasks(spark, count, function)
    except SPARK_ERRORS as error:
        raise explain_error(error, "doctor", "doctor") from error


def _cancel(spark: SparkSession) -> None:
    from stagecoach.infra.spark.session_kinds import is_connect

    if is_connect(spark):
        spark.interruptAll()
    else:
        spark.sparkContext.cancelAllJobs()
