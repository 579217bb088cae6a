"""Staged versions of published tables: invisible until they are published, on whatever is there."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from stagecoach.infra.formats.protocol import Access
from stagecoach.infra.formats.published.changes import TableChange
from stagecoach.infra.formats.published.log import read_current, read_version, version_numbers
from stagecoach.infra.formats.published.table_format import FORMAT, PublishedTable
from stagecoach.infra.formats.published.version import StagedChange, TableVersion
from stagecoach.infra.formats.publishing import PublishError, StagedGoneError
from stagecoach.infra.formats.snapshot import TableState
from stagecoach.infra.formats.staged_version import STAGED, staged_version
from stagecoach.infra.publishing.publish import Published, Staged
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.infra.upkeep.gc import collect_garbage
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.versioned_names import TableVersion as VersionName
from tests.infra.formats.published.outputs import (
    objects_in,
    publish_rows,
    read_rows,
    stage_rows,
)
from tests.infra.formats.published.test_expiry import NOW


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path))


@pytest.fixture
def table(store: LocalStore) -> PublishedTable:
    return FORMAT.stored(store, "t", Access())


def numbers(*values: int) -> pa.Table:
    return pa.table({"n": pa.array(values, pa.int64())})


def stage(store: LocalStore, *values: int, **target: object) -> Staged:
    staged = stage_rows(store, numbers(*values), **target)
    assert isinstance(staged, Staged)
    return staged


def rows_of(store: LocalStore) -> list[int]:
    version = read_current(store, "t")
    return [] if version is None else sorted(row["n"] for row in read_rows(store, version))


def rows_in(state: TableState) -> int:
    return sum(file.num_rows for file in state.snapshot.files)


def test_nobody_sees_what_is_staged(store: LocalStore, table: PublishedTable) -> None:
    staged = stage(store, 1, 2, run_id="r1")
    assert rows_of(store) == []
    with pytest.raises(CatalogError, match=r"table 't' is not in the catalog, and .* no data yet"):
        table.state()
    (shown,) = table.staged()
    assert (shown.num_rows, shown.run_id, shown.mode) == (2, "r1", "replace")
    assert shown == staged.version
    published = staged.publish()
    assert (published.num_rows, published.reused) == (2, False)
    assert rows_of(store) == [1, 2]
    assert not table.staged()
    stage(store, 3)
    assert rows_of(store) == [1, 2]
    assert [version.number for version in table.kept_versions()] == [2]


def test_queries_read_what_is_staged_by_name(store: LocalStore, table: PublishedTable) -> None:
    publish_rows(store, numbers(1))
    first = stage(store, 2, mode="append")
    second = stage(store, 3, 4, mode="append")
    newest = table.at(VersionName("version", "staged"))
    assert rows_in(newest) == 3
    assert rows_in(table.at(staged_version(first.version.id))) == 2
    assert rows_in(table.at(staged_version(second.version.id))) == 3
    assert rows_in(table.state()) == 1
    with pytest.raises(CatalogError, match=r"'ab12' is not staged; .stagecoach tables show"):
        table.at(VersionName("version", f"{STAGED}-ab12"))


def test_a_run_that_is_repeated_finds_what_it_has_staged(store: LocalStore) -> None:
    first = stage(store, 1, run_id="r1")
    before = objects_in(store, "results")
    again = stage(store, 1, run_id="r2")
    assert again.version == first.version
    assert objects_in(store, "results") == before
    assert again.publish().reused is False
    assert first.publish().reused is True
    there = stage_rows(store, numbers(1))
    assert isinstance(there, Published)
    assert there.reused


def test_what_is_staged_is_applied_to_the_newest_version(store: LocalStore) -> None:
    day = {"mode": "replace_partition", "partition_keys": ("a",)}
    staged = stage(store, 1, **day)
    publish_rows(store, numbers(2), mode="replace_partition", partition_keys=("b",))
    added = stage(store, 3, mode="append")
    assert rows_of(store) == [2]
    staged.publish()
    assert rows_of(store) == [1, 2]
    publish_rows(store, numbers(4), mode="append")
    added.publish()
    assert rows_of(store) == [1, 2, 3, 4]


def test_each_partition_waits_by_itself(store: LocalStore, table: PublishedTable) -> None:
    for value, key in enumerate("abc"):
        stage(store, value, mode="replace_partition", partition_keys=(key,))
    one, two, three = table.staged()
    assert [item.partition_keys for item in (one, two, three)] == [("a",), ("b",), ("c",)]
    table.publish_staged(three.id)
    table.discard_staged(one.id)
    assert rows_of(store) == [2]
    assert table.staged() == [two]
    table.discard_staged(one.id)  # forgotten already
    with pytest.raises(PublishError, match=f"'{one.id}' is not staged"):
        table.publish_staged(one.id)


def test_what_was_discarded_is_not_published(store: LocalStore, table: PublishedTable) -> None:
    staged = stage(store, 1)
    table.discard_staged(staged.version.id)
    with pytest.raises(StagedGoneError, match="run the query again") as found:
        staged.publish()
    assert found.value.retryable
    assert rows_of(store) == []


def test_a_later_result_replaces_what_waits(store: LocalStore, table: PublishedTable) -> None:
    older, append = stage(store, 1), stage(store, 5, mode="append")
    newer = stage(store, 2)
    latest = stage(store, 3)
    newer.publish()
    assert table.staged() == [append.version, latest.version], "the older one can never be wanted"
    with pytest.raises(StagedGoneError):
        older.publish()
    publish_rows(store, numbers(4))
    assert table.staged() == [append.version]


def test_failures_do_not_pile_up(store: LocalStore, table: PublishedTable) -> None:
    for value in range(6):
        stage(store, value, keep_versions=3)
    assert [item.num_rows for item in table.staged()] == [1, 1, 1]


def test_a_table_that_does_not_take_it_keeps_it_staged(
    store: LocalStore, table: PublishedTable
) -> None:
    staged = stage(store, 1, mode="append")
    publish_rows(store, pa.table({"x": ["other"]}))
    with pytest.raises(PublishError, match="do not match the result"):
        staged.publish()
    with pytest.raises(PublishError, match="do not match the result"):
        table.publish_staged(staged.version.id)
    assert table.staged() == [staged.version]
    table.clear()
    assert table.staged() == [staged.version]
    table.publish_staged(staged.version.id)
    assert rows_of(store) == [1]


def test_gc_keeps_what_is_staged_and_nothing_else(store: LocalStore, table: PublishedTable) -> None:
    publish_rows(store, numbers(0))
    waiting, gone = stage(store, 1, mode="append"), stage(store, 2, mode="append")
    files = {key for key in objects_in(store) if "/files/" in key}
    table.discard_staged(gone.version.id)
    collect_garbage(store, older_than=timedelta(0), now=NOW + timedelta(days=3650))
    left = {key for key in objects_in(store) if "/files/" in key}
    assert len(files - left) == 1
    waiting.publish()
    assert rows_of(store) == [0, 1]


def test_versions_that_only_stage_use_up_no_history(store: LocalStore) -> None:
    for value in range(8):
        stage(store, value, keep_versions=3).publish()
        stage(store, 100 + value, mode="append", keep_versions=3)
    collect_garbage(store, older_than=timedelta(0), now=NOW + timedelta(days=3650))
    kept = [read_version(store, "t", number) for number in version_numbers(store, "t")]
    telling = [version for version in kept if not version.is_quiet]
    assert [sorted(row["n"] for row in read_rows(store, v)) for v in telling] == [[5], [6], [7]]


def test_versions_survive_the_way_through_json(store: LocalStore) -> None:
    publish_rows(store, numbers(0), comments=(("n", "a number"),))
    stage(store, 1, mode="append", comments=(("n", "a number"),), run_id="r")
    version = read_current(store, "t")
    assert version is not None
    assert version.is_quiet
    assert len(version.staged) == 1
    assert TableVersion.from_json(version.to_json(), uri="x") == version
    assert b'"format_version": 4' in version.to_json()
    older = dataclasses.replace(version, staged=(), is_quiet=False)
    assert b'"format_version": 3' in older.to_json()  # older releases read it


def test_what_is_staged_has_all_that_a_change_has() -> None:
    own = {"table", "token", "committed_at"}
    change = {field.name for field in dataclasses.fields(TableChange)}
    staged = {field.name for field in dataclasses.fields(StagedChange)}
    assert change - own == staged - {"id", "staged_at", "base", "base_files"}
