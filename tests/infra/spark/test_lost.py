"""Errors of a Spark that is gone, in or between its jobs, are ours, and the next session is another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from benchmarks.faults.local_runs import LocalRuns, write_tables
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.errors import SparkLostError, TaskFailedError
from stagecoach.infra.runtime.stages import attempt
from stagecoach.infra.spark import session as sessions
from stagecoach.infra.spark.lost import lost_spark

REMOTE = EngineSettings(remote="sc://server:15002")
CLASSIC = EngineSettings(master="spark://cluster:7077")
GONE = PySparkException("[NO_ACTIVE_SESSION] No active Spark session found.")


class ConnectSession:
    """In the place of a session on a Connect server."""

    __module__ = "pyspark.sql.connect.session"
    session_id = "1"


class ClassicSession:
    """In the place of one whose JVM does not answer."""

    def __init__(self) -> None:
        self.sparkContext = self
        self._jsc: Any = self

    def sc(self) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    def stop(self) -> None:
        self._jsc = None


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Sessions by address, none at first."""
    found: dict[str, Any] = {}
    monkeypatch.setattr(sessions, "_sessions", found)
    yield found
    found.clear()


def test_a_lost_server_is_forgotten(known: dict[str, Any]) -> None:
    known["sc://server:15002"] = ConnectSession()
    assert lost_spark(ValueError("of ours"), REMOTE) is None
    assert known
    found = lost_spark(GONE, REMOTE)
    assert isinstance(found, SparkLostError)
    assert "sc://server:15002 was started anew or does not answer" in str(found)
    assert not known
    again = lost_spark(GONE, REMOTE)
    assert isinstance(again, SparkLostError), "another stage has forgotten it before"
    unavailable = ValueError("UNAVAILABLE")
    assert lost_spark(unavailable, REMOTE) is None, "none of Spark"


def test_whatever_fails_where_the_jvm_has_ended_says_so(known: dict[str, Any]) -> None:
    known["spark://cluster:7077"] = ClassicSession()
    found = lost_spark(AssertionError(), CLASSIC)
    assert isinstance(found, SparkLostError)
    assert "has ended" in str(found)


@pytest.mark.parametrize("error", [GONE, PySparkException("[OTHER] No executors")])
def test_no_error_of_pyspark_leaves_a_stage(
    error: PySparkException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: dict[str, Any]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    settings = EngineSettings(
        storage_root=str(tmp_path / "root"), spill_dir=str(tmp_path / "spill"), parallelism=2
    )
    runs = LocalRuns(write_tables(tmp_path / "tables", rows=20), settings)
    monkeypatch.setattr(attempt, "build_specs", fail)
    with pytest.raises(TaskFailedError, match="totals/stage_0 failed: Spark failed with"):
        runs.run(runs.plan("totals"))
    known[settings.master] = ClassicSession()
    with pytest.raises(SparkLostError, match="the next try starts it anew"):
        runs.run(runs.plan("totals"))
