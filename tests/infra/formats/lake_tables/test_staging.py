"""What is staged for tables of lakes: nothing of it is in the lake until it is published."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.delta.opening import storage_options
from stagecoach.infra.formats.lake_tables import staged_log, staging_writer
from stagecoach.infra.formats.protocol import Access
from stagecoach.infra.formats.published.table_format import FORMAT
from stagecoach.infra.formats.publishing import (
    PartitionWindow,
    PublishError,
    PublishTarget,
    StagedGoneError,
)
from stagecoach.infra.formats.registry import find_stored
from stagecoach.infra.formats.staged_version import STAGED, staged_version
from stagecoach.infra.formats.stored import NotStagedError
from stagecoach.infra.formats.table_places import write_place
from stagecoach.infra.publishing.publish import Published
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.versioned_names import TableVersion
from tests.infra.formats.delta.lake import DeltaLake
from tests.infra.formats.lake_tables.lakes import FORMATS, AnyLake, keys_in, make_lake, rows
from tests.infra.formats.published.outputs import publish_rows
from tests.moto_server import BUCKET
from tests.moto_server import moto_options as moto_options

MODES = ("append", "replace", "replace_partition")


@pytest.fixture(params=FORMATS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> AnyLake:
    return make_lake(request.param, tmp_path)


@pytest.mark.parametrize("mode", MODES)
def test_nobody_sees_what_is_staged(lake: AnyLake, mode: str) -> None:
    lake.publish_keys(mode, 1, 2)
    before = lake.num_versions()
    staged = lake.stage_keys(mode, 2, 3, run_id="r1")
    assert (lake.keys(), lake.num_versions()) == ([1, 2], before)
    assert lake.stored.staged() == [staged.version]
    assert (staged.version.num_rows, staged.version.mode, staged.version.run_id) == (2, mode, "r1")
    expected = {"append": [1, 2, 2, 3], "replace": [2, 3], "replace_partition": [1, 2, 3]}[mode]
    assert keys_in(lake.stored.staged_state(staged.version.id)) == expected
    assert keys_in(lake.stored.state()) == [1, 2]
    published = staged.publish()
    assert (published.num_rows, published.reused) == (2, False)
    assert lake.keys() == keys_in(lake.stored.state()) == expected
    assert (lake.stored.staged(), lake.pending(), lake.num_versions()) == ([], [], before + 1)
    again = lake.stage(rows(2, 3), mode="append") if mode == "append" else None
    assert again is None or (isinstance(again, Published) and again.reused)


def test_queries_read_what_is_staged_by_name(lake: AnyLake) -> None:
    lake.publish_keys("append", 1)
    first, _ = lake.stage_keys("append", 2), lake.stage_keys("append", 3, 4)
    newest = TableVersion("version", STAGED)
    assert keys_in(lake.stored.at(newest)) == [1, 3, 4]
    assert keys_in(lake.stored.at(staged_version(first.version.id))) == [1, 2]
    with pytest.raises(NotStagedError, match="'ab12' is not staged"):
        lake.stored.at(TableVersion("version", f"{STAGED}-ab12"))


def test_partitions_are_read_from_what_is_staged(lake: AnyLake) -> None:
    """A column of the partitions may not be in the files."""
    days = [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]
    table = pa.table({"day": pa.array(days), "k": [1, 2]})
    windows = tuple(PartitionWindow(str(d), d, d + dt.timedelta(1)) for d in days)
    target = {
        "mode": "replace_partition",
        "partition_by": ("day",),
        "partition_column": "day",
        "partition_keys": tuple(map(str, days)),
        "windows": windows,
    }
    lake.publish(table, **target)
    staged = lake.stage(table.set_column(1, "k", pa.array([5, 6])), **target)
    assert staged.version.rows == {"2024-01-01": 1, "2024-01-02": 1}
    state = lake.stored.staged_state(staged.version.id)
    assert keys_in(state) == [5, 6]
    assert len(state.snapshot.detail["files"]) == 2  # where scans find the partitions
    lake.stored.publish_staged(staged.version.id)  # the windows are in the record
    assert [(str(r["day"]), r["k"]) for r in sorted(lake.rows(), key=lambda r: r["k"])] == [
        ("2024-01-01", 5),
        ("2024-01-02", 6),
    ]


def test_a_target_survives_the_way_through_its_record() -> None:
    moment = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    target = PublishTarget(
        table="t",
        place={"location": "x"},
        key=("k",),
        partition_keys=("a",),
        windows=(
            PartitionWindow("a", moment, moment + dt.timedelta(hours=1)),
            PartitionWindow("b", moment.date(), moment.date()),
        ),
        comments=(("k", "the key"),),
    )
    assert PublishTarget.from_dict(target.to_dict()) == target


def test_a_run_that_is_repeated_finds_what_it_has_staged(lake: AnyLake) -> None:
    first = lake.stage_keys("append", 1, run_id="r1")
    files = lake.data_files()
    again = lake.stage_keys("append", 1, run_id="r2")
    assert (again.version, lake.data_files()) == (first.version, files)
    assert again.publish().reused is False
    assert first.publish().reused is True
    assert (lake.keys(), lake.pending(), lake.data_files()) == ([1], [], files)


def test_what_is_staged_is_applied_to_the_newest_version(lake: AnyLake) -> None:
    part = lake.stage_keys("replace_partition", 1)
    added = lake.stage_keys("append", 3)
    lake.publish_keys("replace_partition", 2)
    part.publish()
    assert keys_in(lake.stored.staged_state(added.version.id)) == [1, 2, 3]
    added.publish()
    assert lake.keys() == [1, 2, 3]


def test_each_result_is_decided_by_hand(lake: AnyLake) -> None:
    one, two, three = (lake.stage_keys("replace_partition", k).version for k in (1, 2, 3))
    table = lake.stored
    version = table.publish_staged(three.id)
    assert (version.mode, version.partition_keys) == ("replace_partition", ("3",))
    table.discard_staged(one.id)
    table.discard_staged(one.id)  # forgotten already
    assert (table.staged(), lake.keys()) == ([two], [3])
    with pytest.raises(NotStagedError, match=f"'{one.id}' is not staged"):
        table.publish_staged(one.id)
    lake.collect()
    assert len(lake.data_files()) == 2
    assert len(lake.pending()) == 1
    assert len(lake.log_records()) == 1
    table.publish_staged(two.id)
    lake.collect()
    assert (lake.keys(), lake.data_files()) == ([2, 3], lake.named_files())


def test_what_was_discarded_is_not_published(lake: AnyLake) -> None:
    staged = lake.stage_keys("append", 1)
    lake.stored.discard_staged(staged.version.id)
    with pytest.raises(StagedGoneError, match="run the query again") as found:
        staged.publish()
    assert found.value.retryable
    assert lake.keys() == []
    lake.stage_keys("append", 1).publish()
    assert lake.keys() == [1]


def test_a_later_result_replaces_what_waits(lake: AnyLake) -> None:
    older, added = lake.stage_keys("replace", 1), lake.stage_keys("append", 5)
    newer, latest = lake.stage_keys("replace", 2), lake.stage_keys("replace", 3)
    newer.publish()
    assert lake.stored.staged() == [added.version, latest.version]
    lake.publish_keys("replace", 4)  # unchecked
    assert lake.stored.staged() == [added.version]
    with pytest.raises(StagedGoneError):
        older.publish()
    for key in range(10, 16):
        lake.stage_keys("replace", key, keep_versions=3)
    assert [s.mode for s in lake.stored.staged()] == ["append", *["replace"] * 3]


def test_a_table_that_does_not_take_it_keeps_it_staged(lake: AnyLake) -> None:
    staged = lake.stage_keys("append", 1)
    lake.alter()
    for publish in (staged.publish, lambda: lake.stored.publish_staged(staged.version.id)):
        with pytest.raises(PublishError, match="column 'more' is string there and missing here"):
            publish()
    with pytest.raises(PublishError, match="column 'more'"):
        lake.stored.staged_state("")
    assert lake.stored.staged() == [staged.version]
    lake.stored.discard_staged(staged.version.id)  # the claims were taken back
    assert lake.stored.staged() == []


def test_the_same_rows_published_unchecked_end_the_wait(lake: AnyLake) -> None:
    staged = lake.stage_keys("append", 1)
    lake.publish_keys("append", 1)
    assert lake.stored.staged() == []
    assert staged.publish().reused
    lake.collect()
    assert (lake.keys(), lake.data_files(), lake.pending()) == ([1], lake.named_files(), [])


def test_a_table_in_another_place_does_not_get_it(lake: AnyLake) -> None:
    staged = lake.stage_keys("append", 1)
    name = staged.version.table
    write_place(lake.store, lake.format, name, {**lake.place, "location": "elsewhere"})
    with pytest.raises(PublishError, match="was staged for another place"):
        lake.stored.publish_staged(staged.version.id)


def test_who_publishes_keeps_others_from_discarding(
    lake: AnyLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process has died after its claim."""
    staged = lake.stage_keys("append", 1)
    (commit,) = lake.stored.staged_log.commits()
    assert lake.stored.staged_log.claim(commit.token)
    with pytest.raises(PublishError, match=r"is being published since .* or discard it after"):
        lake.stored.discard_staged(staged.version.id)
    monkeypatch.setattr(staged_log, "CLAIM_TIME", dt.timedelta(0))
    lake.stored.discard_staged(staged.version.id)
    assert lake.stored.staged() == []
    assert lake.stored.staged_log.claim(commit.token) is None


