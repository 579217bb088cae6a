"""A session that starts in a thread: whoever asks for it waits, and gets it or its error."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, cast

import grpc
import pytest
from pyspark.sql.connect.client.artifact import ArtifactManager

from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.errors import ConfigError
from stagecoach.infra.spark import leases
from stagecoach.infra.spark import session as sessions
from stagecoach.infra.spark.code_archive import code_zip
from stagecoach.infra.spark.early_start import EarlyStart
from stagecoach.infra.spark.leases import SparkLease
from stagecoach.infra.spark.session_kinds import is_alive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = EngineSettings(master="local[7]")


class Spark:
    """In the place of a classic session."""

    def __init__(self) -> None:
        self.sparkContext = self
        self._jsc: Any = self
        self.is_stopped_by_itself = False

    def stop(self) -> None:
        self._jsc = None

    def sc(self) -> Spark:
        return self

    def isStopped(self) -> bool:
        return self.is_stopped_by_itself


@pytest.fixture(autouse=True)
def _nothing_started(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No sessions of other tests, nor of these for others."""
    monkeypatch.setattr(sessions, "_sessions", {})
    monkeypatch.setattr(sessions, "_failures", {})
    monkeypatch.setattr(leases, "_held", set())
    yield
    sessions.stop_sessions()


def starting(monkeypatch: pytest.MonkeyPatch, start: Callable[[], Spark]) -> list[str]:
    """Start sessions so; return the threads that do it, as they come."""
    threads: list[str] = []

    def noted(settings: EngineSettings) -> Spark:
        threads.append(threading.current_thread().name)
        return start()

    monkeypatch.setattr(sessions, "start_classic", noted)
    return threads


def early() -> None:
    """Start the session in a thread and wait until that has ended."""
    EarlyStart(SETTINGS)._thread.join(10)


def test_who_asks_waits_for_the_session_that_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end, spark = threading.Event(), threading.Event(), Spark()

    def start() -> Spark:
        begun.set()
        assert may_end.wait(10)
        return spark

    threads = starting(monkeypatch, start)
    EarlyStart(SETTINGS)
    assert begun.wait(10)
    got: list[object] = []
    asking = threading.Thread(target=lambda: got.append(sessions.get_session(SETTINGS)))
    asking.start()
    asking.join(0.1)
    assert asking.is_alive()
    may_end.set()
    asking.join(10)
    assert got == [spark]
    assert threads == ["spark"]


def test_an_early_failure_is_raised_once_and_then_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcomes: list[Exception | Spark] = [ConfigError("no memory"), spark := Spark()]

    def start() -> Spark:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    threads = starting(monkeypatch, start)
    early()
    with pytest.raises(ConfigError, match="no memory"):
        sessions.get_session(SETTINGS)
    assert threads == ["spark"]
    assert sessions.get_session(SETTINGS) is spark  # type: ignore[comparison-overlap]
    early()
    assert len(threads) == 2


def test_what_is_abandoned_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child of the process is in the place of the JVM: its end is a failure of the start."""
    children: list[subprocess.Popen[bytes]] = []

    def start() -> Spark:
        children.append(subprocess.Popen(["sleep", "60"]))
        raise ConfigError(f"the JVM ended: {children[0].wait()}")

    starting(monkeypatch, start)
    bystander = subprocess.Popen(["sleep", "60"])
    begun = EarlyStart(SETTINGS)
    try:
        begun.abandon()
        assert [child.returncode for child in children] == [-signal.SIGKILL]
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()
    # Its failure is nobody's.
    starting(monkeypatch, Spark)
    assert isinstance(sessions.get_session(SETTINGS), Spark)


def test_only_a_session_that_was_started_early_ends_when_it_is_abandoned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starting(monkeypatch, Spark)
    new = EarlyStart(SETTINGS)
    new._thread.join(10)
    new.abandon()
    assert not sessions._sessions
    kept = sessions.get_session(SETTINGS)
    again = EarlyStart(SETTINGS)
    again._thread.join(10)
    again.abandon()
    assert sessions.get_session(SETTINGS) is kept


def test_the_last_of_its_users_stops_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    starting(monkeypatch, Spark)
    first, second = SparkLease(), SparkLease()
    for lease in (first, first, second):
        lease.take()
    spark = sessions.get_session(SETTINGS)
    first.release()
    first.release()
    assert not first.is_held
    assert is_alive(spark)
    second.release()
    assert not is_alive(spark)


def test_spark_that_has_ended_by_itself_is_started_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Spark(), Spark()
    made = iter((first, second))
    starting(monkeypatch, lambda: next(made))
    assert sessions.get_session(SETTINGS) is first
    assert sessions.get_session(SETTINGS) is first
    first.is_stopped_by_itself = True  # the cluster has given the application up
    assert sessions.get_session(SETTINGS) is second
    assert first._jsc is None, "pyspark must not give it to anybody"


def test_spark_whose_jvm_was_killed_is_started_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> bool:
        raise ConnectionRefusedError(111, "Connection refused")

    first, second = Spark(), Spark()
    made = iter((first, second))
    starting(monkeypatch, lambda: next(made))
    assert sessions.get_session(SETTINGS) is first
    monkeypatch.setattr(first, "isStopped", refuse)
    assert sessions.get_session(SETTINGS) is second


def test_a_classic_session_that_is_forgotten_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Spark(), Spark()
    made = iter((first, second))
    starting(monkeypatch, lambda: next(made))
    forgotten: Any = sessions.get_session(SETTINGS)
    sessions.forget_session(forgotten)
    assert first._jsc is None
    assert sessions.get_session(SETTINGS) is second
    sessions.forget_session(forgotten)  # by another of its stages
    assert sessions.get_session(SETTINGS) is second


def test_a_late_error_of_a_lost_server_leaves_the_next_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Connected:
        __module__ = "pyspark.sql.connect.session"
        is_stopped = False
        session_id = "id"

    settings = EngineSettings(remote="sc://server:15002")
    monkeypatch.setattr(sessions, "_connect", lambda settings: Connected())
    monkeypatch.setattr(sessions, "_release", lambda session, url: None)
    first: Any = sessions.get_session(settings)
    with ThreadPoolExecutor(1) as other:  # a stage that began with the first, too
        assert other.submit(sessions.get_session, settings).result() is first
        sessions.forget_session(first)
        second: Any = sessions.get_session(settings)
        assert second is not first
        other.submit(sessions.forget_session, first).result()
        assert sessions.get_session(settings) is second
        # It has got the second, and notices first that this one is gone as well.
        other.submit(sessions.get_session, settings).result()
        other.submit(sessions.forget_session, second).result()
    assert sessions.get_session(settings) is not second
    sessions.stop_sessions()


@pytest.mark.parametrize("fails", [False, True])
def test_the_code_that_a_server_gets_is_not_added_to_our_own_path(
    monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """pyspark adds it, and then sends it."""
    before = list(sys.path)
    manager = ArtifactManager("user", "session", grpc.insecure_channel("127.0.0.1:1"), [])

    class Remote:
        """In the place of a Connect session."""

        def addArtifacts(self, path: str, pyfile: bool) -> None:
            manager.add_artifacts(path, pyfile=pyfile, archive=False, file=False)

    def send(*requests: object) -> None:
        assert str(code_zip()) in sys.path
        if fails:
            raise ConnectionError("no server")

    monkeypatch.setattr(ArtifactManager, "_request_add_artifacts", send)
    with pytest.raises(ConnectionError) if fails else contextlib.nullcontext():
        sessions.ship_code(cast("SparkSession", Remote()))
    assert sys.path == before
