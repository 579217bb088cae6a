"""Threads that are used again: what is left of one piece of work for the next, and of a fork."""

import os
import threading
from contextvars import ContextVar
from functools import partial

from stagecoach.infra.host.daemon_threads import IDLE, DaemonThreads
from tests.waiting import wait_for

SECONDS = 30
left = ContextVar("left", default="nothing")


def _begun(threads: DaemonThreads, names: list[str]) -> tuple[list[threading.Thread], list[str]]:
    """Start work that waits for all of it; return the threads, and what each has found."""
    together = threading.Barrier(len(names) + 1)
    found: list[threading.Thread] = []
    seen: list[str] = []

    def work() -> None:
        found.append(threading.current_thread())
        seen.append(left.get())
        left.set("something")
        together.wait(SECONDS)

    for name in names:
        threads.start(name, work)
    wait_for(lambda: len(found) == len(names), SECONDS)
    assert sorted(thread.name for thread in found) == sorted(names)
    together.wait(SECONDS)
    return found, seen


def _all_idle(threads: list[threading.Thread]) -> None:
    wait_for(lambda: all(t.name == IDLE or not t.is_alive() for t in threads), SECONDS)


def test_an_idle_thread_is_used_again_in_a_new_context() -> None:
    threads = DaemonThreads(max_idle=2)
    first, seen = _begun(threads, ["a", "b"])
    _all_idle(first)
    wait_for(lambda: len(threads._idle) == 2, SECONDS)
    second, seen_again = _begun(threads, ["c", "d"])
    assert set(first) == set(second)
    assert [*seen, *seen_again] == ["nothing"] * 4
    assert all(thread.daemon for thread in first)


def test_threads_beyond_the_limit_end() -> None:
    threads = DaemonThreads(max_idle=1)
    found, _ = _begun(threads, ["a", "b", "c"])
    wait_for(lambda: sum(thread.is_alive() for thread in found) == 1, SECONDS)


def test_a_forked_process_has_threads_of_its_own() -> None:
    threads = DaemonThreads(max_idle=1)
    found, _ = _begun(threads, ["a"])
    _all_idle(found)
    wait_for(lambda: len(threads._idle) == 1, SECONDS)
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            threads.start("child", partial(os.write, tell, b"x"))
            wait_for(lambda: len(threads._idle) == 1, SECONDS)
            code = 0
        finally:
            os._exit(code)  # whatever happens: the tests go on in the parent alone
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert os.read(told, 1) == b"x"
    os.close(told)
    os.close(tell)
