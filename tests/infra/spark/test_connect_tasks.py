"""Progress that a Connect server reports, and a job of which no task is run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from stagecoach.infra.errors import ServerIdleError
from stagecoach.infra.spark import jobs
from stagecoach.infra.spark.connect_tasks import ConnectTasks, TaskCounts
from stagecoach.infra.spark.jobs import JobProgress, job_tag, tagged_job

Report = Callable[..., None]


class ConnectSession:
    """What a session of Spark Connect does whose server has no executors."""

    __module__ = "pyspark.sql.connect.session"

    def __init__(self) -> None:
        self.handlers: list[Report] = []
        self.interrupted = threading.Event()

    def registerProgressHandler(self, handler: Report) -> None:
        self.handlers.append(handler)

    def removeProgressHandler(self, handler: Report) -> None:
        self.handlers.remove(handler)

    def interruptTag(self, _: str) -> list[str]:
        self.interrupted.set()
        return ["operation"]

    def addTag(self, _: str) -> None: ...

    def removeTag(self, _: str) -> None: ...

    def stop(self) -> None: ...

    def report(self, running: int, *stages: tuple[int, int], done: bool = False) -> None:
        found = [SimpleNamespace(num_completed_tasks=n, num_tasks=of) for n, of in stages]
        for handler in self.handlers:
            handler(found, running, "operation", done)

    def run_job(self) -> None:
        assert self.interrupted.wait(20), "nobody has given the job up"
        raise ValueError("[OPERATION_CANCELED]")


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(jobs, "_EXECUTOR_POLL_SECONDS", 0.01)
    return ConnectSession()


@pytest.mark.parametrize(
    "stages", [[(3, 8)], [(8, 8)]], ids=["some pending", "one ended with its executor and waits"]
)
def test_a_job_of_which_nobody_runs_tasks_is_given_up(
    session: Any, stages: list[tuple[int, int]]
) -> None:
    with (
        pytest.raises(ServerIdleError, match=r"has run no task of the stage for 0\.05 s") as caught,
        tagged_job(session, job_tag("run", 1), "", executor_seconds=0.05),
    ):
        session.report(0, *stages)
        session.run_job()
    assert not session.handlers
    # The next try would wait as long, as would all other stages in turn.
    assert not caught.value.retryable


@pytest.mark.parametrize(
    ("running", "stages", "done"),
    [(1, [(3, 8)], False), (0, [(3, 8)], True), (0, [], False)],
    ids=["one runs", "the operation has ended", "nothing is known yet"],
)
def test_other_jobs_are_left_alone(
    session: Any, running: int, stages: list[tuple[int, int]], done: bool
) -> None:
    with tagged_job(session, job_tag("run", 2), "", executor_seconds=0.05):
        session.report(running, *stages, done=done)
        assert not session.interrupted.wait(0.2)


def test_without_a_limit_nobody_watches(session: Any) -> None:
    with tagged_job(session, job_tag("run", 3), ""):
        session.report(0, (0, 8))
        assert not session.interrupted.wait(0.1)


def test_the_listener_hears_of_all_stages_together(session: Any) -> None:
    heard: list[JobProgress] = []
    with tagged_job(session, "tag", "", heard.append):
        session.report(0)
        session.report(2, (3, 4), (0, 5))
    assert heard == [JobProgress("tag", 3, 9)]


def test_operations_of_other_threads_are_not_this_jobs() -> None:
    tasks = ConnectTasks()
    stage = SimpleNamespace(num_completed_tasks=1, num_tasks=2)
    other = threading.Thread(target=tasks, args=([stage], 1, "other", False))
    other.start()
    other.join()
    assert tasks.counts == TaskCounts()
    tasks([stage], 1, "own", False)
    assert tasks.counts == TaskCounts(running=1, completed=1, total=2)
