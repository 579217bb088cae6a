"""A job whose Spark has no executors ends in time, and another session takes its place."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from stagecoach.infra.errors import SparkLostError
from stagecoach.infra.spark import jobs
from stagecoach.infra.spark.executors import ExecutorWatch
from stagecoach.infra.spark.jobs import cancel_stage, job_tag, tagged_job
from stagecoach.infra.spark.session_kinds import is_alive


class Context:
    """What classic Spark on a cluster does that has lost all executors: jobs end when cancelled."""

    master = "spark://cluster:7077"

    def __init__(self, executors: int = 0) -> None:
        self.executors = executors
        self.cancelled = threading.Event()
        self.has_ended = False
        self._jsc: Any = self

    def sc(self) -> Context:
        return self

    statusTracker = sc

    def isStopped(self) -> bool:
        return self.has_ended

    def getExecutorInfos(self) -> list[str]:
        return ["driver", *map(str, range(self.executors))]

    def setJobGroup(self, *_: object, **__: object) -> None: ...

    def setLocalProperty(self, *_: object) -> None: ...

    def cancelJobGroup(self, _: str) -> None:
        self.cancelled.set()

    def run_job(self) -> None:
        assert self.cancelled.wait(20), "nobody has given the job up"
        raise ValueError("Job 0 cancelled part of cancelled job group")


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> Iterator[Context]:
    """Of a session that is stopped when it is forgotten."""
    monkeypatch.setattr(jobs, "_EXECUTOR_POLL_SECONDS", 0.01)
    found = Context()
    yield found
    assert not [t for t in threading.enumerate() if t.name == "job"]


def session_of(context: Context) -> Any:
    def stop() -> None:
        context._jsc = None

    return SimpleNamespace(sparkContext=context, stop=stop)


def test_a_job_without_executors_is_given_up(context: Context) -> None:
    session = session_of(context)
    with (
        pytest.raises(SparkLostError, match=r"spark://cluster:7077 has had no executor for 0.05 s"),
        tagged_job(session, job_tag("run", 1), "", executor_seconds=0.05),
    ):
        context.run_job()
    assert not is_alive(session), "the next try starts another application"
    assert SparkLostError.retryable


def test_a_job_with_executors_is_left_alone(context: Context) -> None:
    context.executors = 2
    with tagged_job(session_of(context), job_tag("run", 2), "", executor_seconds=0.05):
        assert not context.cancelled.wait(0.3)


def test_a_canceled_job_is_not_a_lost_one(context: Context) -> None:
    context.executors = 2
    session, tag = session_of(context), job_tag("run", 3)
    with (
        pytest.raises(ValueError, match="cancelled"),
        tagged_job(session, tag, "", executor_seconds=60),
    ):
        assert cancel_stage("run", 3)
        context.run_job()


def test_what_fails_when_spark_ends_says_so(context: Context) -> None:
    with (
        pytest.raises(SparkLostError, match="its JVM was killed, or the cluster has given"),
        tagged_job(session_of(context), job_tag("run", 4), ""),
    ):
        context.has_ended = True
        raise ConnectionRefusedError(111, "Connection refused")


def test_executors_that_come_back_in_time_are_not_missing() -> None:
    counts, now = iter((1, 0, 0, 2, 0, 0, 0)), iter(range(0, 100, 10))
    watch = ExecutorWatch(lambda: next(counts), 25, clock=lambda: float(next(now)))
    assert [watch.are_missing() for _ in range(7)] == [False] * 6 + [True]
