"""Secrets among Spark's settings: a classic session has them, the arguments of its JVM do not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.processes import ROOT, environment

pytestmark = [pytest.mark.slow, pytest.mark.spark]

NAME = "spark.hadoop.fs.s3a.secret.key"
SECRET = r"marked\secret=22"

# A session of its own; says the arguments of its JVM, then what the session has.
PROGRAM = f"""
import os, subprocess
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.spark.session import get_session

settings = EngineSettings(
    master="local[1]", spark_conf={{{NAME!r}: {SECRET!r}, "spark.marked.plain": "33"}}
)
context = get_session(settings).sparkContext
listed = ["ps", "-ww", "--ppid", str(os.getpid()), "-o", "args="]
print(subprocess.run(listed, capture_output=True, text=True).stdout)
print("settings", context.getConf().get({NAME!r}), context.getConf().get("spark.marked.plain"))
print("hadoop", context._jsc.hadoopConfiguration().get("fs.s3a.secret.key"))
print("left", os.environ.get("PYSPARK_SUBMIT_ARGS"), os.listdir(os.environ["TMPDIR"]))
"""


@pytest.mark.parametrize("arguments", [None, "--conf spark.marked.plain=44 pyspark-shell"])
def test_no_secret_is_an_argument_of_the_jvm(tmp_path: Path, arguments: str | None) -> None:
    more = {} if arguments is None else {"PYSPARK_SUBMIT_ARGS": arguments}
    done = subprocess.run(
        [sys.executable, "-"],
        input=PROGRAM,
        cwd=ROOT,
        env=environment(TMPDIR=str(tmp_path), **more),
        capture_output=True,
        text=True,
        check=False,
    )
    processes, _, rest = done.stdout.partition("settings ")
    assert "spark.marked.plain=" in processes, done.stderr
    assert SECRET not in processes
    shown = rest.splitlines()
    assert shown[:2] == [f"{SECRET} 33", f"hadoop {SECRET}"]
    assert shown[2].startswith(f"left {arguments} ")
    assert "stagecoach-conf-" not in shown[2]
