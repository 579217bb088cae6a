"""Dagster with its state in a real PostgreSQL: a run, a resumed run and a backfill, and the doctor."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import stagecoach
from stagecoach.infra.formats.published.log import read_current
from stagecoach.infra.storage.local_store import LocalStore
from tests.acceptance.dagster_client import DagsterClient
from tests.acceptance.processes import (
    COMMAND,
    environment,
    free_port,
    kill_group,
    started,
    wait_until,
)
from tests.postgres_server import PostgresServer, postgres_server

pytest.importorskip("dagster_postgres")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.operations,
    pytest.mark.timeout(600),
]

PASSWORD = "STAGECOACH_TEST_PG_PASSWORD"
# As in the values for the chart.
VALUES = Path(stagecoach.__path__[0]).parent / "deploy" / "dagster" / "values.yaml"
SCHEME = yaml.safe_load(VALUES.read_text())["postgresql"]["postgresqlScheme"]
DAYS = ("2024-01-01", "2024-01-02", "2024-01-03")
SQL = """/*
partitions: {by: daily, start: 2024-01-01, end: 2024-01-04, column: day}
retries: 0
*/
SELECT o.day, s.region, sum(o.amount) AS amount
FROM bought o JOIN branches s ON o.shop = s.shop
WHERE o.day >= :partition_start AND o.day < :partition_end
GROUP BY o.day, s.region
"""
DEFINITIONS = """
from pathlib import Path

from stagecoach.assets import build_definitions
from stagecoach.planner.options import PlannerOptions

HERE = Path(__file__).parent
defs = build_definitions(
    queries=HERE / "queries",
    catalog=HERE / "catalog.yaml",
    options=PlannerOptions(force_distribution=True, num_partitions=2, broadcast_bytes=0),
)
"""
WORKSPACE = """load_from:
  - python_module: {module_name: postgres_location, location_name: postgres_location}
