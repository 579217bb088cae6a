"""Processes of Spark on this machine, by session and command line."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from benchmarks.cluster.sessions import members

_PROC = Path("/proc")


def executors(leader: int, app: str) -> list[int]:
    """JVMs of the executors that a worker has started for an application."""
    marks = ("CoarseGrainedExecutorBackend", app)
    return [pid for pid in members([leader]) if all(m in _words(pid) for m in marks)]


def jvms(leader: int) -> list[int]:
    """All JVMs of a session."""
    return [pid for pid in members([leader]) if "SparkSubmit" in _words(pid)]


def python_workers(leader: int) -> list[int]:
    """Python workers of all executors of a worker: forks of Spark's daemon, not the daemon."""
    pids = {pid for pid in members([leader]) if "pyspark.daemon" in _words(pid)}
    return [pid for pid in pids if _parent(pid) in pids]


def with_python(executor: int) -> list[int]:
    """An executor's JVM and all that it has started."""
    pids, left = [executor], [executor]
    everybody = members([os.getsid(executor)])
    while left:
        parent = left.pop()
        children = [pid for pid in everybody if _parent(pid) == parent]
        pids += children
        left += children
    return pids


def send(pids: Iterable[int], number: signal.Signals) -> int:
    """Send a signal; return how many processes there were."""
    count = 0
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
            count += 1
    return count


def _words(pid: int) -> list[str]:
    """The arguments of a process, and the parts of Java's class names in them."""
    try:
        words = (_PROC / str(pid) / "cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return []
    return [*words, *(word.rpartition(".")[2] for word in words)]


def _parent(pid: int) -> int:
    try:
        return int((_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return -1
