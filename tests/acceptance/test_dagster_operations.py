"""Operating a project from Dagster: everything by GraphQL, on a real webserver, daemon and runs.

`stagecoach ui` is started once, with its warm Spark, over the project of `warehouse.py`. What takes
a daemon's interval is begun by the first test and looked at by later ones, so their order counts.
Each result is compared with plain Spark's of the same day.
"""

from __future__ import annotations

import datetime
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from infra.runtime.connect_server import TOKEN_VARIABLE
from infra.shuffle.gc import collect_garbage
from infra.storage.local_store import LocalStore
from infra.tables.log import read_current
from tests.acceptance.comparison import rows_of
from tests.acceptance.dagster_client import DagsterClient, Key, Run
from tests.acceptance.processes import (
    COMMAND,
    environment,
    free_port,
    kill_group,
    started,
    wait_until,
)
from tests.acceptance.warehouse import (
    BAD_DAY,
    DAYS,
    LOST_DAY,
    spark_answers,
    write_payments,
    write_project,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.operations,
    pytest.mark.timeout(900),
]

LOCATION = "warehouse_location"
KEYS = [str(day) for day in DAYS]
SENSOR = "stagecoach_on_upstream_change"
ALL_ASSETS = "__ASSET_JOB"


@dataclass
class Place:
    """The project and the Dagster that operates it.

    Args:
        folder: The project.
        dagster: Its GraphQL.
        answers: Plain Spark's answers, by table.
        begun: Ids of what the first test began, by name.
    """

    folder: Path
    dagster: DagsterClient
    answers: dict[str, pa.Table]
    begun: dict[str, str] = field(default_factory=dict)

    @property
    def store(self) -> LocalStore:
        return LocalStore(str(self.folder / "store"))

    def published(self, table: str) -> pa.Table:
        """The rows of a published table's present version."""
        version = read_current(self.store, table)
        assert version is not None, f"{table} is not published"
        uris = [self.store.uri(key) for key in version.file_keys()]
        return pa.concat_tables([pq.read_table(uri, partitioning=None) for uri in uris])

    def check(self, table: str, day: datetime.date | None = None) -> None:
        """Fail unless a published table (of a day) is what Spark says."""
        found, expected = self.published(table), self.answers[table]
        if day is not None:
            found = found.filter(pc.equal(found["day"], pa.scalar(day)))
            expected = expected.filter(pc.equal(expected["day"], pa.scalar(day)))
        assert found.schema.names == expected.schema.names
        assert found.schema.types == expected.schema.types
        assert expected.num_rows > 0
        assert sorted(rows_of(found)) == sorted(rows_of(expected)), (table, day)

    def launch(self, job: str, *, assets: list[Key] | None = None, **more: str) -> Run:
        """Launch a run and wait for its end."""
        run_id = self.dagster.launch(job, assets=assets or [], partition=more.get("partition"))
        return self.dagster.ended(run_id)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("warehouse")
    write_project(folder)
    port = free_port()
    arguments = [
        "ui",
        "--port",
        str(port),
        "--module",
        LOCATION,
        "--storage",
        str(folder / "store"),
    ]
    variables = environment(
        PYTHONPATH=str(folder),
        DAGSTER_HOME=str(folder / "home"),
        STAGECOACH_MASTER="local[2]",
        STAGECOACH_PARALLELISM="2",
        STAGECOACH_MIN_TASK_BYTES="0",
    )
    log = folder / "ui.log"
    with started([*COMMAND, *arguments], folder, log, variables) as process:
        try:
            write_payments(folder, BAD_DAY)
            answers = spark_answers(spark, folder)
            write_payments(folder, BAD_DAY, bad=True)
            dagster = DagsterClient(f"http://127.0.0.1:{port}", LOCATION)
            wait_until(dagster.is_loaded, process, log, interval_seconds=0.3)
            yield Place(folder, dagster, answers)
        finally:
            # So that the watcher ends the warm Spark, which is in a session of its own.
            os.kill(process.pid, signal.SIGINT)
            deadline = time.monotonic() + 20
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.1)
            kill_group(process)


def test_a_run_of_one_day(place: Place) -> None:
    run = place.launch("run_paid", partition=KEYS[0])
    assert run.status == "SUCCESS", run.problem
    place.check("paid", DAYS[0])
    head = run.made["paid",]
    assert head["stagecoach/rows"] == 1
    assert head["stagecoach/engine"] == "duckdb"
    assert head["stagecoach/reused"] is False


def test_what_takes_a_while_begins(place: Place) -> None:
    """Schedule and automation, which later tests look at."""
    place.dagster.start_schedule("run_often_schedule")
    place.dagster.start_sensor(SENSOR)
    place.begun["feed"] = place.dagster.launch("run_feed")


