"""Spark jobs by tag: their progress, and a way to interrupt them.

A tag is set on the thread that runs the job, so stages that run side by side in one process do not
see each other's. Interrupting goes by the same tag, from any thread. A job on a Spark Connect
server outlives the thread that waits for it, so whatever ends that wait ends the job as well.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from stagecoach.infra.errors import ServerIdleError, SparkLostError, SparkUnavailableError
from stagecoach.infra.spark.connect_tasks import ConnectTasks, TaskCounts
from stagecoach.infra.spark.executors import ExecutorWatch, executor_watch
from stagecoach.infra.spark.lost import ENDED, names_lost_server
from stagecoach.infra.spark.session import forget_session
from stagecoach.infra.spark.session_kinds import is_alive, is_connect

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.shell.progress import ProgressHandler

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class JobProgress:
    """Tasks of a running job.

    Args:
        tag: Of which job.
        completed: Tasks that have ended.
        total: Tasks that are known so far.
    """

    tag: str
    completed: int
    total: int


ProgressListener = Callable[[JobProgress], None]


@dataclass(frozen=True, eq=False)
class _Running:
    """A block of `tagged_job`; another run of the same stage is another one.

    Args:
        spark: The session that runs its jobs.
        done: Set when the block is left.
        lost: Set when its jobs are given up, because Spark has no executors.
    """

    spark: SparkSession
    done: threading.Event = field(default_factory=threading.Event)
    lost: threading.Event = field(default_factory=threading.Event)


_lock = threading.Lock()
_running: dict[str, _Running] = {}
_canceled: set[str] = set()
_waiting: dict[str, threading.Event] = {}
_aliases: dict[str, str] = {}

# Between two interrupts of a job that Spark may not know yet, and how long a thread that has been
# interrupted itself goes on with them.
_INTERRUPT_SECONDS = 0.2
_ABANDON_SECONDS = 1.0
_EXECUTOR_POLL_SECONDS = 1.0


def job_tag(run_id: str, stage_id: int) -> str:
    """The tag of a stage's Spark jobs in a run."""
    return f"stagecoach-{run_id}-{stage_id}"


def cancel_stage(run_id: str, stage_id: int) -> bool:
    """Interrupt a stage's Spark job, or its wait for one; return whether there is any here."""
    tag = job_tag(run_id, stage_id)
    with _lock:
        while tag in _aliases:
            tag = _aliases[tag]
        if (waiting := _waiting.get(tag)) is not None:
            waiting.set()
            return True
        job = _running.get(tag)
        if job is None:
            return False
        _canceled.add(tag)
    if not _interrupt(job.spark, tag):
        threading.Thread(target=_interrupt_until_ended, args=(job, tag), daemon=True).start()
    return True


@contextmanager
def cancellable(tag: str) -> Iterator[threading.Event]:
    """Yield an event that `cancel_stage` sets, for the time before the stage has a job."""
    canceled = threading.Event()
    with _lock:
        _waiting[tag] = canceled
    try:
        yield canceled
    finally:
        with _lock:
            _waiting.pop(tag, None)


@contextmanager
def job_alias(tag: str, other: str) -> Iterator[None]:
    """Let `cancel_stage` of one stage cancel another while the block runs in its place."""
    with _lock:
        _aliases[tag] = other
    try:
        yield
    finally:
        with _lock:
            _aliases.pop(tag, None)


def was_canceled(tag: str) -> bool:
    """Whether `cancel_stage` interrupted the job with that tag."""
    with _lock:
        return tag in _canceled


@contextmanager
def tagged_job(
    spark: SparkSession,
    tag: str,
    description: str,
    listener: ProgressListener | None = None,
    interval_seconds: float = 0.2,
    executor_seconds: float = 0.0,
) -> Iterator[None]:
    """Tag the Spark jobs that this thread starts inside the block.

    Args:
        spark: The session that starts them.
        tag: Their name; no comma.
        description: What the Spark UI shows.
        listener: Told of completed tasks, by classic Spark from another thread.
        interval_seconds: Time between two looks at classic Spark; a Connect server reports itself.
        executor_seconds: How long the jobs may be without any executor; 0 for as long as it takes.

    Raises:
        SparkLostError: They were so for longer, or Spark has ended; the next session is another.
        ServerIdleError: They were so for longer on a Spark Connect server.
    """
    job = _Running(spark)
    with _lock:
        _running[tag] = job
        _canceled.discard(tag)
    tasks = ConnectTasks(_listening(tag, listener)) if is_connect(spark) else None
    watchers: list[threading.Thread] = []
    try:
        if tasks is not None:
            spark.registerProgressHandler(cast("ProgressHandler", tasks))
            spark.addTag(tag)
        else:
            spark.sparkContext.setJobGroup(tag, description, interruptOnCancel=True)
            if listener is not None:
                arguments = (spark, tag, listener, interval_seconds, job.done)
                watchers.append(threading.Thread(target=_watch, args=arguments, daemon=True))
        if (watch := executor_watch(spark, executor_seconds, tasks)) is not None:
            watched = (job, tag, watch)
            watchers.append(threading.Thread(target=_await_loss, args=watched, daemon=True))
        for watcher in watchers:
            watcher.start()
        yield
    except BaseException as error:  # also Ctrl-C and Dagster's interrupts, which are no Exception
        if isinstance(error, Exception):
            _tell_loss(job, tag, executor_seconds, error)
        if is_connect(spark):
            _abandon(job, tag, error)
        raise
    finally:
        job.done.set()
        for watcher in watchers:
            watcher.join()
        with _lock:
            _running.pop(tag, None)
        _untag(spark, tag)
        if tasks is not None:
            spark.removeProgressHandler(cast("ProgressHandler", tasks))


