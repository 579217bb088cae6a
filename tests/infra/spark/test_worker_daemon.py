"""Python workers of a Spark on this machine import pyspark from where it is installed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.spark import worker_daemon
from stagecoach.infra.spark.classic_session import configuration

pytestmark = pytest.mark.spark

# In a process of its own, whose Spark starts by our settings alone.
_PROGRAM = """
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.spark.bare_tasks import run_bare_tasks
from stagecoach.infra.spark.session import get_session, stop_sessions

def look(index):
    import json
    import py4j, pyspark.worker
    return json.dumps([pyspark.worker.__file__, py4j.__file__])

session = get_session(EngineSettings(master="local[1]"))
print(run_bare_tasks(session.sparkContext, 1, look)[0])
stop_sessions()
"""


def test_workers_import_no_archive() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=120, check=True
    )
    files = json.loads(done.stdout.splitlines()[-1])
    assert len(files) == 2
    assert not [file for file in files if ".zip" in file]


@pytest.mark.parametrize("master", ["local[2]", "local-cluster[2,1,1024]", "spark://host:7077"])
def test_executors_of_other_machines_start_workers_as_spark_does(master: str) -> None:
    """They have our code in an archive at best, which their daemons do not know."""
    chosen = configuration(EngineSettings(master=master)).get("spark.python.daemon.module")
    assert chosen == (None if master.startswith("spark") else worker_daemon.MODULE)