def test_a_blocking_check_that_fails_blocks_what_is_downstream(place: Place) -> None:
    keys = [key for name in ("checked", "below") for key in place.dagster.asset_keys(name)]
    run = place.launch(ALL_ASSETS, assets=keys)
    assert run.status == "FAILURE"
    assert not run.checks["row_count"]["success"]
    assert run.checks["not_null_region"]["success"]
    assert ("checked",) in run.made
    assert not any(key[0] == "below" for key in run.made)
    assert "below__stage_0" not in run.steps
    assert read_current(place.store, "below") is None


def test_one_stage_alone(place: Place) -> None:
    run = place.launch(ALL_ASSETS, assets=[("paid", "stage_0")], partition=KEYS[1])
    assert run.status == "SUCCESS", run.problem
    assert list(run.made) == [("paid", "stage_0")]
    # The rest goes on with what it made.
    rest = place.launch(ALL_ASSETS, assets=[("paid",)], partition=KEYS[1])
    assert rest.status == "SUCCESS", rest.problem
    assert list(rest.made) == [("paid",)]
    place.check("paid", DAYS[1])
    # Where nothing made it, the message says what to run.
    early = place.launch(ALL_ASSETS, assets=[("paid",)], partition=KEYS[2])
    assert early.status == "FAILURE"
    assert "materialise 'paid/stage_0' first" in early.problem


def test_a_tick_of_a_schedule(place: Place) -> None:
    name = "run_often_schedule"
    place.dagster.wait(lambda: bool(place.dagster.ticks(name)), "a tick", 300)
    place.dagster.stop_schedule(name)
    run = place.dagster.ended(place.dagster.ticks(name)[-1]["runIds"][0])
    assert run.status == "SUCCESS", run.problem
    assert run.tags["dagster/schedule_name"] == name
    place.check("often")


def test_a_tick_of_the_automation(place: Place) -> None:
    feed = place.dagster.ended(place.begun["feed"])
    assert feed.status == "SUCCESS", feed.problem
    place.check("feed")
    place.dagster.wait(lambda: bool(place.dagster.ticks(SENSOR)), "automation", 300)
    run = place.dagster.ended(place.dagster.ticks(SENSOR)[-1]["runIds"][0])
    assert run.status == "SUCCESS", run.problem
    assert {key[0] for key in run.made} == {"follow"}
    place.check("follow")


def test_a_backfill_begins(place: Place) -> None:
    """Its result is looked at by a later test; runs of other tests go before its own."""
    dagster = place.dagster
    assets = [key for name in ("daily", "revenue", "trend") for key in dagster.asset_keys(name)]
    place.begun["backfill"] = dagster.backfill(assets, KEYS)


def test_a_day_with_bad_data_is_fixed_and_run_again(place: Place) -> None:
    bad = place.launch("run_paid", partition=str(BAD_DAY))
    assert bad.status == "FAILURE"
    assert "CAST_INVALID_INPUT" in bad.problem
    assert "7,00" in bad.problem
    write_payments(place.folder, BAD_DAY)
    # From failure it is the same run over the same files, and says that they are no longer there.
    same = place.dagster.ended(place.dagster.reexecute(bad.run_id, "FROM_FAILURE"))
    assert same.status == "FAILURE"
    assert f"{BAD_DAY}.parquet" in same.problem
    assert "changed" in same.problem
    # Re-executing all steps reads the tables as they are.
    fixed = place.dagster.ended(place.dagster.reexecute(bad.run_id, "ALL_STEPS"))
    place.begun["bad day"] = bad.run_id
    assert fixed.status == "SUCCESS", fixed.problem
    place.check("paid", BAD_DAY)


@contextmanager
def broken(folder: Path) -> Iterator[None]:
    """Storage that takes no new file in the folder, whoever the user is."""
    aside = folder.with_name(f"{folder.name}-aside")
    folder.rename(aside)
    folder.write_text("not a folder")
    try:
        yield
    finally:
        folder.unlink()
        aside.rename(folder)


def test_a_day_that_storage_failed_goes_on_from_failure(place: Place) -> None:
    with broken(place.folder / "store" / "results" / "paid"):
        lost = place.launch("run_paid", partition=str(LOST_DAY))
        assert lost.status == "FAILURE"
        assert "StorageError" in lost.problem
        # It was tried again, as faults of the storage are.
        tried = [e for e in lost.events if e["__typename"] == "ExecutionStepUpForRetryEvent"]
        assert len(tried) == 2
    done = place.dagster.ended(place.dagster.reexecute(lost.run_id, "FROM_FAILURE"))
    assert done.status == "SUCCESS", done.problem
    assert list(done.steps) == ["paid"]
    assert done.made["paid",]["stagecoach/reused"] is True
    place.check("paid", LOST_DAY)


