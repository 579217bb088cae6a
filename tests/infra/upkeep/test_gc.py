"""Garbage collection: what goes, and above all what stays."""

from __future__ import annotations

import datetime
import json
import os
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import botocore.exceptions
import pyarrow as pa
import pytest

from stagecoach.infra.errors import ConfigError, StorageError
from stagecoach.infra.runtime.records.run_marks import mark_begun, mark_ended
from stagecoach.infra.shuffle.commit import is_lost, load_manifest, mark_lost
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.shuffle.reader import read_table
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.fsspec_store import FsspecStore
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.infra.storage.object_store import ObjectStore, StorageOptions
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.storage.uploads import find_uploads
from stagecoach.infra.upkeep.ages import parse_age
from stagecoach.infra.upkeep.gc import collect_garbage
from stagecoach.infra.upkeep.run_needs import RunNeeds, Runs
from stagecoach.infra.upkeep.usage import storage_usage
from tests.s3_server import S3Server
from tests.s3_server import s3_server as s3_server
from tests.stage_outputs import commit_files, write_map_file

NOW = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)
WEEK = datetime.timedelta(days=7)
HOUR = datetime.timedelta(hours=1)
SCHEMA = pa.schema([pa.field("a", pa.int64())])


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path))


def fingerprint(number: int) -> str:
    return f"{number:064x}"


def commit(store: ObjectStore, number: int, age: datetime.timedelta) -> Manifest:
    """A committed stage with one map file, last written `age` before NOW."""
    key = fingerprint(number)
    rows = pa.RecordBatch.from_arrays([pa.array([1, 2])], schema=SCHEMA)
    file = write_map_file(store, key, [rows], SCHEMA)
    manifest = commit_files(store, key, [file], SCHEMA, stage_id=number)
    set_age(store, layout.shuffle_prefix(key), age)
    return manifest


def set_age(store: ObjectStore, prefix: str, age: datetime.timedelta) -> None:
    moment = (NOW - age).timestamp()
    for key in list(store.list(prefix)):
        os.utime(store.uri(key), (moment, moment))


def add_run(
    store: ObjectStore,
    run_id: str,
    pins: list[int],
    age: datetime.timedelta,
    *,
    ended: bool,
) -> None:
    store.write_bytes(layout.run_snapshot(run_id), b"{}")
    for stage_id, number in enumerate(pins):
        pointer = {"fingerprint": fingerprint(number), "manifest_hash": "f" * 64}
        key = layout.run_stage(run_id, f"stage_{stage_id}")
        store.write_bytes(key, json.dumps(pointer).encode())
    if ended:
        store.write_bytes(f"{layout.run_prefix(run_id)}/events.jsonl", b"")
    set_age(store, layout.run_prefix(run_id), age)


def shuffles(store: ObjectStore) -> set[str]:
    return {key.split("/")[2] for key in store.list("shuffle")}


def test_expired_shuffle_goes_whole_and_a_recent_one_stays(store: LocalStore) -> None:
    commit(store, 1, 8 * WEEK)
    commit(store, 2, HOUR)
    report = collect_garbage(store, older_than=WEEK, now=NOW)
    assert [s.fingerprint for s in report.expired] == [fingerprint(1)]
    assert report.expired[0].stage == "q/stage_1"
    assert report.num_objects == 3
    assert report.num_kept == 1
    assert shuffles(store) == {fingerprint(2)}


def test_dry_run_says_the_same_and_removes_nothing(store: LocalStore) -> None:
    commit(store, 1, 8 * WEEK)
    before = list(store.list("shuffle"))
    planned = collect_garbage(store, older_than=WEEK, now=NOW, dry_run=True)
    assert list(store.list("shuffle")) == before
    assert collect_garbage(store, older_than=WEEK, now=NOW) == planned


def test_run_of_late_keeps_old_shuffles_that_it_reused(store: LocalStore) -> None:
    commit(store, 1, 8 * WEEK)
    commit(store, 2, 8 * WEEK)
    add_run(store, "run-1", [1], HOUR, ended=True)
    collect_garbage(store, older_than=WEEK, now=NOW)
    assert shuffles(store) == {fingerprint(1)}


