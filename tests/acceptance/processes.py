"""Other processes that tests start: the command line, a Spark Connect server. All are ended again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

COMMAND = (sys.executable, "-m", "stagecoach.commands.main")
ROOT = Path(__file__).parents[2]
FORCED = {"force_distribution": "true", "broadcast_bytes": "0", "num_partitions": "3"}


def planner_arguments(options: Mapping[str, str]) -> list[str]:
    """Planner options for the command line."""
    return [a for name, value in options.items() for a in ("--set", f"planner.{name}={value}")]


def environment(**more: str) -> dict[str, str]:
    """This process's environment without what would change a run, and with `more`."""
    # A Spark of this process, if there is one, has named its Python for executors, too.
    changing = ("STAGECOACH_", "SPARK_", "PYSPARK_")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(changing)}
    # How JVMs of tests are started, which changes no result; see tests/conftest.py.
    kept |= {k: v for k, v in os.environ.items() if k == "SPARK_SUBMIT_OPTS"}
    folders = [more.pop("PYTHONPATH", ""), str(ROOT)]
    return {**kept, "PYTHONPATH": os.pathsep.join(f for f in folders if f), **more}


def run_command(
    arguments: Sequence[str], folder: Path, *, seconds: float = 240
) -> subprocess.CompletedProcess[str]:
    """Run `stagecoach …` in a folder and wait for its end."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )


@contextmanager
def started(
    command: Sequence[str], folder: Path, log: Path, env: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a group of its own, which is killed with all its children at the end."""
    with open(log, "wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        kill_group(process)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL to a process and all its children: Python, JVM and workers at the same moment.

    Spark's Python workers are a process group of their own, but of the same session.
    """
    members = [pid for pid in _processes() if _session_of(pid) == process.pid]
    for pid in {process.pid, *members} if process.poll() is None else members:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait(timeout=30)


def _processes() -> list[int]:
    listed = subprocess.run(["ps", "-A", "-o", "pid="], capture_output=True, text=True, check=True)
    return [int(pid) for pid in listed.stdout.split()]


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):
        return None


def wait_until(
    condition: Callable[[], bool],
    process: subprocess.Popen[bytes],
    log: Path,
    *,
    seconds: float = 200,
    interval_seconds: float = 0.01,
) -> None:
    """Return when the condition holds; fail with the log if the process ends first."""
    deadline = time.monotonic() + seconds
    while not condition():
        ended = process.poll() is not None
        if (ended and not condition()) or time.monotonic() > deadline:
            what = f"ended with {process.returncode}" if ended else f"took more than {seconds} s"
            raise AssertionError(f"the process {what}:\n{log.read_text(errors='replace')[-3000:]}")
        time.sleep(interval_seconds)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_open(port: int) -> bool:
    """Whether somebody listens on the loopback port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=0.5).close()
    except OSError:
        return False
    return True