def test_a_backfill_of_30_days_over_three_queries(place: Place) -> None:
    dagster, backfill_id = place.dagster, place.begun["backfill"]
    ended = ("COMPLETED", "COMPLETED_SUCCESS", "COMPLETED_FAILED", "FAILED", "CANCELED")
    dagster.wait(lambda: dagster.backfill_status(backfill_id) in ended, "the backfill", 800)
    assert dagster.backfill_status(backfill_id) == "COMPLETED_SUCCESS"
    for table in ("daily", "revenue", "trend"):
        place.check(table)
        for day in DAYS:
            place.check(table, day)
    runs = [dagster.run(i) for i in dagster.run_ids({"dagster/backfill": backfill_id})]
    assert {run.status for run in runs} == {"SUCCESS"}
    days = [run for run in runs if ("daily",) in run.made]
    assert len(days) == 30
    # Readers follow in ranges, as the days that they read become ready.
    for reader in ("revenue", "trend"):
        assert 1 <= len([run for run in runs if (reader,) in run.made]) <= 30
    # The stage that reads the shops alone does not depend on the day: computed once.
    shops = [run.made["daily", shops_stage(place)] for run in days]
    assert len({made["stagecoach/fingerprint"] for made in shops}) == 1
    assert sorted(made["stagecoach/reused"] for made in shops) == [False] + [True] * 29
    # What depends on the day is computed for each.
    heads = [run.made["daily",] for run in days]
    assert len({made["stagecoach/fingerprint"] for made in heads}) == 30
    assert not any(made["stagecoach/reused"] for made in heads)


def shops_stage(place: Place) -> str:
    """The stage of `daily` that reads the shops, which do not change from day to day."""
    query = """query($keys: [AssetKeyInput!]) { assetNodes(assetKeys: $keys) {
      assetKey { path } dependencyKeys { path } } }"""
    keys = [{"path": list(key)} for key in place.dagster.asset_keys("daily")]
    for node in place.dagster.ask(query, keys=keys):
        if {"path": ["shops"]} in node["dependencyKeys"]:
            return str(node["assetKey"]["path"][-1])
    raise AssertionError("no stage reads the shops")


def test_a_failure_is_told_by_a_sensor(place: Place) -> None:
    alerts = place.folder / "alerts.txt"
    line = f"{place.begun['bad day']} ['paid']"
    place.dagster.wait(lambda: alerts.exists() and line in alerts.read_text(), "the alert", 120)


def test_cancelling_ends_the_spark_job_and_leaves_no_files(place: Place) -> None:
    before = files(place)
    run_id = place.dagster.launch("run_endless")
    token = warm_token(place.folder)

    def computes() -> bool:
        return "endless__stage_3" in place.dagster.run(run_id).steps and bool(busy_workers(token))

    place.dagster.wait(computes, "the last stage's start", 300)
    place.dagster.terminate(run_id)
    told = time.monotonic()
    while busy_workers(token):
        assert time.monotonic() - told < 30
    assert time.monotonic() - told < 5
    run = place.dagster.ended(run_id)
    assert run.status == "CANCELED"
    assert "endless" not in "".join("/".join(key) for key in run.made if len(key) == 1)
    store, now = place.store, datetime.datetime.now(datetime.UTC)
    collect_garbage(store, older_than=datetime.timedelta(0), now=now)
    left = files(place) - before
    committed = {path.parent for path in left if path.name == "manifest.json"}
    assert {path for path in left if path.parent not in committed} == set()


def files(place: Place) -> set[Path]:
    return {p for p in (place.folder / "store" / "shuffle").rglob("*") if p.is_file()}


def warm_token(folder: Path) -> bytes:
    """The token of the warm Spark, from the environment of the UI's processes."""
    home = f"DAGSTER_HOME={folder / 'home'}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            variables = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if home in variables:
            for text in variables:
                if text.startswith(f"{TOKEN_VARIABLE}=".encode()):
                    return text
    raise AssertionError("no process of the UI has the token")


def busy_workers(token: bytes) -> set[int]:
    """Python workers of the warm Spark that compute just now."""

    def ticks() -> dict[int, int]:
        found: dict[int, int] = {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if b"pyspark.daemon" not in (process / "cmdline").read_bytes():
                    continue
                if token in (process / "environ").read_bytes().split(b"\0"):
                    fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
                    found[int(process.name)] = int(fields[11])
            except OSError:
                continue
        return found

    before = ticks()
    time.sleep(0.4)
    after = ticks()
    return {pid for pid, count in before.items() if after.get(pid, 0) - count >= 3}
