"""Garbage of published tables: what goes, and above all what stays."""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path

import pyarrow as pa
import pytest

from stagecoach.infra.catalog.catalog import FileCatalog
from stagecoach.infra.catalog.planned import PlannedTable, PublishedCatalog
from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.published import paths
from stagecoach.infra.formats.published.log import (
    commit,
    read_current,
    read_version,
    version_numbers,
)
from stagecoach.infra.formats.published.version import TableVersion
from stagecoach.infra.formats.snapshot import load_or_take
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.infra.upkeep.gc import collect_garbage
from tests.infra.formats.published.outputs import objects_in, publish_rows, read_rows
from tests.infra.formats.published.test_log import change

NOW = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)
HOUR = datetime.timedelta(hours=1)
DAY = 24 * HOUR
WEEK = 7 * DAY


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path))


def publish(
    store: LocalStore, value: int, age: datetime.timedelta, table: str = "t", **target: object
) -> TableVersion:
    """A version of one file, written `age` before NOW."""
    before = objects_in(store)
    rows = pa.table({"n": pa.array([value], pa.int64())})
    version = publish_rows(store, rows, table, **target).version
    moment = (NOW - age).timestamp()
    for key in objects_in(store) - before:
        os.utime(store.uri(key), (moment, moment))
    return version


def values_in(store: LocalStore, version: TableVersion | None) -> list[int]:
    assert version is not None
    return sorted(row["n"] for row in read_rows(store, version))


def data_files(store: LocalStore) -> set[str]:
    return {key for key in objects_in(store) if "/files/" in key}


def test_the_newest_versions_stay_and_the_others_go_whole(store: LocalStore) -> None:
    for number in range(1, 8):
        publish(store, number, (10 - number) * DAY, keep_versions=3)
    planned = collect_garbage(store, older_than=WEEK, now=NOW, dry_run=True)
    assert version_numbers(store, "t") == list(range(1, 8))
    report = collect_garbage(store, older_than=WEEK, now=NOW)
    assert report == planned
    assert [(v.table, v.numbers) for v in report.versions] == [("t", (1, 2, 3, 4))]
    assert report.num_objects == 8
    assert version_numbers(store, "t") == [5, 6, 7]
    assert [values_in(store, read_version(store, "t", n)) for n in (5, 6, 7)] == [[5], [6], [7]]
    assert len(data_files(store)) == 3
    assert values_in(store, read_current(store, "t")) == [7]
    assert not collect_garbage(store, older_than=WEEK, now=NOW).num_objects


def test_a_version_that_was_just_followed_stays_for_readers(store: LocalStore) -> None:
    publish(store, 1, 3 * DAY, keep_versions=1)
    publish(store, 2, 2 * DAY, keep_versions=1)
    publish(store, 3, HOUR / 2, keep_versions=1)
    collect_garbage(store, older_than=WEEK, now=NOW)
    assert version_numbers(store, "t") == [2, 3]
    collect_garbage(store, older_than=WEEK, now=NOW + HOUR)
    assert version_numbers(store, "t") == [3]


def test_files_that_kept_versions_share_stay(store: LocalStore) -> None:
    for number in range(1, 5):
        publish(store, number, (9 - number) * DAY, mode="append", keep_versions=1)
    collect_garbage(store, older_than=datetime.timedelta(0), now=NOW)
    assert version_numbers(store, "t") == [4]
    assert values_in(store, read_current(store, "t")) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("age", "ended", "stays"),
    [(HOUR, False, True), (HOUR, True, True), (8 * DAY, True, False), (2 * DAY, False, True)],
)
def test_what_a_run_reads_stays(
    store: LocalStore, age: datetime.timedelta, ended: bool, stays: bool
) -> None:
    publish(store, 1, 20 * DAY, keep_versions=1)
    tables = PublishedCatalog(FileCatalog([], origin="none"), store, [PlannedTable(name="t")])
    snapshot = load_or_take(store, "run1", tables, ["t"])
    if ended:
        store.write_bytes(f"{layout.run_prefix('run1')}/events.jsonl", b"")
    moment = (NOW - age).timestamp()
    for key in list(store.list(layout.run_prefix("run1"))):
        os.utime(store.uri(key), (moment, moment))
    for number in (2, 3):
        publish(store, number, 10 * DAY, keep_versions=1)
    collect_garbage(store, older_than=WEEK, now=NOW)
    assert os.path.exists(snapshot.table("t").files[0].uri) == stays
    assert version_numbers(store, "t") == [3]
    # When no run reads it any more it goes as well.
    collect_garbage(store, older_than=WEEK, now=NOW + 3 * WEEK)
    assert not os.path.exists(snapshot.table("t").files[0].uri)
    assert values_in(store, read_current(store, "t")) == [3]


