"""What the commands start and import: no Spark, no Dagster and none of their kind unasked.

Each command runs in a process of its own, which tells what it has loaded at its end.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.share import in_test_all

HEAVY = (
    *("pyspark", "py4j", "dagster", "sqlalchemy", "grpc", "graphql", "pandas", "duckdb"),
    *("fsspec", "s3fs", "aiobotocore", "botocore", "aiohttp", "starlette", "rich"),
)
SQL = "SELECT shop, sum(amount) AS total FROM sales WHERE amount > 1 GROUP BY shop ORDER BY shop"
WITH_FRONT_MATTER = f"-- description: Totals\n-- tags: {{team: finance}}\n{SQL}"
ROWS = "shop,total\n0,18\n1,11\n2,15\n"
# More than one stage, although there are few rows.
FORCED = ("--set", "planner.force_distribution=true", "--set", "planner.inline_bytes=0")

_PROGRAM = f"""
import json, sys
from stagecoach.commands.main import cli
try:
    cli(sys.argv[1:], prog_name="stagecoach", standalone_mode=False)
finally:
    print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]), file=sys.stderr)
"""


@dataclass(frozen=True)
class Ran:
    """A command that has ended.

    Args:
        output: What it printed.
        loaded: Which of the heavy modules it has imported.
    """

    output: str
    loaded: list[str]


def run(*arguments: str, **variables: str) -> Ran:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("STAGECOACH_")}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment | variables,
    )
    assert done.returncode == 0, done.stderr
    return Ran(done.stdout, json.loads(done.stderr.splitlines()[-1]))


def query(*arguments: str) -> Ran:
    where = ("--catalog", "catalog.yaml", "--storage", "store", "--master", "local[1]")
    return run("query", "totals.sql", "--format", "csv", *where, *FORCED, *arguments)


def write_rows(path: Path, amounts: range) -> None:
    rows = {"shop": [k % 3 for k in amounts], "amount": list(amounts)}
    pq.write_table(pa.table(rows), path)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sales").mkdir()
    for part, amounts in enumerate((range(5), range(5, 10))):
        write_rows(tmp_path / "sales" / f"{part}.parquet", amounts)
    (tmp_path / "catalog.yaml").write_text("tables: {sales: {location: sales}}")
    (tmp_path / "totals.sql").write_text(WITH_FRONT_MATTER)
    (tmp_path / "plain.sql").write_text(SQL)
    return tmp_path


@pytest.mark.parametrize("file", ["totals.sql", "plain.sql"])
@pytest.mark.parametrize("command", ["explain", "check"])
def test_a_query_that_needs_no_spark_is_planned_with_nothing_heavy(
    project: Path, command: str, file: str
) -> None:
    assert run(command, file, "--catalog", "catalog.yaml").loaded == []


def events(project: Path, run_id: str) -> list[dict[str, Any]]:
    text = (project / "store" / "runs" / run_id / "events.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def runs(project: Path) -> set[str]:
    return {path.name for path in (project / "store" / "runs").iterdir()}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_query_is_answered_from_what_is_there_without_spark_and_dagster(project: Path) -> None:
    first = query()
    assert (first.output, {"pyspark", "dagster"} - {*first.loaded}) == (ROWS, set())
    (computed,) = runs(project)

    second = query()
    assert (second.output, second.loaded) == (ROWS, [])
    (reused,) = runs(project) - {computed}
    check_recorded(project, computed, reused)

    # Nothing is taken from there for other files, for a stage that is gone, or when told not to.
    write_rows(project / "sales" / "2.parquet", range(9, 10))
    changed = query()
    assert changed.output == "shop,total\n0,27\n1,11\n2,15\n"
    assert "pyspark" in changed.loaded
    assert query().loaded == []
    head = tells(events(project, (runs(project) - {computed, reused}).pop()))[-1]
    leaf = tells(events(project, reused))[0]
    assert leaf["stagecoach/fingerprint"] != head["stagecoach/fingerprint"]
    for manifest in (project / "store" / "shuffle").glob("*/*/manifest.json"):
        if manifest.parent.name == head["stagecoach/fingerprint"]:
            manifest.unlink()
    again = query()
    assert (again.output, "pyspark" in again.loaded) == (changed.output, True)
    fresh = query("--fresh")
    assert (fresh.output, "pyspark" in fresh.loaded) == (changed.output, True)


def tells(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event["metadata"] for event in found if event["type"] == "ASSET_MATERIALIZATION"]


def check_recorded(project: Path, computed: str, reused: str) -> None:
    """The run that computed nothing left what the other has: marks, pointers and events."""
    before, after = (project / "store" / "runs" / run_id for run_id in (computed, reused))
    files = {str(path.relative_to(before)).replace(computed, reused) for path in before.rglob("*")}
    assert {str(path.relative_to(after)) for path in after.rglob("*")} == files
    assert f"ended/{reused}" in files
    stages = len(list((after / "stages").iterdir()))
    assert stages > 1
    ours, theirs = events(project, reused), events(project, computed)
    assert [told["stagecoach/reused"] for told in tells(ours)] == [True] * stages
    for one, other in zip(tells(ours), tells(theirs), strict=True):
        for key in ("stagecoach/fingerprint", "stagecoach/rows", "dagster/row_count"):
            assert one[key] == other[key]
    assert tells(ours)[-1]["dagster/column_schema"] == tells(theirs)[-1]["dagster/column_schema"]
    # The same lines as Dagster writes, but for those about its own machinery.
    shapes = [{"type", "step", "message", "asset"}, {"type", "message"}, {"type", "step"}]
    for wanted in ("PIPELINE_START", "STEP_START", "ASSET_MATERIALIZATION", "PIPELINE_SUCCESS"):
        for keys in shapes:
            one, other = (
                [{k: e[k] for k in keys if k in e} for e in found if e["type"] == wanted]
                for found in (ours, theirs)
            )
            assert one == other


@pytest.mark.slow
def test_a_wrong_query_leaves_nothing_of_the_spark_that_was_started_for_it(project: Path) -> None:
    (project / "wrong.sql").write_text("SELECT nope FROM sales")
    # Such a command starts Spark before it reads the query: it could reuse nothing.
    arguments = ("query", "wrong.sql", "--catalog", "catalog.yaml", "--storage", "store")
    # All that it starts writes to its standard error, which closes with the last of them.
    with subprocess.Popen(
        [sys.executable, "-m", "stagecoach", *arguments, "--debug"],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.wait(60) == 2
        ended = time.monotonic()
        assert process.stderr is not None
        assert "column 'nope' not found" in process.stderr.read()
        assert time.monotonic() - ended < 10
    assert not [path for path in here(project) if "java" in path]


def here(folder: Path) -> list[str]:
    """The programs that run in a folder."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").resolve() == folder.resolve():
                found.append((process / "exe").readlink().name)
    return found


@pytest.mark.slow
@in_test_all
def test_the_columns_of_a_reused_result_were_checked_by_spark(project: Path) -> None:
    query()
    for answer in (project / "store" / "analysis").iterdir():
        answer.unlink()
    again = query()
    assert (again.output, "pyspark" in again.loaded) == (ROWS, True)
