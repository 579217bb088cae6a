"""gc of deduplicated tables: live chunks stay, replaced ones do not stay for ever."""

from __future__ import annotations

import datetime
import os
import uuid
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.formats.deduplicated.compaction import compact
from stagecoach.infra.formats.deduplicated.expiry import (
    ExpiredChunks,
    trim_versions,
)
from stagecoach.infra.formats.deduplicated.operations import ChunkOperations
from stagecoach.infra.formats.deduplicated.table import ChunkTable
from stagecoach.infra.formats.deduplicated.table_format import chunk_table
from stagecoach.infra.formats.snapshot import load_or_take
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.infra.upkeep.gc import collect_garbage
from stagecoach.infra.upkeep.table_gc import collect_table_garbage
from tests.infra.formats.deduplicated.model import plain, visible
from tests.infra.upkeep.test_gc import OtherClock

CATALOG = """
tables:
  t: {kind: deduplicated, location: t, primary_key: [k, t], time_column: t}
"""
HOUR, DAY = datetime.timedelta(hours=1), datetime.timedelta(days=1)


@pytest.fixture
def catalog(tmp_path: Path) -> FileCatalog:
    (tmp_path / "catalog.yaml").write_text(CATALOG)
    return load_catalog(tmp_path / "catalog.yaml")


@pytest.fixture
def root(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path / "storage"))


def append(table: ChunkTable, start: int) -> None:
    table.append([pa.table({"k": [start, start + 1], "t": [1, 2]})])


def collect(
    root: LocalStore, table: ChunkTable, later: datetime.timedelta, age: datetime.timedelta = DAY
) -> ExpiredChunks | None:
    now = datetime.datetime.now(datetime.UTC) + later
    (found,) = collect_table_garbage(root, [ChunkOperations(table)], older_than=age, now=now)
    assert isinstance(found, ExpiredChunks)
    return None if found.is_empty else found


def files(table: ChunkTable) -> set[str]:
    return {key.split("/")[1] for key in table.store.list("chunks")}


def test_replaced_chunks_go_when_they_are_old(root: LocalStore, catalog: FileCatalog) -> None:
    table = chunk_table(catalog, "t")
    append(table, 0)
    append(table, 1)
    old = files(table)
    assert collect(root, table, 100 * DAY) is None  # live chunks stay, whatever their age
    compact(table)
    expected = visible(table)
    assert collect(root, table, HOUR) is None
    assert files(table) > old
    assert [c.name for c in table.read().replaced] == sorted(old)
    found = collect(root, table, 2 * DAY)
    assert found is not None
    assert {name for name, _ in found.replaced} == old
    assert found.num_bytes > 0
    assert files(table) == {c.name for c in table.read().chunks}
    assert table.read().replaced == ()
    assert plain(visible(table)) == plain(expected)
    assert collect(root, table, 2 * DAY) is None


def test_what_a_run_reads_stays(root: LocalStore, catalog: FileCatalog) -> None:
    table = chunk_table(catalog, "t")
    append(table, 0)
    append(table, 1)
    snapshot = load_or_take(root, "run-1", catalog, ["t"]).table("t")
    assert {Path(f.uri).name for f in snapshot.files} == files(table)
    compact(table)
    assert collect(root, table, 30 * DAY) is None
    assert all(os.path.exists(file.uri) for file in snapshot.files)
    # Re-executed, the run reads the same chunks, not those of the compaction.
    assert load_or_take(root, "run-1", catalog, ["t"]).table("t") == snapshot
    later = datetime.datetime.now(datetime.UTC) + 30 * DAY
    collect_garbage(root, older_than=DAY, now=later)
    if root.exists("runs/run-1/snapshot.json"):
        root.delete(["runs/run-1/snapshot.json"])
    found = collect(root, table, 30 * DAY)
    assert found is not None
    assert len(found.replaced) == 2
    assert not any(os.path.exists(file.uri) for file in snapshot.files)


def test_files_of_dead_writers_go_after_a_day(root: LocalStore, catalog: FileCatalog) -> None:
    table = chunk_table(catalog, "t")
    append(table, 0)
    live = files(table)
    table.store.write_bytes("chunks/20240101T000000-0123456789ab-00000.arrow", b"dead")
    table.store.write_bytes("chunks/.tmp-1", b"dead")
    table.store.write_bytes("chunks/notes.parquet", b"somebody else's")
    assert collect(root, table, datetime.timedelta(hours=23), datetime.timedelta(0)) is None
    found = collect(root, table, 2 * DAY, datetime.timedelta(0))
    assert found is not None
    assert (len(found.orphans), found.num_objects) == (2, 2)
    assert files(table) == live | {"notes.parquet"}


@pytest.mark.parametrize("hours", [-40, 40])
def test_ages_go_by_the_clock_of_the_store(
    root: LocalStore, catalog: FileCatalog, hours: int
) -> None:
    store = OtherClock(f"memory://chunks-{uuid.uuid4().hex}", hours * HOUR)
    table = replace(chunk_table(catalog, "t"), store=store)
    append(table, 0)
    append(table, 1)
    compact(table)
    new, old = (f"chunks/20240101T000000-0123456789ab-{n:05}.arrow" for n in range(2))
    for key in (new, old):
        store.write_bytes(key, b"dead")
    store.ages[old] = 2 * DAY
    before = set(store.list(""))
    (found,) = collect_table_garbage(root, [ChunkOperations(table)], older_than=DAY)
    assert [item.key for item in found.orphans] == [old]
    assert (found.replaced, found.records) == ((), ())
    assert set(store.list("")) == before - {old}


def test_a_dry_run_removes_nothing(root: LocalStore, catalog: FileCatalog) -> None:
    table = chunk_table(catalog, "t")
    append(table, 0)
    append(table, 1)
    compact(table)
    before = list(table.store.list(""))
    later = datetime.datetime.now(datetime.UTC) + 30 * DAY
    (found,) = collect_table_garbage(
        root, [ChunkOperations(table)], older_than=DAY, dry_run=True, now=later
    )
    assert len(found.replaced) == 2
    assert list(table.store.list("")) == before


def test_old_versions_go_and_numbers_have_no_gaps(root: LocalStore, catalog: FileCatalog) -> None:
    table = chunk_table(catalog, "t")
    for start in range(14):
        append(table, start)
    assert trim_versions(table) == 0
    later = datetime.datetime.now(datetime.UTC) + 2 * HOUR
    assert trim_versions(table, now=later) == 4
    assert table.log.numbers() == list(range(5, 15))
    found = collect(root, table, 2 * DAY)
    assert found is None
    append(table, 99)
    assert table.read().number == 15


def test_a_table_that_was_never_written(root: LocalStore, catalog: FileCatalog) -> None:
    table = chunk_table(catalog, "t")
    table.store.write_bytes("chunks/20240101T000000-0123456789ab-00000.arrow", b"whose?")
    assert collect(root, table, 30 * DAY) is None
    assert len(files(table)) == 1
