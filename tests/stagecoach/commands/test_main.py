"""The command line without a run: help, usage, exit codes, plans, tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from stagecoach.commands.main import cli
from stagecoach.commands.ui import dagster_command, prepare_home

COMMANDS = ("compile", "demo", "explain", "gc", "query", "tables", "ui")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a catalog of one table and nothing else, made the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STAGECOACH_STORAGE", raising=False)
    (tmp_path / "pets").mkdir()
    table = pa.table({"name": ["Rex", "Tom"], "age": pa.array([3, 4], pa.int32())})
    pq.write_table(table, tmp_path / "pets" / "a.parquet")
    (tmp_path / "catalog.yaml").write_text("tables:\n  pets: {location: pets}\n")
    return tmp_path


def run(*args: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, args, input=stdin)


def query(sql: str, *args: str) -> Result:
    return run("query", "-", "--catalog", "catalog.yaml", *args, stdin=sql)


def test_help_lists_every_command_and_cuts_no_summary() -> None:
    result = run("--help")
    assert result.exit_code == 0
    for command in COMMANDS:
        assert f"  {command} " in result.stdout
    for name in cli.list_commands(click.Context(cli)):
        assert cli.get_command(click.Context(cli), name) is not None
        assert f"\n  {name} " in result.stdout
    for text in (result.stdout, run("tables", "--help").stdout):
        assert not [
            line for line in text.splitlines() if line.endswith("...") and "ARGS" not in line
        ]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command(command: str) -> None:
    result = run(command, "-h")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: cli {command}")


def test_help_names_what_the_issue_asks_for() -> None:
    text = run("query", "--help").stdout
    for option in (
        "--catalog",
        "--param",
        "--storage",
        "--output",
        "--output-dir",
        "--format",
        "--limit",
        "--engine",
        "--fresh",
        "--set",
        "--master",
        "--remote",
        "--time-zone",
        "--debug",
    ):
        assert option in text


def test_help_starts_nothing_heavy() -> None:
    code = (
        "import sys\nfrom stagecoach.commands.main import cli\n"
        "cli(['query', '--help'], standalone_mode=False)\n"
        "heavy = {'pyspark', 'dagster', 'duckdb', 'pyarrow', 'sqlglot', 'pandas'}\n"
        "print('loaded:', sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "loaded: []" in done.stdout


def test_version() -> None:
    assert run("--version").stdout.startswith("stagecoach, version ")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["query"], "Missing argument 'FILE.sql…'"),
        (["query", "no.sql"], "cannot read no.sql: No such file or directory"),
        (["query", "a.sql", "b.sql", "--output", "x.parquet"], "use --output-dir for several"),
        (["query", "a.sql", "--output", "x", "--output-dir", "y"], "cannot be used together"),
        (["query", "a.sql", "--output", "."], "is a folder"),
        (["query", "a.sql", "--output", "-"], "leave --output out"),
        (
            ["query", "a.sql", "--output", "fifo"],
            "fifo is not a regular file, or is where standard output goes",
        ),
        (["query", "a.sql", "--output", "x.csv.gz"], "x.csv.gz: '.gz' is not a known file ending"),
        (
            ["query", "a.sql", "--output", "x.json", "--format", "csv"],
            "x.json is written as json, not as csv",
        ),
        (["query", "a.sql", "--output", "x", "--format", "table"], "as parquet, not as table"),
        (["query", "a.sql", "--output-dir", "y", "--format", "csv"], "writes Parquet files, not"),
        (["query", "a.sql", "x/a.sql", "--output-dir", "y"], "both be written as a.parquet"),
        (["query", "a.sql", "--engine", "postgres"], "'postgres' is not one of"),
        (["query", "a.sql", "--limit", "-1"], "Invalid value for '--limit'"),
        (["query", "a.sql", "--time-zone", "Mars/Base"], "'Mars/Base' is not a valid time zone"),
        (["gc", "--older-than", "soon"], "'soon' is not a valid age"),
        (["gc", "--older-than", "99999999999w"], "is too long"),
        (["nothing"], "there is no command 'nothing'; there are init, new, "),
        (["chek"], "there is no command 'chek'; did you mean check?"),
    ],
)
def test_bad_usage(project: Path, args: list[str], message: str) -> None:
    os.mkfifo("fifo")
    result = run(*args)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
    assert Path("fifo").is_fifo()


def test_a_file_that_is_standard_output_is_not_replaced(project: Path) -> None:
    command = [sys.executable, "-m", "stagecoach", "query", "a.sql", "--output", "rows.csv"]
    with open("rows.csv", "w") as rows:
        ended = subprocess.run(command, stdout=rows, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 2
    assert (
        "--output rows.csv is not a regular file, or is where standard output goes" in ended.stderr
    )


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("planner.broadcast_bytes", "is not KEY=VALUE"),
        ("broadcast_bytes=1", "is not KEY=VALUE"),
        ("dagster.x=1", "is not KEY=VALUE"),
        ("planner.broadcast=1", "unknown option planner.broadcast"),
        ("planner.num_partitions=many", "give a whole number"),
        ("planner.force_distribution=yes", "give true or false"),
        ("engine.codec=zip", "setting codec is 'zip'"),
        ("engine.nothing=1", "unknown setting 'nothing'"),
        ("engine.codecc=lz4", "unknown setting 'codecc' (argument); did you mean codec?"),
        (
            "planner.num_partitons=3",
            "planner.num_partitons (argument); did you mean num_partitions?",
        ),
        ("planer.num_partitions=3", "did you mean planner.num_partitions=3?"),
        ("codec=lz4", "did you mean engine.codec=lz4?"),
    ],
)
def test_bad_set(project: Path, setting: str, message: str) -> None:
    result = query("SELECT 1", "--set", setting)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_text_that_is_not_utf8(project: Path) -> None:
    (project / "q.sql").write_bytes(b"SELECT '\xff'")
    result = run("query", "q.sql", "--catalog", "catalog.yaml")
    assert result.exit_code == 2
    assert "q.sql is not UTF-8 text" in result.stderr


def test_one_failing_file_of_several_ends_with_1(project: Path) -> None:
    for name in ("a", "b"):
        (project / f"{name}.sql").write_text("SELECT nmae FROM pets")
    result = run("query", "a.sql", "b.sql", "--catalog", "catalog.yaml")
    assert result.exit_code == 1
    assert "--> a.sql:1:8" in result.stderr
    assert "--> b.sql:1:8" in result.stderr
    assert "2 of 2 queries failed: a, b" in result.stderr


def test_debug_shows_the_traceback(project: Path) -> None:
    assert "Traceback" not in query("SELECT nmae FROM pets").stderr
    assert "Traceback" in query("SELECT nmae FROM pets", "--debug").stderr


def test_tables_as_text_and_json(project: Path) -> None:
    text = run("tables", "--catalog", "catalog.yaml").stdout
    assert "pets" in text
    assert "2 rows" in text
    assert "name string, age int" in text
    (table,) = json.loads(run("tables", "--catalog", "catalog.yaml", "--format", "json").stdout)[
        "tables"
    ]
    assert table["rows"] == 2
    assert table["columns"][1] == {"name": "age", "type": "int"}
    assert table["location"] == str(project / "pets")


def test_tables_that_are_not_there(project: Path) -> None:
    result = run("tables", "pts", "--catalog", "catalog.yaml")
    assert result.exit_code == 2
    assert "did you mean 'pets'?" in result.stderr
    (project / "catalog.yaml").write_text("tables:\n  cats: {location: cats}\n")
    result = run("tables", "--catalog", "catalog.yaml")
    assert result.exit_code == 2
    assert "cats  (cannot be read)" in result.stdout
    assert "does not exist" in result.stderr


def test_gc_of_an_empty_storage(project: Path) -> None:
    result = run("gc", "--storage", str(project / "storage"))
    assert result.exit_code == 0
    assert "removed 0 B in 0 files; 0 shuffles kept" in result.stdout


def test_gc_and_storage_tell_of_plans(project: Path) -> None:
    for name in ("plans/a/0123456789.json", "plans/a/abcdef0123.json", "analysis/abcdef0123.json"):
        path = project / "storage" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("12345")
    os.utime(project / "storage/plans/a/0123456789.json", (0.0, 0.0))
    os.utime(project / "storage/analysis/abcdef0123.json", (0.0, 0.0))
    told = run("storage", "--storage", "storage").stdout.splitlines()
    shown = {line[:20].strip(): line[20:].split()[:3] for line in told}
    assert shown["plans of 1 queries"] == ["2", "10", "B"]
    assert shown["analyses of plans"] == ["1", "5", "B"]
    lines = run("gc", "--storage", "storage", "--dry-run").stdout.splitlines()
    assert lines[:2] == [
        "would remove 1 plans that no recent run used: 5 B",
        "would remove 1 analyses of plans that no recent run used: 5 B",
    ]
    assert lines[2].startswith("would remove 10 B in 2 files; ")
    lines = run("gc", "--storage", "storage").stdout.splitlines()
    assert lines[0] == "removed 1 plans that no recent run used: 5 B"
    left = {path.name for path in (project / "storage").rglob("*.json")}
    assert left == {"abcdef0123.json"}
    assert run("gc", "--storage", "storage").stdout.startswith("removed 0 B in 0 files; ")


def test_ui_state_and_command(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    home = prepare_home()
    assert home == project / ".stagecoach" / "dagster"
    assert "enabled: false" in (home / "dagster.yaml").read_text()
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}")
    prepare_home()
    assert (home / "dagster.yaml").read_text() == "telemetry: {enabled: false}"
    assert "--module-name" in dagster_command("127.0.0.1", 3000, None, debug=False)
    (project / "workspace.yaml").write_text("load_from: []")
    assert "--workspace" in dagster_command("127.0.0.1", 3000, None, debug=False)
    assert "mine" in dagster_command("127.0.0.1", 3000, "mine", debug=False)


def test_ui_refuses_a_port_that_is_taken(project: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run("ui", "--port", str(port))
    assert result.exit_code == 2
    assert f"port {port} is in use" in result.stderr
