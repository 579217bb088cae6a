"""Completion of the command line, by the scripts that shells source."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from stagecoach.commands.completion import SHELLS, VARIABLE
from stagecoach.commands.main import cli


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_ask_the_command(shell: str) -> None:
    result = CliRunner().invoke(cli, ["completion", shell])
    assert result.exit_code == 0, result.output
    assert VARIABLE in result.stdout
    assert "stagecoach" in result.stdout
    if (found := shutil.which(shell)) is not None:
        checked = subprocess.run(
            [found, "-n"], input=result.stdout, capture_output=True, text=True, check=False
        )
        assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("stagecoach comp", {"compile", "completion"}),
        ("stagecoach query --fo", {"--format"}),
        ("stagecoach query --format ver", {"vertical"}),
        ("stagecoach query --set planner.num", {"planner.num_partitions="}),
    ],
)
def test_what_bash_is_told(words: str, expected: set[str]) -> None:
    command = Path(sys.executable).parent / "stagecoach"
    environment = {
        **os.environ,
        VARIABLE: "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    done = subprocess.run([command], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert {line.split(",")[1] for line in done.stdout.splitlines()} == expected


@pytest.mark.parametrize(
    ("words", "begun", "expected"),
    [
        (["tables"], "pub", ["publish"]),
        (["tables"], "or", ["orders"]),
        (["tables"], "c", ["chunks", "clear", "compact", "create", "Customers"]),
        (["tables", "show"], "", ["orders", "Customers"]),
        (["tables", "orders"], "cu", ["Customers"]),
        (["tables", "--catalog", "other.yaml"], "", ["returns"]),
        (["tables", "--catalog", "wrong.yaml"], "", []),
        (["tables", "--catalog", "missing.yaml"], "", []),
        (["tables", "orders"], "--vers", ["--versions"]),
    ],
)
def test_tables_and_what_is_done_to_them(
    words: list[str],
    begun: str,
    expected: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pipelines").mkdir()
    tables = "tables:\n  orders: {location: a}\n  Customers: {location: b}\n"
    (tmp_path / "pipelines" / "catalog.yaml").write_text(tables)
    (tmp_path / "other.yaml").write_text("tables:\n  returns: {location: c}\n")
    (tmp_path / "wrong.yaml").write_text("tables: [\n")
    found = ShellComplete(cli, {}, "stagecoach", VARIABLE).get_completions(words, begun)
    assert [item.value for item in found] == expected


def test_other_shells_are_refused() -> None:
    result = CliRunner().invoke(cli, ["completion", "tcsh"])
    assert result.exit_code == 2
    assert "'tcsh' is not one of" in result.output