def test_old_run_keeps_nothing(store: LocalStore) -> None:
    commit(store, 1, 8 * WEEK)
    add_run(store, "run-1", [1], 7 * WEEK, ended=True)
    collect_garbage(store, older_than=WEEK, now=NOW)
    assert shuffles(store) == set()


def test_run_in_progress_keeps_what_it_pinned_at_any_age(store: LocalStore) -> None:
    commit(store, 1, 8 * WEEK)
    add_run(store, "run-1", [1], HOUR, ended=False)
    collect_garbage(store, older_than=datetime.timedelta(0), now=NOW)
    assert shuffles(store) == {fingerprint(1)}


def test_a_run_ends_when_all_who_work_in_its_folder_say_so(store: LocalStore) -> None:
    commit(store, 1, 2 * HOUR)
    add_run(store, "run1", [1], HOUR, ended=False)
    mark_begun(store, "run1", "run1")
    mark_begun(store, "run1", "again")
    mark_ended(store, "run1", "run1")

    def expired() -> list[str]:
        set_age(store, layout.run_prefix("run1"), HOUR)
        report = collect_garbage(store, older_than=HOUR / 2, now=NOW, dry_run=True)
        return [s.fingerprint for s in report.expired]

    assert expired() == []  # the re-execution goes on
    mark_ended(store, "run1", "again")
    assert expired() == [fingerprint(1)]
    # A run that has ended keeps what it pinned as long as everything of its age is kept.
    assert collect_garbage(store, older_than=2 * HOUR, now=NOW).expired == ()
    mark_begun(store, "run1", "third")
    assert expired() == []


def test_orphans_go_and_the_committed_attempt_stays(store: LocalStore) -> None:
    manifest = commit(store, 1, HOUR)
    loser = layout.map_file(fingerprint(1), 0, layout.new_attempt(1))
    never = layout.map_file(fingerprint(2), 0, layout.new_attempt())
    for key in (loser, never):
        store.write_bytes(key, b"left behind")
        os.utime(store.uri(key), ((NOW - 2 * WEEK).timestamp(),) * 2)
    report = collect_garbage(store, older_than=WEEK, now=NOW)
    assert set(report.orphans) == {loser, never}
    assert report.orphan_bytes == 22
    assert set(store.list("shuffle")) == set(manifest.file_keys())


def test_attempts_of_a_run_in_progress_stay(store: LocalStore) -> None:
    add_run(store, "run-1", [], 2 * HOUR, ended=False)
    before, during = (layout.map_file(fingerprint(2), n, layout.new_attempt()) for n in (0, 1))
    for key, age in ((before, 3 * HOUR), (during, HOUR)):
        store.write_bytes(key, b"x")
        os.utime(store.uri(key), ((NOW - age).timestamp(),) * 2)
    report = collect_garbage(store, older_than=datetime.timedelta(0), now=NOW)
    assert report.orphans == (before,)


def test_run_that_died_long_ago_protects_no_attempts(store: LocalStore) -> None:
    add_run(store, "run-1", [], 2 * WEEK, ended=False)
    key = layout.map_file(fingerprint(2), 0, layout.new_attempt())
    store.write_bytes(key, b"x")
    os.utime(store.uri(key), ((NOW - 2 * WEEK).timestamp(),) * 2)
    assert collect_garbage(store, older_than=WEEK, now=NOW).orphans == (key,)


def test_damaged_pointer_stops_everything(store: LocalStore) -> None:
    commit(store, 1, 8 * WEEK)
    add_run(store, "run-1", [1], HOUR, ended=True)
    key = layout.run_stage("run-1", "stage_0")
    store.write_bytes(key, b"{")
    os.utime(store.uri(key), ((NOW - HOUR).timestamp(),) * 2)
    with pytest.raises(StorageError, match=r"stage_0.json is damaged .* nothing was removed"):
        collect_garbage(store, older_than=WEEK, now=NOW)
    assert shuffles(store) == {fingerprint(1)}