def _interrupt(spark: SparkSession, tag: str) -> bool:
    """Interrupt what Spark runs under the tag; return whether it is known to have run anything."""
    if is_connect(spark):
        return bool(spark.interruptTag(tag))
    spark.sparkContext.cancelJobGroup(tag)
    return False  # classic Spark does not say


@contextmanager
def _giving_up(tag: str, lost: str) -> Iterator[None]:
    """Log what Spark raises in the block, and go on: where it is gone, so is the job.

    Args:
        tag: Of the job.
        lost: What there will be no more of.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001 -- whatever the client of a lost server raises
        reason = str(error).partition("\n")[0]
        log.warning("%s: no more %s: %s: %s", tag, lost, type(error).__name__, reason)


def _interrupt_until_ended(job: _Running, tag: str) -> None:
    """Interrupt again until the block of the job is left: Spark may get the job only now."""
    with _giving_up(tag, "interrupts"):
        while not job.done.wait(_INTERRUPT_SECONDS):
            _interrupt(job.spark, tag)


def _await_loss(job: _Running, tag: str, watch: ExecutorWatch) -> None:
    """Interrupt the job when there has been no executor for too long."""
    with _giving_up(tag, "looks at executors"):
        while not job.done.wait(_EXECUTOR_POLL_SECONDS):
            if watch.are_missing():
                job.lost.set()
                _interrupt_until_ended(job, tag)


def _tell_loss(job: _Running, tag: str, executor_seconds: float, error: Exception) -> None:
    """Raise what is behind an error of a session that can run nothing any more."""
    if job.lost.is_set():
        forget_session(job.spark)
        raise _no_executors(job.spark, executor_seconds) from error
    if not is_connect(job.spark) and not was_canceled(tag) and not is_alive(job.spark):
        raise SparkLostError(ENDED) from error


def _no_executors(spark: SparkSession, seconds: float) -> SparkUnavailableError:
    if is_connect(spark):
        return ServerIdleError(
            f"the Spark Connect server has run no task of the stage for {seconds:g} s: its cluster "
            "has no room, or the master was started anew and does not know the server any more, "
            "which must then be restarted (the setting executor_seconds says how long to wait)"
        )
    return SparkLostError(
        f"Spark at {spark.sparkContext.master} has had no executor for {seconds:g} s: no worker "
        "has room, or the master was started anew and does not know this application any more; the "
        "next try is another application (the setting executor_seconds says how long to wait)"
    )


def _abandon(job: _Running, tag: str, error: BaseException) -> None:
    """Leave no job behind on a server that nobody waits for, and no session of a lost server."""
    if names_lost_server(error):
        log.warning("the Spark Connect server is lost; the next stage connects anew")
        forget_session(job.spark)
    elif not isinstance(error, Exception):
        # A signal in this thread (an interrupted step of Dagster's multiprocess executor); other
        # errors come from the job, which has ended. The server may not have begun it yet.
        deadline = time.monotonic() + _ABANDON_SECONDS
        with _giving_up(tag, "interrupts"):
            while not _interrupt(job.spark, tag) and time.monotonic() < deadline:
                time.sleep(_INTERRUPT_SECONDS)


def _untag(spark: SparkSession, tag: str) -> None:
    if is_connect(spark):
        spark.removeTag(tag)
        return
    # An error here would hide that of the job.
    with _giving_up(tag, "tags"):
        spark.sparkContext._jsc.clearJobGroup()


def _listening(tag: str, listener: ProgressListener | None) -> Callable[[TaskCounts], None] | None:
    if listener is None:
        return None
    return lambda counts: listener(JobProgress(tag, counts.completed, counts.total))


def _watch(
    spark: SparkSession,
    tag: str,
    listener: ProgressListener,
    interval_seconds: float,
    done: threading.Event,
) -> None:
    tracker: StatusTracker | None = None
    last: JobProgress | None = None
    while not done.wait(interval_seconds):
        found: list[JobProgress] = []
        with _giving_up(tag, "progress"):
            # Not before: a job is over by then, mostly, and each thread connects to the JVM anew.
            tracker = tracker or spark.sparkContext.statusTracker()
            found.append(_progress(tracker, tag))
        if not found:
            return
        if found[0].total and found[0] != last:
            last = found[0]
            listener(last)


def _progress(tracker: StatusTracker, tag: str) -> JobProgress:
    """How far the job's tasks are, as Spark says."""
    completed = total = 0
    for job in tracker.getJobIdsForGroup(tag):
        info = tracker.getJobInfo(job)
        for stage_id in info.stageIds if info else ():
            stage = tracker.getStageInfo(stage_id)
            if stage is not None:
                completed += stage.numCompletedTasks
                total += stage.numTasks
    return JobProgress(tag, completed, total)