"""


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="module")
def project(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project, and an instance whose state is in the database."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "bought").mkdir()
    (folder / "branches").mkdir()
    days = pa.array([day for day in DAYS for _ in range(4)]).cast(pa.date32())
    bought = {"day": days, "shop": [1, 2, 3, 4] * 3, "amount": list(range(12))}
    pq.write_table(pa.table(bought), folder / "bought" / "0.parquet")
    branches = pa.table({"shop": [1, 2, 3, 4], "region": ["n", "n", "s", "s"]})
    pq.write_table(branches, folder / "branches" / "0.parquet")
    (folder / "queries").mkdir()
    (folder / "queries" / "daily.sql").write_text(SQL)
    (folder / "catalog.yaml").write_text(
        "tables: {bought: {location: bought}, branches: {location: branches}}"
    )
    (folder / "postgres_location.py").write_text(DEFINITIONS)
    (folder / "workspace.yaml").write_text(WORKSPACE)
    (folder / "home").mkdir()
    database = {
        "hostname": "127.0.0.1",
        "port": postgres.port,
        "username": "dagster",
        "password": {"env": PASSWORD},
        "db_name": "dagster",
        "scheme": SCHEME,
    }
    # YAML takes JSON.
    config = {"storage": {"postgres": {"postgres_db": database}}}
    (folder / "home" / "dagster.yaml").write_text(json.dumps(config))
    return folder


def variables(project: Path, postgres: PostgresServer) -> dict[str, str]:
    return environment(
        **{
            "DAGSTER_HOME": str(project / "home"),
            "STAGECOACH_MASTER": "local[2]",
            "STAGECOACH_PARALLELISM": "2",
            "STAGECOACH_MIN_TASK_BYTES": "0",
            PASSWORD: postgres.password,
        }
    )


@pytest.fixture(scope="module")
def dagster(project: Path, postgres: PostgresServer) -> Iterator[DagsterClient]:
    """GraphQL of a UI on that instance, with its daemon and a warm Spark."""
    port, log = free_port(), project / "ui.log"
    command = [*COMMAND, "ui", "--port", str(port), "--storage", str(project / "store")]
    with started(command, project, log, variables(project, postgres)) as process:
        try:
            client = DagsterClient(f"http://127.0.0.1:{port}", "postgres_location")
            wait_until(client.is_loaded, process, log, seconds=300, interval_seconds=0.3)
            yield client
        finally:
            # Not a kill at once: the watcher of the warm Spark ends it with the UI.
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGINT)
            deadline = time.monotonic() + 20
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.1)
            kill_group(process)


def published(project: Path) -> list[tuple[str, str, int]]:
    store = LocalStore(str(project / "store"))
    version = read_current(store, "daily")
    assert version is not None
    uris = [store.uri(key) for key in version.file_keys()]
    rows = pa.concat_tables([pq.read_table(uri, partitioning=None) for uri in uris]).to_pylist()
    return sorted((str(row["day"]), row["region"], row["amount"]) for row in rows)


def expected(*days: str) -> list[tuple[str, str, int]]:
    return sorted(
        (day, region, sum(4 * DAYS.index(day) + shop for shop in shops))
        for day in days
        for region, shops in (("n", (0, 1)), ("s", (2, 3)))
    )


def test_a_run_through_stages_a_resumed_run_and_a_backfill(
    dagster: DagsterClient, project: Path, postgres: PostgresServer
) -> None:
    # 1. A run of one day.
    run = dagster.ended(dagster.launch("run_daily", partition=DAYS[0]))
    assert run.status == "SUCCESS", run.problem
    assert len(run.steps) > 1
    assert published(project) == expected(DAYS[0])

    # 2. The storage fails the last stage, and is mended: only that stage runs again.
    table = project / "store" / "results" / "daily"
    assert table.is_dir()
    aside = table.with_name("daily.aside")
    table.rename(aside)
    table.write_text("in the way")
    failed = dagster.ended(dagster.launch("run_daily", partition=DAYS[1]))
    table.unlink()
    aside.rename(table)
    assert failed.status == "FAILURE"
    bad = {step for step, status in failed.steps.items() if status != "SUCCESS"}
    assert 0 < len(bad) < len(failed.steps)
    resumed = dagster.ended(dagster.reexecute(failed.run_id, "FROM_FAILURE"))
    assert resumed.status == "SUCCESS", resumed.problem
    assert set(resumed.steps) == bad
    assert published(project) == expected(*DAYS[:2])

    # 3. A backfill of two days, one of which is there already.
    backfill = dagster.backfill(dagster.asset_keys("daily"), list(DAYS[1:]))
    dagster.wait(lambda: dagster.has_ended(backfill), "backfill", 240)
    assert dagster.backfill_status(backfill).startswith("COMPLETED")
    assert published(project) == expected(*DAYS)

    # All of it is in the database, and nothing in files.
    ((runs,),) = postgres.query("SELECT count(*) FROM runs")
    assert int(str(runs)) >= 5
    ((backfills,),) = postgres.query("SELECT count(*) FROM bulk_actions")
    assert backfills == 1
    assert not list((project / "home").rglob("*.db"))


def test_the_doctor_looks_at_the_database(project: Path, postgres: PostgresServer) -> None:
    def dagster_finding(**changes: str) -> dict[str, str]:
        where = [
            "--master",
            "spark://127.0.0.1:1",
            "--storage",
            "store",
            "--catalog",
            "catalog.yaml",
        ]
        done = subprocess.run(
            [*COMMAND, "doctor", "--json", *where],
            cwd=project,
            env={**variables(project, postgres), **changes},
            capture_output=True,
            text=True,
            check=False,
        )
        findings = json.loads(done.stdout)["findings"]
        (found,) = [finding for finding in findings if finding["check"] == "dagster"]
        assert postgres.password not in done.stdout + done.stderr
        return dict(found)

    found = dagster_finding()
    assert (found["status"], "Postgres" in found["text"]) == ("ok", True)
    wrong = dagster_finding(**{PASSWORD: "not-the-password"})
    assert (wrong["status"], "not-the-password" in wrong["text"]) == ("error", False)
    assert "start its database" in wrong["advice"]
