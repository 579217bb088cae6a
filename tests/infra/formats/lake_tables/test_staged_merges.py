"""Merges that are staged, into tables of each format: they are merges of one version."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from stagecoach.infra.formats.protocol import Access
from stagecoach.infra.formats.published.log import read_current
from stagecoach.infra.formats.published.table_format import FORMAT
from stagecoach.infra.formats.publishing import PublishError
from stagecoach.infra.formats.stored import StoredTable
from stagecoach.infra.publishing import jobs
from stagecoach.infra.publishing.merge_tasks import RewriteTask
from stagecoach.infra.publishing.merging import Merge
from stagecoach.infra.publishing.publish import Published, Staged
from stagecoach.infra.publishing.tasks import PublishReport, PublishTask
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.upkeep.gc import collect_garbage
from stagecoach.planner.errors import CatalogError
from tests.infra.formats.lake_tables.lakes import FORMATS, keys_in, make_lake
from tests.infra.formats.published.outputs import publish_rows, stage_rows


@dataclass(frozen=True)
class Merged:
    """A table that is merged into by `k`; a row with `gone` deletes its key."""

    publish_rows: Callable[..., Published]
    stage_rows: Callable[..., Staged | Published]
    stored: StoredTable
    store: ObjectStore

    target = {"mode": "merge", "key": ("k",), "delete_column": "gone"}  # noqa: RUF012

    def publish(self, *keys: int, gone: tuple[int, ...] = ()) -> Published:
        return self.publish_rows(rows(keys, gone), **self.target)

    def stage(self, *keys: int, gone: tuple[int, ...] = (), **more: Any) -> Staged:
        staged = self.stage_rows(rows(keys, gone), **self.target, **more)
        assert isinstance(staged, Staged)
        return staged

    def append(self, *keys: int) -> Published:
        return self.publish_rows(rows(keys, ()).drop_columns("gone"), mode="append")

    def keys(self) -> list[int]:
        return keys_in(self.stored.state())

    def collect(self) -> None:
        later = dt.datetime.now(dt.UTC) + dt.timedelta(days=1)
        collect_garbage(self.store, older_than=dt.timedelta(0), now=later)


def rows(keys: tuple[int, ...], gone: tuple[int, ...]) -> pa.Table:
    flags = pa.array([False] * len(keys) + [True] * len(gone))
    return pa.table({"k": pa.array([*keys, *gone], pa.int64()), "gone": flags})


@pytest.fixture(params=["published", *FORMATS])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Merged:
    if request.param != "published":
        lake = make_lake(request.param, tmp_path)
        return Merged(lake.publish, lake.stage, lake.stored, lake.store)
    store = open_store(tmp_path)
    return Merged(
        lambda rows, **target: publish_rows(store, rows, **target),
        lambda rows, **target: stage_rows(store, rows, **target),
        FORMAT.stored(store, "t", Access()),
        store,
    )


def test_the_merged_table_is_read_before_it_is_published(table: Merged) -> None:
    table.publish(1, 2, 3)
    table.publish(7)
    staged = table.stage(3, 4, gone=(1,))
    assert table.keys() == [1, 2, 3, 7]
    assert (staged.version.mode, staged.version.num_rows) == ("merge", 2)
    assert keys_in(table.stored.staged_state(staged.version.id)) == [2, 3, 4, 7]
    version = table.stored.publish_staged(staged.version.id)
    assert version.mode == "merge"
    assert table.keys() == [2, 3, 4, 7]
    assert table.stored.staged() == []
    assert staged.publish().reused
    table.collect()
    assert table.keys() == [2, 3, 4, 7]


def test_a_first_merge_waits(table: Merged) -> None:
    staged = table.stage(1, 2)
    assert keys_in(table.stored.staged_state("")) == [1, 2]
    assert staged.publish().num_rows == 2
    assert table.keys() == [1, 2]


def test_a_merge_that_deletes_all_rows_waits(table: Merged) -> None:
    table.publish(1, 2)
    staged = table.stage(gone=(1, 2))
    assert keys_in(table.stored.staged_state("")) == []
    staged.publish()
    assert table.keys() == []


def test_a_run_merges_into_whatever_the_table_is_by_then(
    table: Merged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only files that are new are looked at."""
    table.publish(1, 2)
    table.publish(7)
    staged = table.stage(2, 3)
    table.append(3, 4)
    tasks: list[PublishTask] = []
    run = jobs.run_publish_task

    def counted(task: PublishTask, attempt: int = 0) -> PublishReport:
        tasks.append(task)
        return run(task, attempt)

    monkeypatch.setattr(jobs, "run_publish_task", counted)
    staged.publish()
    assert table.keys() == [1, 2, 3, 4, 7]
    (task,) = tasks
    assert isinstance(task, RewriteTask)
    assert len(task.files) == 1
    table.collect()
    assert table.keys() == [1, 2, 3, 4, 7]


