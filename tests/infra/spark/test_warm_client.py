"""Which warm Spark a process uses, and what it says where it uses none."""

from __future__ import annotations

import logging
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.spark.announcements import Announcement, Owner, Published, find_servers
from stagecoach.infra.spark.likeness import digests, likeness
from stagecoach.infra.spark.warm_client import matching_server, use_warm_server

SETTINGS = EngineSettings(master="local[2]")
TOKEN = "secret-token"


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Not where those of the user who runs the tests are.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temp"))


@pytest.fixture
def port() -> Iterator[int]:
    """A port where somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def announce(
    port: int, settings: EngineSettings = SETTINGS, *, owner: Owner = "warm", started: float = 1.0
) -> Published:
    return Published(
        Announcement(
            port=port,
            token=TOKEN,
            owner=owner,
            watcher_pid=os.getpid(),
            started=started,
            ttl_seconds=60.0,
            log="log",
            host="",
            digests=digests(likeness(settings, os.environ), TOKEN),
        )
    )


def test_a_server_like_this_process_is_used_and_held(port: int) -> None:
    published = announce(port)
    used = use_warm_server(SETTINGS)
    assert used is not None
    assert (used.url, used.token) == (f"sc://localhost:{port}", TOKEN)
    assert TOKEN not in repr(used)
    assert published.is_in_use()
    used.hold.release()
    assert not published.is_in_use()


def test_of_several_servers_one_that_fits_is_used(port: int) -> None:
    announce(port, started=1.0)
    announce(1, EngineSettings(master="local[7]"), started=2.0)
    used = use_warm_server(SETTINGS)
    assert used is not None
    assert used.url.endswith(f":{port}")
    found = matching_server(SETTINGS)
    assert found is not None
    assert found.announcement.port == port
    assert matching_server(EngineSettings(master="local[8]")) is None


@pytest.mark.parametrize(("owner", "level"), [("warm", "WARNING"), ("ui", "INFO")])
def test_what_differs_is_told_by_name_and_not_by_value(
    port: int,
    owner: Owner,
    level: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    published = announce(port, owner=owner)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    with caplog.at_level(logging.INFO, "stagecoach"):
        assert use_warm_server(SETTINGS) is None
    (record,) = caplog.records
    assert record.levelname == level
    assert record.getMessage() == (
        f"the Spark of `stagecoach {owner}` is not used here: "
        "it has another variable AWS_SECRET_ACCESS_KEY"
    )
    assert not published.is_in_use()


def test_a_server_that_does_not_answer_is_not_used(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    announce(free)
    assert use_warm_server(SETTINGS) is None
    assert "it does not answer" in caplog.text
    assert len(find_servers()) == 1  # its watcher may start it again


def test_nothing_is_said_where_there_is_none(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "stagecoach"):
        assert use_warm_server(SETTINGS) is None
    assert caplog.records == []
