"""What is ended of a cluster: the sessions that it has started, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks.cluster.sessions import end_sessions, started_at

_PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
child.wait()
"""


def test_a_session_ends_with_its_children_and_others_stay() -> None:
    command = [sys.executable, "-c", _PARENT]
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(command, stdout=pipe, start_new_session=True) as ours,
        subprocess.Popen(command, stdout=pipe, start_new_session=True) as other,
    ):
        assert ours.stdout is not None
        assert other.stdout is not None
        child = int(ours.stdout.readline())
        others_child = int(other.stdout.readline())
        try:
            assert started_at(ours.pid)
            assert end_sessions([ours.pid]) == 2
            assert ours.wait(10) == -9
            assert other.poll() is None
            os.kill(others_child, 0)
        finally:
            end_sessions([other.pid])
    assert started_at(ours.pid) == ""
    assert child != others_child


def test_a_process_is_told_from_another_one_with_its_number() -> None:
    assert started_at(os.getpid()) == started_at(os.getpid()) != ""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert started_at(process.pid) != started_at(os.getpid())
        assert int(started_at(process.pid)) >= int(started_at(os.getpid()))
        process.kill()