def test_nobody_commits_by_an_old_claim(lake: AnyLake, monkeypatch: pytest.MonkeyPatch) -> None:
    staged = lake.stage_keys("append", 1)
    monkeypatch.setattr(staging_writer, "PUBLISH_TIME", dt.timedelta(-1))
    with pytest.raises(StorageError, match="may have been discarded meanwhile"):
        staged.publish()
    assert lake.keys() == []
    monkeypatch.undo()
    assert staged.publish().reused is False
    assert lake.keys() == [1]


def test_a_damaged_record_can_be_discarded(lake: AnyLake) -> None:
    staged = lake.stage_keys("append", 1)
    (key,) = lake.pending()
    text = lake.store.read_bytes(key)
    lake.store.write_bytes(key, text.replace(b'"append"', b'"spend"'))
    with pytest.raises(StorageError, match=r"is damaged \(checksum mismatch\); discard what is"):
        lake.stored.publish_staged(staged.version.id)
    lake.stored.discard_staged(staged.version.id)
    lake.store.write_bytes(key, text)
    lake.collect()
    assert (lake.pending(), lake.data_files()) == ([], set())


def test_a_branch_may_be_called_as_what_is_staged(tmp_path: Path) -> None:
    lake = make_lake("iceberg", tmp_path)
    lake.publish_keys("append", 1)
    newest = TableVersion("version", STAGED)
    with pytest.raises(CatalogError, match="nothing is staged"):
        lake.stored.at(newest)
    snapshot = lake.opened.current_snapshot().snapshot_id
    lake.opened.manage_snapshots().create_branch(snapshot, STAGED).commit()
    lake.publish_keys("append", 2)
    assert keys_in(lake.stored.at(newest)) == [1]
    lake.stage_keys("append", 3)
    assert keys_in(lake.stored.at(newest)) == [1, 2, 3]


