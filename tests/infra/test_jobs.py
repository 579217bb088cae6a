"""Jobs by tag: an interrupt reaches a job that Spark gets only after it."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JJavaError

from infra.runtime.jobs import cancel_stage, job_tag, tagged_job, was_canceled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.spark]
SLEEP_SECONDS = 60.0


def test_a_job_that_begins_after_its_cancellation_ends(spark: SparkSession) -> None:
    tag = job_tag("begins_late", 0)
    is_tagged, is_canceled = threading.Event(), threading.Event()
    raised: list[str] = []

    def work() -> None:
        with tagged_job(spark, tag, "begins late"):
            is_tagged.set()
            is_canceled.wait(30)
            rows = spark.sparkContext.parallelize([SLEEP_SECONDS], 1)
            try:
                rows.foreach(time.sleep)
            except Py4JJavaError as error:
                raised.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    assert is_tagged.wait(30)
    assert cancel_stage("begins_late", 0)
    is_canceled.set()
    thread.join(SLEEP_SECONDS / 2)
    assert not thread.is_alive()
    assert len(raised) == 1
    assert "cancel" in raised[0]
    assert was_canceled(tag)


def test_the_next_run_of_a_stage_is_not_interrupted(spark: SparkSession) -> None:
    with tagged_job(spark, job_tag("again", 0), "cancelled"):
        assert cancel_stage("again", 0)
    with tagged_job(spark, job_tag("again", 0), "run again"):
        rows = spark.sparkContext.parallelize([1.0], 1)
        rows.foreach(time.sleep)
        assert not was_canceled(job_tag("again", 0))
