"""The private files by which processes find a warm Spark: who may read them, and when they go."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from stagecoach.infra.errors import ConfigError
from stagecoach.infra.spark import announcements
from stagecoach.infra.spark.announcements import (
    Announcement,
    Published,
    find_servers,
    machine,
    server_folder,
)
from stagecoach.infra.spark.server_life import Life

SERVER = Announcement(
    port=20_123,
    token="secret-token",
    owner="warm",
    watcher_pid=4321,
    started=1000.0,
    ttl_seconds=1800.0,
    log="/logs/connect-server.log",
    host="",
    digests={"Python": "ab"},
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder of this user, empty."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temp"))
    return folder / "stagecoach" / "warm"


def test_a_server_is_found_as_it_was_announced(cache: Path) -> None:
    newer = replace(SERVER, started=2000.0, owner="ui", ttl_seconds=None)
    first, second = Published(SERVER), Published(newer)
    assert first.path.parent == cache
    assert [found.announcement for found in find_servers()] == [newer, SERVER]
    assert "secret-token" not in repr(SERVER) + SERVER.url
    second.withdraw()
    assert [found.announcement for found in find_servers()] == [SERVER]
    assert first.path.exists()


def test_the_token_is_where_only_its_user_can_read_it(cache: Path) -> None:
    published = Published(SERVER)
    assert cache.stat().st_mode & 0o777 == 0o700
    for path in cache.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
    holding = [p for p in cache.rglob("*") if p.is_file() and b"secret-token" in p.read_bytes()]
    assert holding == [published.path]


def test_nothing_is_announced_where_others_can_enter(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announcements, "cache_folders", lambda: iter([cache.parent]))
    cache.mkdir(parents=True)
    cache.chmod(0o755)
    with pytest.raises(ConfigError, match="other users can enter it"):
        Published(SERVER)
    with pytest.raises(ConfigError, match="private"):
        server_folder()
    cache.chmod(0o700)
    cache.parent.chmod(0o777)
    with pytest.raises(ConfigError, match="other users can write to it"):
        Published(SERVER)


def test_files_that_others_could_have_written_are_not_read(cache: Path) -> None:
    published = Published(SERVER)
    published.path.chmod(0o644)
    assert find_servers() == []
    published.path.chmod(0o600)
    assert len(find_servers()) == 1
    other = cache / f"{machine()}-other.json"
    other.symlink_to(published.path)
    assert [found.path for found in find_servers()] == [published.path]
    cache.chmod(0o750)
    assert find_servers() == []


def test_a_file_of_another_version_is_left_alone(cache: Path) -> None:
    published = Published(replace(SERVER, version=99))
    assert find_servers() == []
    assert published.path.exists()


def test_files_of_another_machine_are_left_alone(cache: Path) -> None:
    published = Published(SERVER)
    elsewhere = cache / published.path.name.replace(machine(), "0" * 16)
    elsewhere.write_bytes(published.path.read_bytes())  # which nobody has locked
    elsewhere.chmod(0o600)
    assert [found.path for found in find_servers()] == [published.path]
    assert elsewhere.exists()


_WATCHER = """
import json, sys, time
from stagecoach.infra.spark.announcements import Announcement, Published
published = Published(Announcement(**json.loads(sys.argv[1])))
print(published.path, flush=True)
time.sleep(600)
"""


def test_the_file_of_a_killed_watcher_is_removed_by_who_finds_it(cache: Path) -> None:
    # Its number is that of a process that runs: only the lock tells.
    given = json.dumps({**vars(SERVER), "watcher_pid": os.getpid()})
    with subprocess.Popen(
        [sys.executable, "-c", _WATCHER, given], stdout=subprocess.PIPE, text=True
    ) as watcher:
        assert watcher.stdout is not None
        path = Path(watcher.stdout.readline().strip())
        assert [found.path for found in find_servers()] == [path]
        watcher.kill()
        watcher.wait()
    assert path.exists()
    assert find_servers() == []
    assert list(cache.iterdir()) == []


def test_a_server_ends_after_a_time_without_use_and_not_while_it_is_used() -> None:
    life = Life(parent=os.getpid(), ttl_seconds=0.05)
    assert life.is_starting
    assert not life.is_over()
    life.announce(Published(SERVER))
    assert not life.is_starting
    (found,) = find_servers()
    hold, other = found.hold(), found.hold()  # two commands at once
    assert hold is not None
    assert other is not None
    hold.release()
    time.sleep(0.1)
    assert found.is_in_use()
    assert not life.is_over()
    other.release()
    assert not found.is_in_use()
    assert not life.is_over()  # it was in use a moment ago
    time.sleep(0.1)
    assert life.is_over()
    assert life.is_over()
    assert find_servers() == []
    assert found.hold() is None


def test_a_server_that_is_withdrawn_cannot_be_held() -> None:
    published = Published(SERVER)
    (found,) = find_servers()
    hold = found.hold()
    assert hold is not None
    assert not published.withdraw_if_unused()
    hold.release()
    assert published.withdraw_if_unused()
    assert found.hold() is None


def test_who_removes_the_file_ends_the_server_and_can_wait_for_it() -> None:
    published = Published(SERVER)
    life = Life(parent=os.getpid(), ttl_seconds=1000.0)
    life.announce(published)
    (found,) = find_servers()
    assert not life.is_over()
    assert not found.end(0.1)  # its watcher has not ended yet
    assert life.is_over()
    life.end()
    os.close(published._lock)  # as when it ends
    assert found.end(0.1)


def test_the_server_of_a_ui_lives_as_long_as_the_ui(cache: Path) -> None:
    life = Life(parent=os.getppid(), ttl_seconds=None)
    life.announce(Published(replace(SERVER, owner="ui", ttl_seconds=None)))
    assert not life.is_starting
    for path in cache.iterdir():
        path.unlink()
    assert not life.is_over()
    assert Life(parent=1 << 30, ttl_seconds=None).is_over()
