"""Operating a project from Dagster: everything by GraphQL, on a real webserver, daemon and runs.

The project is that of `warehouse.py`. What takes a daemon's interval has begun with the UI, and is
looked at here, so the order of the tests counts. Each result is compared with plain Spark's of the
same day.
"""

from __future__ import annotations

import datetime
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.formats.protocol import Access
from stagecoach.infra.formats.published.log import read_current
from stagecoach.infra.formats.published.table_format import FORMAT
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.infra.upkeep.gc import collect_garbage
from tests.acceptance.comparison import rows_of
from tests.acceptance.dagster_client import DagsterClient, Key, Run
from tests.acceptance.running_ui import RunningUi, plain_spark
from tests.acceptance.warehouse import (
    BACKFILLED,
    BAD_DAY,
    DAYS,
    LOST_DAY,
    SCHEDULE,
    SENSOR,
    spark_answers,
    write_payments,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.operations,
    pytest.mark.timeout(900),
]

KEYS = [str(day) for day in DAYS]
ALL_ASSETS = "__ASSET_JOB"


@dataclass(frozen=True)
class Place:
    """The project and the Dagster that operates it.

    Args:
        ui: The Dagster.
        answers: Plain Spark's answers, by table.
    """

    ui: RunningUi
    answers: dict[str, pa.Table]

    @property
    def folder(self) -> Path:
        return self.ui.warehouse

    @property
    def store(self) -> LocalStore:
        return self.ui.store

    @property
    def dagster(self) -> DagsterClient:
        return self.ui.dagster

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
def place(ui: RunningUi) -> Place:
    write_payments(ui.warehouse, BAD_DAY)
    with plain_spark(ui) as spark:
        answers = spark_answers(spark, ui.warehouse)
    write_payments(ui.warehouse, BAD_DAY, bad=True)
    return Place(ui, answers)


def test_a_table_is_published_of_which_automation_will_hear(place: Place) -> None:
    # What was published before its first look is none of its business.
    place.dagster.wait(lambda: place.dagster.has_ticked(SENSOR), "automation", 120)
    run = place.launch("run_feed")
    assert run.status == "SUCCESS", run.problem
    place.check("feed")


def test_a_run_of_one_day(place: Place) -> None:
    run = place.launch("run_paid", partition=KEYS[0])
    assert run.status == "SUCCESS", run.problem
    place.check("paid", DAYS[0])
    head = run.made["paid",]
    assert head["stagecoach/rows"] == 1
    assert head["stagecoach/engine"] == "duckdb"
    assert head["stagecoach/reused"] is False


def test_a_blocking_check_that_fails_blocks_what_is_downstream(place: Place) -> None:
    keys = [key for name in ("checked", "below") for key in place.dagster.asset_keys(name)]
    run = place.launch(ALL_ASSETS, assets=keys)
    assert run.status == "FAILURE"
    assert not run.checks["row_count"]["success"]
    assert run.checks["not_null_region"]["success"]
    assert ("checked",) not in run.made
    table = FORMAT.stored(place.store, "checked", Access())
    assert [staged.mode for staged in table.staged()] == ["replace"]
    current = read_current(place.store, "checked")
    assert current is not None
    assert not current.has_data, "readers never see it"
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
    place.dagster.wait(lambda: bool(place.dagster.ticks(SCHEDULE)), "a tick", 300)
    place.dagster.stop_schedule(SCHEDULE)
    run = place.dagster.ended(place.dagster.ticks(SCHEDULE)[-1]["runIds"][0])
    assert run.status == "SUCCESS", run.problem
    assert run.tags["dagster/schedule_name"] == SCHEDULE
    place.check("often")


def test_a_tick_of_the_automation(place: Place) -> None:
    place.dagster.wait(lambda: bool(place.dagster.ticks(SENSOR)), "automation", 300)
    run = place.dagster.ended(place.dagster.ticks(SENSOR)[-1]["runIds"][0])
    assert run.status == "SUCCESS", run.problem
    assert {key[0] for key in run.made} == {"follow"}
    place.check("follow")


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
    assert "of the run's snapshot cannot be read" in same.problem
    # Re-executing all steps reads the tables as they are.
    fixed = place.dagster.ended(place.dagster.reexecute(bad.run_id, "ALL_STEPS"))
    assert fixed.status == "SUCCESS", fixed.problem
    place.check("paid", BAD_DAY)
    # A sensor tells of the failure.
    alerts = place.folder / "alerts.txt"
    line = f"{bad.run_id} ['paid"
    place.dagster.wait(lambda: alerts.exists() and line in alerts.read_text(), "the alert", 120)


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
    with broken(place.ui.folder / "store" / "results" / "paid"):
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


