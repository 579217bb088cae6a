"""The tutorial holds: its files are written and its commands run, from an empty folder, in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import duckdb
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from docs.tutorial_steps import CommandStep, FileStep, steps
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.formats.published.log import read_current
from stagecoach.infra.spark.connect_server import launch
from stagecoach.infra.storage.local_store import LocalStore
from tests.acceptance.dagster_client import DagsterClient
from tests.acceptance.processes import environment, free_port, kill_group, started, wait_until

ROOT = Path(__file__).parents[1]
LOCATION = "shop"
# What the three queries are for, in one SELECT over the files that make_data.py has written.
EXPECTED = """
    WITH sales AS (
      SELECT DISTINCT order_id, day, region, cents / 100 AS amount
      FROM 'data/orders/*.parquet' JOIN 'data/shops/*.parquet' USING (shop_id)),
    revenue AS (SELECT day, region, sum(amount) AS revenue FROM sales GROUP BY ALL)
    SELECT day, region, revenue,
      avg(revenue) OVER (PARTITION BY region ORDER BY day ROWS 6 PRECEDING) AS mean_of_week
    FROM revenue ORDER BY day, region"""


def test_the_page_shows_no_command_that_is_not_run() -> None:
    text = (ROOT / "docs" / "learn" / "tutorial.md").read_text(encoding="utf-8")
    shown = [line for line in text.splitlines() if line.startswith("$ ")]
    run = [step for step in steps() if isinstance(step, CommandStep)]
    assert len(shown) == len(run) > 15
    opened = text.count("\n```") / 2
    # The drawing at the top is neither.
    assert opened - 1 == sum(isinstance(s, FileStep) for s in steps()) + text.count("\n```console")


def test_lines_of_the_page_are_looked_for_in_the_output() -> None:
    step = CommandStep(command="x", output=("a  1 row … b",), fails=False)
    assert step.missing("first\n a 1   row, 7 kB b\n") == []
    assert step.missing("a 2 row, 7 kB b") == ["a  1 row … b"]


def test_a_command_may_set_variables_of_the_next(tmp_path: Path) -> None:
    variables = {"PATH": os.environ["PATH"], "A": "1"}
    CommandStep(command='export B="$A 2"', output=(), fails=False).run(tmp_path, variables)
    step = CommandStep(command='echo "$B"; false', output=("1 2",), fails=True)
    assert step.run(tmp_path, variables) == "1 2\n"
    assert variables == {"PATH": os.environ["PATH"], "A": "1", "B": "1 2"}


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_the_tutorial(tmp_path: Path) -> None:
    # As if the UI's warm Spark could be used from the other terminal, so that one JVM is started.
    settings = EngineSettings(master="local[2]", storage_root=str(tmp_path / "store"))
    server = launch(settings, tmp_path / "spark")
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    variables = environment(**server.environment, PATH=programs, PYTHONWARNINGS="ignore")
    folder = tmp_path / "shop"
    folder.mkdir()
    with ExitStack() as background:
        background.callback(os.kill, server.watcher_pid, signal.SIGTERM)
        for step in steps():
            if isinstance(step, FileStep):
                step.write(folder)
            elif step.command == "stagecoach ui":
                dagster = background.enter_context(_ui(folder, variables))
                assert len(dagster.asset_keys("trend")) == 1
            else:
                step.run(folder, variables)
        _check_tables(folder)
        _check_lake(folder)
        assert dagster.run_ids(), "the UI shows no run of the other terminal"


def _check_tables(folder: Path) -> None:
    version = read_current(LocalStore(str(folder / ".stagecoach" / "storage")), "trend")
    assert version is not None
    root = folder / ".stagecoach" / "storage"
    files = [str(root / key) for key in version.file_keys()]
    found = duckdb.read_parquet(files).order("day, region").fetchall()
    expected = duckdb.sql(EXPECTED.replace("'data/", f"'{folder}/data/")).fetchall()
    assert len(found) == 14 * 3
    for row, wanted in zip(found, expected, strict=True):
        assert row[:2] == wanted[:2]
        assert row[2:] == pytest.approx(wanted[2:])


def _check_lake(folder: Path) -> None:
    lake = SqlCatalog("lake", uri=f"sqlite:///{folder}/lake.db", warehouse=f"{folder}/lake")
    table = lake.load_table("shop.refunds")
    found = table.scan().to_arrow().sort_by("reason").to_pylist()
    assert [tuple(row.values()) for row in found] == duckdb.sql(
        f"""SELECT coalesce(reason, 'unknown') AS reason, count(*), sum(CAST(refund AS DECIMAL(9, 2)))
        FROM read_csv('{folder}/data/returns/*.csv', sep=';', quote='"', nullstr=['n/a', ''])
        GROUP BY ALL ORDER BY 1"""
    ).fetchall()
    assert len(table.snapshots()) == 1


@contextmanager
def _ui(folder: Path, variables: dict[str, str]) -> Iterator[DagsterClient]:
    port = free_port()
    log = folder.parent / "ui.log"
    command = ["stagecoach", "ui", "--port", str(port)]
    with started(command, folder, log, variables) as process:
        try:
            dagster = DagsterClient(f"http://127.0.0.1:{port}", LOCATION)
            wait_until(dagster.is_loaded, process, log, interval_seconds=0.3)
            yield dagster
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ctrl-C."""
    os.kill(process.pid, signal.SIGINT)
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        kill_group(process)
