"""A process whose JVM is killed goes on: the next session has a JVM of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.processes import environment

SCRIPT = """
import os, signal, threading, time
from pyspark import SparkContext
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.errors import SparkLostError
from stagecoach.infra.spark.jobs import tagged_job
from stagecoach.infra.spark.session import get_session, stop_sessions

settings = EngineSettings(master="local[1]", spill_dir=os.getcwd())

def kill():
    os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)

def sleep(spark):
    spark.sparkContext.parallelize([1], 1).foreach(lambda _: time.sleep(60))

assert get_session(settings).range(3).count() == 3
kill()
spark = get_session(settings)
assert spark.range(4).count() == 4, "killed while it was idle"
threading.Timer(2, kill).start()
try:
    with tagged_job(spark, "stagecoach-run-1", "sleeps"):
        sleep(spark)
except SparkLostError as error:
    print(error)
assert get_session(settings).range(5).count() == 5, "killed while it ran a job"
stop_sessions()
"""


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(200)
def test_a_killed_jvm_is_replaced(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    assert "Spark, which this process had started, has ended: its JVM was killed" in done.stdout