def test_a_backfill_of_many_days_over_three_queries(place: Place) -> None:
    dagster, backfill_id = place.dagster, place.ui.begun["backfill"]
    dagster.wait(lambda: dagster.has_ended(backfill_id), "the backfill", 800)
    runs = [dagster.run(i) for i in dagster.run_ids({"dagster/backfill": backfill_id})]
    assert {run.status for run in runs} == {"SUCCESS"}, [run.problem for run in runs]
    assert dagster.backfill_status(backfill_id) == "COMPLETED_SUCCESS"
    for table in BACKFILLED:
        place.check(table)
        for day in DAYS:
            place.check(table, day)
    days = [run for run in runs if ("daily",) in run.made]
    assert len(days) == len(DAYS)
    # Readers follow in ranges, as the days that they read become ready.
    for reader in ("turnover", "weekly"):
        assert 1 <= len([run for run in runs if (reader,) in run.made]) <= len(DAYS)
    # The stage that reads the branches alone does not depend on the day: computed once.
    branches = [run.made["daily", branches_stage(place)] for run in days]
    assert len({made["stagecoach/fingerprint"] for made in branches}) == 1
    assert sorted(made["stagecoach/reused"] for made in branches) == [False] + [True] * (
        len(DAYS) - 1
    )
    # What depends on the day is computed for each.
    heads = [run.made["daily",] for run in days]
    assert len({made["stagecoach/fingerprint"] for made in heads}) == len(DAYS)
    assert not any(made["stagecoach/reused"] for made in heads)


def branches_stage(place: Place) -> str:
    """The stage of `daily` that reads the branches, which do not change from day to day."""
    query = """query($keys: [AssetKeyInput!]) { assetNodes(assetKeys: $keys) {
      assetKey { path } dependencyKeys { path } } }"""
    keys = [{"path": list(key)} for key in place.dagster.asset_keys("daily")]
    for node in place.dagster.ask(query, keys=keys):
        if {"path": ["branches"]} in node["dependencyKeys"]:
            return str(node["assetKey"]["path"][-1])
    raise AssertionError("no stage reads the branches")


def test_cancelling_ends_the_spark_job_and_leaves_no_files(place: Place) -> None:
    before = files(place)
    run_id = place.dagster.launch("run_endless")

    def computes() -> bool:
        running = "endless__stage_3" in place.dagster.run(run_id).steps
        return running and bool(place.ui.busy_workers())

    place.dagster.wait(computes, "the last stage's start", 300)
    place.dagster.terminate(run_id)
    told = time.monotonic()
    while place.ui.busy_workers():
        assert time.monotonic() - told < 20
    run = place.dagster.ended(run_id)
    assert run.status == "CANCELED"
    assert not any(len(key) == 1 for key in run.made)
    collect_garbage(place.store, older_than=datetime.timedelta(0))
    left = files(place) - before
    committed = {path.parent for path in left if path.name == "manifest.json"}
    assert {path for path in left if path.parent not in committed} == set()


def test_a_run_whose_process_dies_has_failed(place: Place) -> None:
    run_id = place.dagster.launch("run_endless")
    place.dagster.wait(lambda: bool(place.dagster.run(run_id).steps), "a step", 120)
    (message,) = [
        event["message"]
        for event in place.dagster.run(run_id).events
        if event.get("message", "").startswith("Started process for run")
    ]
    os.kill(int(message.rsplit(" ", 1)[1].strip(").")), signal.SIGKILL)
    assert place.dagster.ended(run_id, seconds=180).status == "FAILURE"


def files(place: Place) -> set[Path]:
    return {p for p in (place.ui.folder / "store" / "shuffle").rglob("*") if p.is_file()}