def test_a_damaged_snapshot_stops_everything(store: LocalStore) -> None:
    for number in (1, 2):
        publish(store, number, 10 * DAY, keep_versions=1)
    key = layout.run_snapshot("run1")
    store.write_bytes(key, b"{")
    os.utime(store.uri(key), ((NOW - HOUR).timestamp(),) * 2)
    with pytest.raises(StorageError, match=r"snapshot.json is damaged .* nothing was removed"):
        collect_garbage(store, older_than=WEEK, now=NOW)
    assert version_numbers(store, "t") == [1, 2]


def test_files_of_lost_commits_go_after_a_time(store: LocalStore) -> None:
    publish(store, 1, 10 * DAY)
    kept = objects_in(store)
    old = paths.table_file("t", paths.table_file_path((), "lost-00000.parquet"))
    new = paths.table_file("t", paths.table_file_path(("k=a%2Fb",), "lost-00001.parquet"))
    never = paths.table_file("never", paths.table_file_path((), "lost-00000.parquet"))
    left = "results/t/files/.tmp-0123"
    for key, age in ((old, 8 * DAY), (new, HOUR), (never, 8 * DAY), (left, 8 * DAY)):
        store.write_bytes(key, b"left")
        os.utime(store.uri(key), ((NOW - age).timestamp(),) * 2)
    report = collect_garbage(store, older_than=WEEK, now=NOW)
    assert set(report.orphans) == {old, never, left}
    assert objects_in(store) == kept | {new}


def test_a_run_in_progress_protects_what_it_has_yet_to_commit(store: LocalStore) -> None:
    store.write_bytes(layout.run_snapshot("run1"), json.dumps({"tables": {}}).encode())
    os.utime(store.uri(layout.run_snapshot("run1")), ((NOW - 2 * HOUR).timestamp(),) * 2)
    key = paths.table_file("t", paths.table_file_path((), "new-00000.parquet"))
    store.write_bytes(key, b"new")
    os.utime(store.uri(key), ((NOW - HOUR).timestamp(),) * 2)
    collect_garbage(store, older_than=datetime.timedelta(0), now=NOW)
    assert store.exists(key)


def test_a_damaged_version_keeps_its_table_as_it_is(
    store: LocalStore, caplog: pytest.LogCaptureFixture
) -> None:
    for number in (1, 2, 3):
        publish(store, number, 10 * DAY, keep_versions=1)
    key = paths.table_version("t", 2)
    store.write_bytes(key, b"{")
    before = objects_in(store)
    assert not collect_garbage(store, older_than=WEEK, now=NOW).num_objects
    assert objects_in(store) == before
    assert "table t stays as it is" in caplog.text


def test_gc_between_commits_leaves_the_count(store: LocalStore) -> None:
    for number in range(1, 4):
        commit(store, change(f"x{number}"))
    later = datetime.datetime.now(datetime.UTC) + WEEK
    collect_garbage(store, older_than=datetime.timedelta(0), now=later)
    store.delete([paths.table_current("t")])
    assert commit(store, change("x4")).version.number == 4