def test_the_log_survives_the_way_through_json(lake: AnyLake) -> None:
    lake.stage_keys("append", 1)
    log = lake.stored.staged_log
    (commit,) = log.commits()
    log.claim(commit.token)
    version = log.versions.current()
    assert version is not None
    assert type(version).from_json(version.to_json(), "x") == version
    assert len(version.commits[0].claims) == 1
    assert replace(version.commits[0], claims=()) == commit


def test_a_table_whose_first_result_is_staged_is_found(lake: AnyLake) -> None:
    """Neither a plan nor a check tells its format."""
    publish_rows(lake.store, rows(1), lake.stored.name)
    FORMAT.stored(lake.store, lake.stored.name, Access()).clear()
    staged = lake.stage_keys("append", 1)
    found = find_stored(lake.store, lake.stored.name, Access())
    assert found.staged() == [staged.version]


@pytest.mark.s3
def test_results_wait_on_s3(moto_options: StorageOptions, tmp_path: Path) -> None:
    root = f"s3://{BUCKET}/{tmp_path.name}"
    store = open_store(f"{root}/root", moto_options)
    lake = AnyLake(
        DeltaLake(tmp_path, store, f"{root}/lake", storage_options(moto_options)), "delta"
    )
    lake.publish_keys("append", 1)
    one, two = lake.stage_keys("append", 2), lake.stage_keys("merge", 1, 3)
    for staged, count in ((one, 2), (two, 2)):
        files = lake.stored.staged_state(staged.version.id).snapshot.files
        assert all(file.uri.startswith(f"{root}/lake/data/") for file in files)
        assert sum(file.num_rows for file in files) == count
    lake.stored.publish_staged(one.version.id)
    two.publish()
    assert (lake.keys(), lake.stored.staged(), lake.pending()) == ([1, 2, 3], [], [])