def test_damaged_manifest_keeps_its_files_until_it_expires(store: LocalStore) -> None:
    commit(store, 1, HOUR)
    key = layout.manifest(fingerprint(1))
    store.write_bytes(key, b"{")
    os.utime(store.uri(key), ((NOW - HOUR).timestamp(),) * 2)
    report = collect_garbage(store, older_than=datetime.timedelta(minutes=1), now=NOW, dry_run=True)
    assert not report.orphans
    assert report.expired[0].stage == "unreadable manifest"


def test_empty_store(store: LocalStore) -> None:
    assert collect_garbage(store, older_than=WEEK, now=NOW).num_objects == 0


def test_remote_store_by_its_own_times() -> None:
    remote = open_store("memory://gc-test")
    commit_remote = layout.map_file(fingerprint(1), 0, layout.new_attempt())
    remote.write_bytes(commit_remote, b"abc")
    future = datetime.datetime.now(datetime.UTC) + 2 * WEEK
    assert not collect_garbage(remote, older_than=WEEK, dry_run=True).orphans
    report = collect_garbage(remote, older_than=WEEK, now=future)
    assert report.orphans == (commit_remote,)
    assert report.orphan_bytes == 3
    assert not remote.exists(commit_remote)


class OtherClock(FsspecStore):
    """A store whose clock is wrong, and some of whose objects are old."""

    def __init__(self, url: str, ahead: datetime.timedelta) -> None:
        super().__init__(url)
        self.ahead = ahead
        self.ages: dict[str, datetime.timedelta] = {}

    def list_details(self, prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for key, details in super().list_details(prefix):
            ahead = self.ahead - self.ages.get(key, datetime.timedelta())
            yield key, {**details, "created": details["created"] + ahead.total_seconds()}


@pytest.mark.parametrize("hours", [-40, -3, 0, 3, 40])
@pytest.mark.parametrize("with_run", [True, False], ids=["beside a run", "alone"])
def test_ages_go_by_the_clock_of_the_store(hours: int, with_run: bool) -> None:
    store = OtherClock(f"memory://clock-{uuid.uuid4().hex}", hours * HOUR)
    new, old = (layout.map_file(fingerprint(2), n, layout.new_attempt()) for n in (0, 1))
    for key in (new, old):
        store.write_bytes(key, b"x")
    store.ages[old] = 2 * HOUR
    if with_run:
        store.write_bytes(layout.run_snapshot("run"), b"{}")
        mark_begun(store, "run", "run")
    before = set(store.list(""))
    planned = collect_garbage(store, older_than=HOUR, dry_run=True)
    assert planned.orphans == (old,)
    assert set(store.list("")) == before
    assert collect_garbage(store, older_than=HOUR) == planned
    assert set(store.list("")) == before - {old}


def test_attempts_of_a_run_stay_whatever_the_clock_of_the_store_says() -> None:
    store = OtherClock(f"memory://clock-{uuid.uuid4().hex}", -40 * HOUR)
    mark_begun(store, "run", "run")
    key = layout.map_file(fingerprint(2), 0, layout.new_attempt())
    store.write_bytes(key, b"x")
    assert not collect_garbage(store, older_than=datetime.timedelta()).num_objects
    assert store.exists(key)


def test_folder_of_a_run_that_is_over_goes_and_others_stay(store: LocalStore) -> None:
    add_run(store, "old", [1], 8 * WEEK, ended=True)
    add_run(store, "dead", [1], 8 * WEEK, ended=False)
    add_run(store, "late", [1], HOUR, ended=True)
    add_run(store, "live", [1], HOUR, ended=False)
    told = collect_garbage(store, older_than=WEEK, now=NOW, dry_run=True)
    assert {run.run_id for run in told.runs} == {"old", "dead"}
    report = collect_garbage(store, older_than=WEEK, now=NOW)
    assert report == told
    assert (report.num_objects, report.num_kept_runs) == (5, 2)
    assert report.num_bytes == sum(run.num_bytes for run in report.runs) > 0
    assert {key.split("/")[1] for key in store.list("runs")} == {"late", "live"}


def test_commit_of_a_run_in_progress_stays_before_it_is_pinned(store: LocalStore) -> None:
    add_run(store, "live", [], 2 * HOUR, ended=False)
    commit(store, 1, HOUR)
    commit(store, 2, 3 * HOUR)
    report = collect_garbage(store, older_than=datetime.timedelta(), now=NOW)
    assert [s.fingerprint for s in report.expired] == [fingerprint(2)]


def test_what_is_pinned_while_it_goes_is_put_back(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = commit(store, 1, 8 * WEEK)
    commit(store, 2, 8 * WEEK)
    delete = LocalStore.delete

    def pin_first(self: LocalStore, keys: Sequence[str]) -> None:
        if any(key.endswith("manifest.json") for key in keys):
            add_run(store, "late", [1], HOUR, ended=False)
        delete(self, keys)

    monkeypatch.setattr(LocalStore, "delete", pin_first)
    report = collect_garbage(store, older_than=WEEK, now=NOW)
    assert [s.fingerprint for s in report.expired] == [fingerprint(2)]
    assert report.num_kept == 1
    assert load_manifest(store, fingerprint(1)) == manifest
    assert read_table(store, manifest).num_rows == 2


def lose(store: ObjectStore, manifest: Manifest, age: datetime.timedelta) -> None:
    """Mark a commit as lost, `age` before NOW."""
    mark_lost(store, manifest.fingerprint, manifest.manifest_hash)
    set_age(store, layout.shuffle_prefix(manifest.fingerprint), age)


def test_a_lost_commit_goes_even_if_a_run_has_pinned_it(store: LocalStore) -> None:
    lose(store, commit(store, 1, 8 * WEEK), 8 * WEEK)
    add_run(store, "late", [1], HOUR, ended=True)
    report = collect_garbage(store, older_than=WEEK, now=NOW)
    assert [(s.fingerprint, s.is_lost) for s in report.expired] == [(fingerprint(1), True)]
    assert shuffles(store) == set()


def test_the_mark_of_a_lost_commit_stays_as_long_as_the_commit(store: LocalStore) -> None:
    manifest = commit(store, 1, 8 * WEEK)
    lose(store, manifest, 8 * WEEK)
    store.write_bytes(layout.claim(fingerprint(1)), b"{}")  # a run computes it just now
    report = collect_garbage(store, older_than=WEEK, now=NOW)
    assert report.num_objects == 0
    assert is_lost(store, manifest)


@pytest.mark.parametrize("damage", ["marked", "missing", "manifest"])
def test_what_is_computed_again_while_it_goes_stays(
    damage: str, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = commit(store, 1, 8 * WEEK)
    if damage == "marked":
        lose(store, old, 8 * WEEK)
    elif damage == "manifest":
        store.write_bytes(layout.manifest(fingerprint(1)), b"{")
        set_age(store, layout.shuffle_prefix(fingerprint(1)), 8 * WEEK)
    made: list[Manifest] = []
    looks: list[RunNeeds] = []
    needs = Runs.needs

    def recover_first(self: Runs) -> RunNeeds:
        # After the listing a run finds the loss, and has yet to pin what it makes.
        if looks and not made:
            mark_lost(store, fingerprint(1), old.manifest_hash)
            made.append(commit(store, 1, HOUR))
        looks.append(needs(self))
        return looks[-1]

    monkeypatch.setattr(Runs, "needs", recover_first)
    report = collect_garbage(store, older_than=WEEK, now=NOW)
    (found,) = made
    assert found.manifest_hash != old.manifest_hash
    assert load_manifest(store, fingerprint(1)) == found
    assert read_table(store, found).num_rows == 2
    assert (report.expired, report.num_kept) == ((), 1)


def begin_upload(root: str, store: FsspecStore, key: str) -> str:
    """Upload a part, as a worker that is killed then; return the server's name for the upload."""
    bucket, _, prefix = root.removeprefix("s3://").partition("/")
    target = {"Bucket": bucket, "Key": f"{prefix}/{key}"}
    begun: str = store.filesystem.call_s3("create_multipart_upload", **target)["UploadId"]
    part = {"UploadId": begun, "PartNumber": 1, "Body": b"x" * (5 << 20)}
    store.filesystem.call_s3("upload_part", **target, **part)
    return begun


def unfinished(root: str, store: FsspecStore) -> list[str]:
    bucket, _, prefix = root.removeprefix("s3://").partition("/")
    answer = store.filesystem.call_s3("list_multipart_uploads", Bucket=bucket, Prefix=f"{prefix}/")
    return [item["UploadId"] for item in answer.get("Uploads", ())]


@pytest.mark.s3
def test_uploads_of_killed_workers_are_aborted(s3_server: S3Server) -> None:
    root, other = s3_server.new_root(), s3_server.new_root()
    store, neighbour = (FsspecStore(url, s3_server.options) for url in (root, other))
    key = layout.map_file(fingerprint(1), 0, layout.new_attempt())
    begin_upload(root, store, key)
    kept = begin_upload(other, neighbour, key)
    assert collect_garbage(store, older_than=HOUR).uploads == ()
    later = datetime.datetime.now(datetime.UTC) + 2 * HOUR
    planned = collect_garbage(store, older_than=HOUR, now=later, dry_run=True)
    assert [upload.key for upload in planned.uploads] == [key]
    assert len(unfinished(root, store)) == 1
    assert collect_garbage(store, older_than=HOUR, now=later) == planned
    assert unfinished(root, store) == []
    assert unfinished(other, neighbour) == [kept]


@pytest.mark.s3
def test_uploads_of_a_run_in_progress_go_on(s3_server: S3Server) -> None:
    root = s3_server.new_root()
    store = FsspecStore(root, s3_server.options)
    mark_begun(store, "run", "run")
    begun = begin_upload(root, store, layout.map_file(fingerprint(1), 0, layout.new_attempt()))
    later = datetime.datetime.now(datetime.UTC) + 2 * HOUR
    assert collect_garbage(store, older_than=HOUR, now=later).uploads == ()
    assert unfinished(root, store) == [begun]


class Refusing(FsspecStore):
    """A store on S3 whose server refuses to list uploads, or cannot."""

    def __init__(self, code: str, status: int) -> None:
        super().__init__("s3://bucket/root", StorageOptions(region="us-east-1"))
        self.answer = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}

    @property
    def filesystem(self) -> Refusing:
        return self

    def call_s3(self, method: str, **_: str) -> None:
        raise botocore.exceptions.ClientError(self.answer, method)


def test_a_server_without_a_list_of_uploads_has_none(caplog: pytest.LogCaptureFixture) -> None:
    assert find_uploads(Refusing("NotImplemented", 501), before=NOW) == ()
    assert not caplog.records
    assert find_uploads(Refusing("AccessDenied", 403), before=NOW) == ()
    assert "parts of unfinished uploads stay" in caplog.text
    assert "access denied" in caplog.text
    with pytest.raises(StorageError, match="cannot list multipart uploads s3://bucket/root/"):
        find_uploads(Refusing("InternalError", 500), before=NOW)


def test_usage_is_told_by_query_and_stage(store: LocalStore) -> None:
    manifest = commit(store, 1, HOUR)
    commit(store, 2, HOUR)
    add_run(store, "run", [1], HOUR, ended=True)
    store.write_bytes(layout.map_file(fingerprint(1), 0, layout.new_attempt()), b"orphan")
    found = storage_usage(store)
    assert [usage.name for usage in found.stages] == ["q/stage_1", "q/stage_2"]
    first = found.stages[0]
    assert (first.num_items, first.num_objects, first.num_rows) == (1, 3, 2)
    assert first.num_bytes == sum(store.size(key) for key in manifest.file_keys())
    assert (found.uncommitted.num_objects, found.uncommitted.num_bytes) == (1, 6)
    assert found.runs.num_items == 1
    assert found.total.num_objects == len(list(store.list("")))


@pytest.mark.parametrize(
    ("text", "hours"), [("90s", 0.025), ("2m", 1 / 30), ("12h", 12), ("7d", 168), (" 2 W ", 336)]
)
def test_ages(text: str, hours: float) -> None:
    assert parse_age(text) == datetime.timedelta(hours=hours)


@pytest.mark.parametrize("text", ["", "7", "d", "-1d", "1y", "9" * 20 + "d"])
def test_what_is_no_age_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match="age"):
        parse_age(text)
