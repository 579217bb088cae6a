"""`stagecoach ui`: which Spark its runs get, and what the process that it becomes is started with."""

from __future__ import annotations

import dataclasses
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from stagecoach.commands.main import cli
from stagecoach.commands.ui import start_spark
from stagecoach.host import pages_server, run_host
from stagecoach.infra.config.settings import PAGES_VARIABLE, EngineSettings
from stagecoach.infra.errors import ConfigError
from stagecoach.infra.spark import connect_server
from stagecoach.infra.spark.connect_conf import TOKEN_VARIABLE
from stagecoach.infra.spark.connect_server import WarmServer
from stagecoach.web.policy import POLICY_VARIABLE, WebPolicy, take_policy

Started = tuple[Sequence[str], Mapping[str, str]]


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("STAGECOACH_REMOTE", "STAGECOACH_STORAGE", "STAGECOACH_STORAGE_ROOT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    # Processes of their own, which would outlive the test.
    host = {run_host.HOST_VARIABLE: "host.sock"}
    monkeypatch.setattr(run_host, "launch", lambda log, environment: host)
    monkeypatch.setattr(pages_server, "launch", _pages)


def _pages(
    storage: str, host: str, port: int, url: str, log: Path, policy: WebPolicy
) -> Mapping[str, str]:
    return {PAGES_VARIABLE: url}


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[EngineSettings, Path]]:
    """What servers were launched, none of which really was."""
    calls: list[tuple[EngineSettings, Path]] = []

    def launch(settings: EngineSettings, folder: Path, *, announced: bool) -> WarmServer:
        assert announced  # commands beside the UI use it, too
        calls.append((settings, folder))
        return WarmServer(port=20_123, token="secret", log=folder / "log", watcher_pid=1)

    monkeypatch.setattr(connect_server, "launch", launch)
    return calls


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Started]:
    """What the process would have become."""
    calls: list[Started] = []

    def execve(program: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        calls.append((command, environment))

    monkeypatch.setattr(os, "execve", execve)
    return calls


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ui(*options: str) -> str:
    result = CliRunner().invoke(cli, ["ui", "--port", str(free_port()), *options])
    assert result.exit_code == 0, result.output
    return result.output


def test_runs_find_the_warm_server_in_the_environment(
    launched: list[tuple[EngineSettings, Path]], started: list[Started], tmp_path: Path
) -> None:
    shown = ui()
    ((settings, folder),) = launched
    assert folder == tmp_path / "home" / "spark"
    ((command, environment),) = started
    assert environment["STAGECOACH_REMOTE"] == "sc://localhost:20123"
    assert environment[TOKEN_VARIABLE] == "secret"
    assert "secret" not in " ".join(command) + shown
    assert environment["STAGECOACH_STORAGE_ROOT"] == settings.storage_root


def test_the_policy_reaches_the_webserver_and_nothing_else(
    launched: list[tuple[EngineSettings, Path]],
    started: list[Started],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[Mapping[str, str]] = []
    monkeypatch.setattr(
        run_host, "launch", lambda log, environment: given.append(environment) or {}
    )
    monkeypatch.setenv("STAGECOACH_UI_TOKEN", "correct-horse-battery")
    monkeypatch.setenv("STAGECOACH_UI_ALLOW_HOST", "a.example b.example")
    shown = ui("--allow-origin", "https://c.example", "--pages-url", "https://c.example/pages")
    ((command, environment),) = started
    policy = take_policy(dict(environment))
    assert policy.hosts == {"127.0.0.1", "a.example", "b.example"}
    assert [str(origin) for origin in policy.origins] == ["https://c.example:443"]
    assert policy.token is not None
    assert policy.token.is_token("correct-horse-battery")
    assert environment[PAGES_VARIABLE] == "https://c.example/pages"
    # Neither process lists, nor output, nor runs and what starts them have the token.
    assert "correct-horse" not in " ".join(command) + shown
    assert "correct-horse" not in str(given) + str(dict(os.environ))
    assert [n for n, v in environment.items() if "correct-horse" in v] == [POLICY_VARIABLE]


def test_a_ui_that_would_be_open_by_mistake_does_not_start(
    monkeypatch: pytest.MonkeyPatch, started: list[Started]
) -> None:
    for options, message in (
        (["--token", "hunter2"], "shorter than 16 characters"),
        (["--allow-host", "*"], "needs a token"),
        (["--allow-origin", "*"], "is not a valid origin"),
    ):
        refused = CliRunner().invoke(cli, ["ui", "--no-warm", *options])
        assert refused.exit_code != 0
        assert message in str(refused.exception) + refused.output
    monkeypatch.setenv("STAGECOACH_UI_TOKEN", "")
    refused = CliRunner().invoke(cli, ["ui", "--no-warm"])
    assert refused.exit_code == 2
    assert "STAGECOACH_UI_TOKEN is empty" in refused.output
    assert started == []


def test_a_ui_that_other_machines_reach_without_a_token_says_so(started: list[Started]) -> None:
    note = "can read everything and run code"
    assert note in ui("--no-warm", "--host", "0.0.0.0")
    assert note not in ui("--no-warm", "--host", "0.0.0.0", "--token", "correct-horse-battery")
    assert note not in ui("--no-warm")


def test_runs_find_their_host_and_the_pages(
    launched: list[tuple[EngineSettings, Path]], started: list[Started], tmp_path: Path
) -> None:
    port = free_port()
    result = CliRunner().invoke(cli, ["ui", "--port", str(port)])
    assert result.exit_code == 0, result.output
    ((_, environment),) = started
    assert environment[run_host.HOST_VARIABLE] == "host.sock"
    assert "class: WarmRunLauncher" in (tmp_path / "home" / "dagster.yaml").read_text()
    # The next port that is free.
    found = int(environment[PAGES_VARIABLE].removeprefix("http://127.0.0.1:"))
    assert port < found <= port + 4
    given = free_port()
    ui("--pages-port", str(given))
    assert started[1][1][PAGES_VARIABLE] == f"http://127.0.0.1:{given}"


def test_no_warm_starts_none(
    launched: list[tuple[EngineSettings, Path]], started: list[Started]
) -> None:
    ui("--no-warm")
    assert launched == []
    assert "STAGECOACH_REMOTE" not in started[0][1]


def test_a_server_that_is_configured_is_used(
    launched: list[tuple[EngineSettings, Path]],
    started: list[Started],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STAGECOACH_REMOTE", "sc://spark.example:15002")
    ui()
    assert launched == []
    assert started[0][1]["STAGECOACH_REMOTE"] == "sc://spark.example:15002"


def test_a_server_that_is_named_is_used_if_it_is_there(
    launched: list[tuple[EngineSettings, Path]],
    started: list[Started],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"sc://127.0.0.1:{listening.getsockname()[1]}"
        ui("--remote", url)
    assert launched == []
    assert started[0][1]["STAGECOACH_REMOTE"] == url
    monkeypatch.setattr("stagecoach.commands.ui._REMOTE_SECONDS", 0.1)
    with pytest.raises(ConfigError, match="no Spark Connect server answers"):
        start_spark(tmp_path, "store", remote=url)


def test_settings_reach_the_server(
    launched: list[tuple[EngineSettings, Path]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("STAGECOACH_MASTER", "local[1]")
    monkeypatch.setenv("STAGECOACH_SPARK_CONF", '{"spark.driver.memory": "3g"}')
    assert start_spark(tmp_path, "store") is not None
    ((settings, _),) = launched
    wanted = dataclasses.replace(
        EngineSettings(), master="local[1]", spark_conf={"spark.driver.memory": "3g"}
    )
    assert dataclasses.replace(settings, storage_root=wanted.storage_root) == wanted
