"""A command does not wait for its Spark to stop; the Spark ends all the same, and leaves nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.waiting import wait_for

_PROGRAM = """
import sys
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.host.ending import begin_command
from stagecoach.infra.spark.session import get_session, stop_sessions
begin_command()
conf = dict(item.split("=", 1) for item in sys.argv[1:])
context = get_session(EngineSettings(master="local[1]", spark_conf=conf)).sparkContext
assert context.parallelize([1, 2], 1).map(lambda x: x + 1).collect() == [2, 3]
stop_sessions()
print(context._gateway.proc.pid, context._jsc is None)
"""


def run(folder: Path, *conf: str) -> tuple[int, bool]:
    """The process that Spark runs in, and whether it was stopped by the command."""
    places = (f"spark.local.dir={folder}", *conf)
    command = [sys.executable, "-c", _PROGRAM, *places]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    pid, stopped = done.stdout.split()
    return int(pid), stopped == "True"


def is_gone(pid: int) -> bool:
    try:
        return not Path(f"/proc/{pid}/cmdline").read_bytes()  # one that nobody waited for has none
    except OSError:
        return True


def test_spark_ends_with_its_command_and_removes_its_files(tmp_path: Path) -> None:
    pid, stopped = run(tmp_path)
    assert not stopped
    wait_for(lambda: is_gone(pid), seconds=20)
    assert list(tmp_path.iterdir()) == []


def test_with_an_event_log_it_is_stopped_first(tmp_path: Path) -> None:
    logs, local = tmp_path / "logs", tmp_path / "local"
    logs.mkdir()
    local.mkdir()
    conf = ("spark.eventLog.enabled=true", f"spark.eventLog.dir={logs.as_uri()}")
    _, stopped = run(local, *conf)
    assert stopped
    names = [path.name for path in logs.rglob("*")]
    assert names
    assert not any(name.endswith(".inprogress") for name in names)
