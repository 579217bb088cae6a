"""Published tables as the protocol of formats has them: staged writes, versions, idempotence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.protocol import Access, Table, TableSource
from stagecoach.infra.formats.published.log import version_numbers
from stagecoach.infra.formats.published.table_format import FORMAT
from stagecoach.infra.formats.published.writer import PublishedWriter
from stagecoach.infra.formats.publishing import PublishError, PublishTarget
from stagecoach.infra.formats.requests import whole_table
from stagecoach.infra.formats.units import ScanSlice
from stagecoach.infra.formats.version_log import VersionLog
from stagecoach.infra.reading.inputs import ScanInput
from stagecoach.infra.storage.local_store import LocalStore
from tests.infra.formats.published.outputs import fields_of, objects_in, publish_rows


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path))


def open_table(root: Path) -> Table:
    return FORMAT.open(TableSource(name="t", location=str(root)), Access())


@pytest.fixture
def table(tmp_path: Path) -> Table:
    found = open_table(tmp_path)
    assert append(found, "first", 1, 2) == 1
    return found


def numbers(*values: int) -> pa.Table:
    return pa.table({"n": pa.array(values, pa.int64())})


def append(table: Table, token: str, *values: int) -> int:
    writer = table.writer(token)
    assert writer.stage(numbers(*values)) == len(values)
    return writer.publish()


def data_files(store: LocalStore) -> set[str]:
    return objects_in(store, "results/t/files")


def rows_of(table: Table, version: int | None = None) -> list[int]:
    """The rows of a version, by the protocol: its snapshot, a scan of it, what a task reads."""

    def batches() -> Iterator[dict[str, Any]]:
        state = table.state(version)
        request = whole_table("t", state.info.columns, "UTC")
        scan = FORMAT.plan_scan(request, state.snapshot)
        bound = scan.bind(ScanSlice(tuple(scan.units)))
        assert isinstance(bound, ScanInput)
        for file in bound.files:
            assert file.is_whole
            yield from pq.read_table(file.uri).to_pylist()

    return sorted(row["n"] for row in batches())


def test_nothing_is_visible_before_it_is_published(table: Table) -> None:
    writer = table.writer("second")
    assert writer.stage(numbers(3)) == 1
    assert writer.stage(numbers(4, 5).to_reader()) == 2
    assert rows_of(table) == [1, 2]
    assert writer.publish() == writer.publish() == 2
    assert rows_of(table) == [1, 2, 3, 4, 5]


def test_a_token_is_published_once_whatever_came_after(table: Table, store: LocalStore) -> None:
    assert append(table, "second", 3) == 2
    files = data_files(store)
    assert append(table, "second", 3) == 2
    assert append(table, "first", 1, 2) == 1
    assert version_numbers(store, "t") == [1, 2]
    assert data_files(store) == files, "files of a repeated commit are removed"
    publish_rows(store, numbers(9), mode="replace")
    assert append(table, "second", 3) == 2
    assert rows_of(table) == [9]


def test_a_commit_whose_answer_was_lost_is_repeated(
    table: Table, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = VersionLog.commit

    def lost(*args: Any) -> Any:
        commit(*args)
        raise StorageError("no answer")

    target = PublishTarget(table="t")
    writer = PublishedWriter(store, target, fields_of(numbers(3)), fingerprint="f")
    writer.stage(numbers(3))
    with monkeypatch.context() as patch:
        patch.setattr(VersionLog, "commit", lost)
        with pytest.raises(StorageError, match="no answer"):
            writer.publish()
    publish_rows(store, numbers(9), mode="replace")
    files = data_files(store)
    assert writer.publish() == 2
    assert data_files(store) == files, "version 2 names them"
    assert (rows_of(table, 2), rows_of(table)) == ([3], [9])


def test_discarded_rows_leave_no_file(table: Table, store: LocalStore) -> None:
    before = data_files(store)
    writer = table.writer("second")
    writer.stage(numbers(6))
    assert data_files(store) > before
    writer.discard()
    assert data_files(store) == before
    with pytest.raises(PublishError, match="stage rows"):
        writer.publish()
    assert rows_of(table) == [1, 2]


def test_rows_that_do_not_fit_are_refused_before_anything_is_written(
    table: Table, store: LocalStore
) -> None:
    before = objects_in(store)
    with pytest.raises(PublishError, match="column 'n' is bigint there and missing here"):
        table.writer("second").stage(pa.table({"m": [1]}))
    with pytest.raises(PublishError, match="stage rows"):
        table.writer("second").publish()
    assert objects_in(store) == before
    writer = table.writer("second")
    writer.stage(numbers(3))
    with pytest.raises(PublishError, match="column 'n' is bigint there and int here"):
        writer.stage(pa.table({"n": pa.array([4], pa.int32())}))


def test_an_empty_table_has_a_schema(tmp_path: Path) -> None:
    table = open_table(tmp_path)
    assert append(table, "first") == 1
    assert [field.name for field in table.state().info.columns] == ["n"]
    assert rows_of(table) == []


def test_rows_go_into_the_folders_that_the_table_has(tmp_path: Path, store: LocalStore) -> None:
    rows = pa.table({"day": ["a", "b"], "n": [1, 2]})
    publish_rows(store, rows, partition_by=("day",), keep_versions=3)
    table = open_table(tmp_path)
    writer = table.writer("second")
    writer.stage(pa.table({"n": [7], "day": ["c"]}))
    assert writer.publish() == 2
    assert {key.split("/")[3] for key in data_files(store)} == {"day=a", "day=b", "day=c"}
    assert rows_of(table) == [1, 2, 7]


def test_older_versions_are_read(table: Table) -> None:
    append(table, "second", 3)
    assert [rows_of(table, number) for number in (1, 2, None)] == [[1, 2], [1, 2, 3], [1, 2, 3]]
    with pytest.raises(StorageError, match="has no version 3"):
        table.state(3)
