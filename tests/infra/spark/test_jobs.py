"""Jobs by tag: an interrupt reaches a job that Spark gets only after it, unless Spark is gone."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from stagecoach.infra.spark.jobs import cancel_stage, job_tag, tagged_job, was_canceled
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SLEEP_SECONDS = 240.0


class LostContext:
    """What classic Spark does whose JVM is gone, from the second interrupt on."""

    def __init__(self) -> None:
        self.interrupts = 0
        self._jsc = self

    def cancelJobGroup(self, group: str) -> None:
        self.interrupts += 1
        self._answer()

    def setJobGroup(self, *_: object, **__: object) -> None:
        self._answer()

    def clearJobGroup(self) -> None:
        self._answer()

    def _answer(self) -> None:
        if self.interrupts > 1:
            raise ConnectionRefusedError(111, "Connection refused\nby nobody")


class LostConnectSession:
    """What Spark Connect's session does whose server is gone."""

    __module__ = "pyspark.sql.connect.session"

    def interruptTag(self, tag: str) -> list[str]:
        raise PySparkException(f"[UNAVAILABLE] {tag}")

    def addTag(self, tag: str) -> None: ...

    def removeTag(self, tag: str) -> None: ...

    def registerProgressHandler(self, handler: object) -> None: ...

    def removeProgressHandler(self, handler: object) -> None: ...


def test_interrupts_end_quietly_where_spark_is_gone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    spark: Any = SimpleNamespace(sparkContext=LostContext())
    tag = job_tag("lost", 0)
    raised: list[object] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    before = set(threading.enumerate())
    with pytest.raises(RuntimeError, match="of the job"), tagged_job(spark, tag, "lost"):
        assert cancel_stage("lost", 0)
        wait_for(lambda: "no more interrupts" in caplog.text, 30)
        for again in set(threading.enumerate()) - before:
            again.join(30)
            assert not again.is_alive()
        raise RuntimeError("of the job")
    assert raised == []
    assert spark.sparkContext.interrupts == 2
    assert [line.split(":")[1] for line in caplog.messages] == [
        " no more interrupts",
        " no more tags",
    ]
    assert all(tag in line and line.endswith("Connection refused") for line in caplog.messages)
    assert not cancel_stage("lost", 0)  # nothing is left of it


def test_progress_ends_quietly_where_spark_is_gone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    context: Any = LostContext()
    context.statusTracker = lambda: SimpleNamespace(getJobIdsForGroup=context.cancelJobGroup)
    raised: list[object] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    context.interrupts = 1
    tag = job_tag("unwatched", 0)
    session: Any = SimpleNamespace(sparkContext=context)
    with tagged_job(session, tag, "unwatched", raised.append, 0.001):
        deadline = time.monotonic() + 30
        while "no more progress" not in caplog.text and time.monotonic() < deadline:
            time.sleep(0.01)
    assert raised == []
    assert f"{tag}: no more progress: ConnectionRefusedError" in caplog.text


def test_a_signal_is_raised_where_the_server_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    spark: Any = LostConnectSession()
    with pytest.raises(KeyboardInterrupt), tagged_job(spark, job_tag("signal", 0), "signal"):
        raise KeyboardInterrupt
    assert "UNAVAILABLE" in caplog.text


@pytest.mark.slow
@pytest.mark.spark
def test_a_job_that_begins_after_its_cancellation_ends(spark: SparkSession) -> None:
    tag = job_tag("begins_late", 0)
    is_tagged, is_canceled = threading.Event(), threading.Event()
    raised: list[str] = []

    def work() -> None:
        with tagged_job(spark, tag, "begins late"):
            is_tagged.set()
            is_canceled.wait(120)
            rows = spark.sparkContext.parallelize([SLEEP_SECONDS], 1)
            try:
                rows.foreach(time.sleep)
            except Py4JJavaError as error:
                raised.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    assert is_tagged.wait(120)
    assert cancel_stage("begins_late", 0)
    is_canceled.set()
    thread.join(SLEEP_SECONDS / 2)
    assert not thread.is_alive()
    assert len(raised) == 1
    assert "cancel" in raised[0]
    assert was_canceled(tag)


@pytest.mark.slow
@pytest.mark.spark
def test_the_next_run_of_a_stage_is_not_interrupted(spark: SparkSession) -> None:
    with tagged_job(spark, job_tag("again", 0), "cancelled"):
        assert cancel_stage("again", 0)
    with tagged_job(spark, job_tag("again", 0), "run again"):
        rows = spark.sparkContext.parallelize([1.0], 1)
        rows.foreach(time.sleep)
        assert not was_canceled(job_tag("again", 0))