def test_two_merges_under_way_are_both_published(table: Merged) -> None:
    table.publish(1, 2)
    one, other = table.stage(2, 3), table.stage(2, 4)
    one.publish()
    other.publish()
    assert table.keys() == [1, 2, 3, 4]
    assert table.stored.staged() == []


def test_by_hand_a_merge_is_published_on_its_version_only(table: Merged) -> None:
    table.publish(1, 2)
    staged = table.stage(2, 3)
    table.append(3)
    with pytest.raises(PublishError, match=r"has changed since the merge .* run its query again"):
        table.stored.publish_staged(staged.version.id)
    assert table.keys() == [1, 2, 3]
    # What its checks have seen can still be looked at.
    assert keys_in(table.stored.staged_state(staged.version.id)) == [1, 2, 3]
    table.stored.discard_staged(staged.version.id)
    table.collect()
    assert table.keys() == [1, 2, 3]


def test_a_run_that_is_repeated_stages_the_merge_of_the_present_version(table: Merged) -> None:
    table.publish(1, 2)
    first = table.stage(2, 3)
    assert table.stage(2, 3).version == first.version
    table.append(3, 4)
    again = table.stage(2, 3)
    (shown,) = table.stored.staged()
    assert shown == again.version
    assert shown.id == first.version.id
    assert keys_in(table.stored.staged_state("")) == [1, 2, 3, 4]
    table.stored.publish_staged(shown.id)
    assert table.keys() == [1, 2, 3, 4]
    table.collect()
    assert table.keys() == [1, 2, 3, 4]


def test_a_repeated_run_whose_table_changes_looks_at_it_again(table: Merged) -> None:
    table.publish(1, 2)
    table.stage(2, 3)
    again = table.stage(2, 3)  # by another process, which has not looked at any file
    table.append(3, 4)
    again.publish()
    assert table.keys() == [1, 2, 3, 4]
    table.collect()
    assert table.keys() == [1, 2, 3, 4]


def test_two_runs_of_the_same_merge_at_once(table: Merged, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second takes what the first has staged; what it has rewritten itself is gone."""
    table.publish(1, 2)
    rewrite = Merge.rewrite

    def overtaken(merge: Merge) -> None:
        monkeypatch.undo()
        table.stage(2, 3)
        rewrite(merge)

    monkeypatch.setattr(Merge, "rewrite", overtaken)
    staged = table.stage(2, 3)
    assert table.stored.staged() == [staged.version]
    table.append(4)
    staged.publish()
    assert table.keys() == [1, 2, 3, 4]
    table.collect()
    assert table.keys() == [1, 2, 3, 4]


def test_merges_do_not_pile_up(table: Merged) -> None:
    table.publish(1)
    for key in range(2, 8):
        table.stage(key, keep_versions=3)
    assert len(table.stored.staged()) == 3


def test_a_merge_whose_version_is_gone_is_told(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    merge: dict[str, Any] = {"mode": "merge", "key": ("k",), "keep_versions": 1}
    plain = pa.table({"k": [1, 2]})
    publish_rows(store, plain, **merge)
    staged = stage_rows(store, pa.table({"k": [2, 3]}), **merge)
    assert isinstance(staged, Staged)
    publish_rows(store, pa.table({"k": [9]}), **merge)
    later = dt.datetime.now(dt.UTC) + dt.timedelta(days=1)
    collect_garbage(store, older_than=dt.timedelta(0), now=later)
    with pytest.raises(CatalogError, match=r"on which the merge .* is not kept any more"):
        FORMAT.stored(store, "t", Access()).staged_state(staged.version.id)
    staged.publish()
    version = read_current(store, "t")
    assert version is not None
    assert version.num_rows == 4
