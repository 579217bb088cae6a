"""`stagecoach warm`: starting one, finding it, ending it, and commands that use it or do not."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from stagecoach.arguments.options import open_session, read_settings
from stagecoach.commands.main import cli
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.spark.announcements import Announcement, Published, find_servers
from stagecoach.infra.spark.likeness import digests, likeness


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("STAGECOACH_")]:
        monkeypatch.delenv(name)
    # Not where those of the user who runs the tests are.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temp"))
    monkeypatch.chdir(tmp_path)


def warm(*options: str) -> Result:
    return CliRunner().invoke(cli, ["warm", *options])


def announce(port: int, master: str = "local[*]", ttl_seconds: float | None = 5400.0) -> Published:
    settings = EngineSettings(master=master)
    return Published(
        Announcement(
            port=port,
            token="secret",
            owner="warm" if ttl_seconds else "ui",
            watcher_pid=4321,
            started=1.0,
            ttl_seconds=ttl_seconds,
            log="log",
            host="",
            digests=digests(likeness(settings, os.environ), "secret"),
        )
    )


def test_the_status_without_a_server() -> None:
    assert warm("--status").output == "no warm Spark is running\n"


def test_the_status_of_servers_says_which_are_used_here() -> None:
    announce(20_123)
    announce(20_124, master="local[7]", ttl_seconds=None)
    result = warm("--status")
    assert sorted(result.output.splitlines()) == [
        "Spark of `stagecoach ui` (process 4321, ends with its UI), not in use; "
        "not used here: it has another setting master",
        "Spark of `stagecoach warm` (process 4321, ends after 90 m without use), not in use; "
        "commands here use it",
    ]
    assert "secret" not in result.output
    (used, other) = warm("--status", "--master", "local[7]").output.splitlines()
    assert ("commands here" in used) != ("commands here" in other)


def test_a_second_start_finds_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        announce(server.getsockname()[1])
        result = warm()
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith("warm already: Spark of `stagecoach warm` (process 4321")


_WATCHER = """
import json, sys, time
from stagecoach.infra.spark.announcements import Announcement, Published
published = Published(Announcement(**json.loads(sys.argv[1])))
print("up", flush=True)
while not published.is_withdrawn():
    time.sleep(0.01)
"""


def test_stopping_ends_those_of_the_command_alone() -> None:
    announce(20_124, ttl_seconds=None)
    announcement = {**vars(find_servers()[0].announcement), "owner": "warm", "ttl_seconds": 60.0}
    with subprocess.Popen(
        [sys.executable, "-c", _WATCHER, json.dumps(announcement)], stdout=subprocess.PIPE
    ) as watcher:
        assert watcher.stdout is not None
        watcher.stdout.readline()
        result = warm("--stop")
        # It has ended when the command says so.
        assert os.waitstatus_to_exitcode(os.waitpid(watcher.pid, os.WNOHANG)[1]) == 0
    assert result.exit_code == 0
    assert result.stderr == (
        "ended Spark of `stagecoach warm` (process 4321, ends after 1 m without use)\n"
    )
    assert [found.announcement.owner for found in find_servers()] == ["ui"]
    assert warm("--stop").stderr == "no warm Spark of `stagecoach warm` is running\n"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--ttl", "soon"), "'soon' is not a valid age"),
        (("--status", "--stop"), "cannot be used together"),
        (("--set", "engine.remote=sc://elsewhere"), "names a Spark that all commands use"),
        (("--set", "engine.warm=perhaps"), "commands"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: tuple[str, ...], told: str) -> None:
    result = warm(*options)
    assert result.exit_code == 2
    assert told in result.stderr


CATALOG = "tables: {}\n"
FUNCTION = "functions: {twice: {python: 'code:twice', arguments: [bigint], returns: bigint}}\n"


def users(catalog: str, *assignments: str) -> str:
    Path("catalog.yaml").write_text(catalog)
    Path("code.py").write_text("def twice(x): return 2 * x\n")
    with open_session("catalog.yaml", None, read_settings(assignments)) as session:
        return session.settings.warm


def test_commands_use_a_warm_spark_unless_they_are_told_not_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert users(CATALOG) == "always"
    assert users(CATALOG, "engine.warm=never") == "never"
    monkeypatch.setenv("STAGECOACH_WARM", "never")
    assert users(CATALOG) == "never"


def test_functions_of_the_project_run_in_the_folder_of_the_command() -> None:
    assert users(CATALOG + FUNCTION) == "never"
    assert users(CATALOG + FUNCTION, "engine.warm=always") == "always"
