"""Published tables in a catalog: as planned before they exist, as published once they do."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.catalog.planned import PlannedTable, PublishedCatalog, TableCatalog
from stagecoach.infra.catalog.stored import StoredCatalog
from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats import parquet_footers as statistics
from stagecoach.infra.formats.published.log import clear_table
from stagecoach.infra.formats.snapshot import Snapshot, TableState, load_or_take, take_snapshot
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.catalog import TableInfo
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.types import BIGINT, INT, STRING, Field
from tests.infra.formats.published.outputs import paths_of, publish_rows

COLUMNS = (Field("k", STRING), Field("n", BIGINT))


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path / "store"))


@pytest.fixture
def base(tmp_path: Path) -> FileCatalog:
    (tmp_path / "base").mkdir()
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "base" / "a.parquet")
    (tmp_path / "catalog.yaml").write_text("tables:\n  base:\n    location: base\n")
    return load_catalog(tmp_path / "catalog.yaml")


def catalog(
    base: FileCatalog, store: ObjectStore, use_statistics: bool = True, **planned: Any
) -> PublishedCatalog:
    table = PlannedTable(**{"name": "Daily", "columns": COLUMNS, **planned})
    return PublishedCatalog(base, store, [table], use_statistics=use_statistics)


def rows(*values: int) -> pa.Table:
    return pa.table({"k": [f"k{v}" for v in values], "n": pa.array(values, pa.int64())})


def test_both_kinds_are_table_catalogs(base: FileCatalog, store: LocalStore) -> None:
    both: list[TableCatalog] = [base, catalog(base, store)]
    assert [list(one.table_names()) for one in both] == [["base"], ["base", "Daily"]]
    assert both[1].source("DAILY").location == store.uri("results/Daily")
    assert both[1].source("BASE") == base.source("base")
    assert both[1].state("base") == base.state("base")
    assert both[1].table("nothing") is None
    with pytest.raises(CatalogError, match=r"table 'nothing' not found"):
        both[1].state("nothing")


def test_a_table_is_planned_before_it_exists(base: FileCatalog, store: LocalStore) -> None:
    made = catalog(base, store, estimated_rows=7)
    found = made.table("daily")
    assert found is not None
    assert (found.name, found.columns) == ("Daily", COLUMNS)
    assert found.stats is not None
    assert found.stats.num_rows == 7
    with pytest.raises(CatalogError, match=r"table 'Daily' has no data yet; materialize it first"):
        made.state("daily")
    assert catalog(base, store).table("daily") == TableInfo("Daily", COLUMNS, format="published")
    with pytest.raises(CatalogError, match=r"no data yet, so its columns are not known"):
        catalog(base, store, columns=None).table("daily")


def test_what_is_published_is_read_by_name(
    base: FileCatalog, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_rows(store, rows(1, 5), "Daily")
    made = catalog(base, store)
    state = made.state("daily")
    info, snapshot = state.info, state.snapshot
    assert (info.columns, snapshot.version) == (COLUMNS, 1)
    assert info.stats is not None
    assert (info.stats.num_rows, info.stats.columns["n"].max_value) == (2, 5)
    assert made.table("daily") == info
    assert len(snapshot.files) == 1

    def no_more(*_: object) -> None:
        raise AssertionError("a footer or a listing was asked for")

    monkeypatch.setattr(statistics, "read_footer", no_more)
    monkeypatch.setattr(LocalStore, "list", no_more)
    assert made.state("daily") == TableState(info, snapshot)
    assert catalog(base, store, columns=None).table_names() == ["base", "Daily"]


def test_planning_stays_the_same_until_refresh_and_reading_does_not(
    base: FileCatalog, store: LocalStore
) -> None:
    made = catalog(base, store)
    before = made.table("daily")
    publish_rows(store, rows(1), "Daily")
    assert made.table("daily") is before
    assert made.state("daily").info.stats is not None
    made.refresh()
    after = made.table("daily")
    assert after is not None
    assert after.stats is not None
    assert after.stats.num_rows == 1


def test_without_statistics_planning_touches_nothing(
    base: FileCatalog, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_rows(store, rows(1), "Daily")
    made = catalog(base, store, use_statistics=False)

    def no_read(*_: object) -> None:
        raise AssertionError("storage was read")

    monkeypatch.setattr(LocalStore, "read_bytes", no_read)
    assert made.table("daily") == TableInfo("Daily", COLUMNS, format="published")


def test_other_columns_than_planned(base: FileCatalog, store: LocalStore) -> None:
    publish_rows(store, rows(1), "Daily")
    made = catalog(base, store, columns=(Field("k", STRING), Field("n", INT)))
    found = made.table("daily")
    # Planning goes by what the query that makes the table will leave.
    assert found is not None
    assert found.columns[1].dtype == INT
    message = r"'Daily': column 'n' is bigint there and int here .*materialize 'Daily' first"
    with pytest.raises(CatalogError, match=message):
        made.state("daily")


def test_partition_columns_stand_last_with_their_types(
    base: FileCatalog, store: LocalStore
) -> None:
    planned = {"columns": COLUMNS, "partition_by": ("k",)}
    before = catalog(base, store, **planned).table("daily")
    texts = pa.table({"k": ["007", "x/y", None], "n": pa.array([1, 2, 3], pa.int64())})
    publish_rows(store, texts, "Daily", partition_by=("k",))
    made = catalog(base, store, **planned)
    after = made.table("daily")
    assert before is not None
    assert after is not None
    assert before.columns == after.columns == (COLUMNS[1], COLUMNS[0])
    snapshot = take_snapshot(made, ["daily"]).table("daily")
    assert {file.partition for file in snapshot.files} == {("007",), ("x/y",), (None,)}
    assert snapshot.partition_columns == (COLUMNS[0],)


def test_a_snapshot_pins_a_version(base: FileCatalog, store: LocalStore) -> None:
    publish_rows(store, rows(1), "Daily")
    made = catalog(base, store)
    pinned = load_or_take(store, "run1", made, ["base", "daily"])
    publish_rows(store, rows(2), "Daily")
    again = load_or_take(store, "run1", made, ["base", "daily"])
    assert again == pinned == Snapshot.from_json(pinned.to_json())
    assert again.table("daily").version == 1
    assert again.table("base").version is None
    assert take_snapshot(made, ["daily"]).table("daily").version == 2
    # A copy of the storage root has other times, and the same tables.
    (file,) = again.table("daily").files
    assert file.version == ""


def test_files_that_are_gone_or_not_ours(base: FileCatalog, store: LocalStore) -> None:
    version = publish_rows(store, rows(1, 2, 3), "Daily").version
    (path,) = paths_of(store, version)
    other = publish_rows(store, rows(4, 5, 6), "other").version
    shutil.copy(path, f"{path}.kept")
    shutil.copy(paths_of(store, other)[0], path)
    with pytest.raises(CatalogError, match=r"is not the file that version 1 names"):
        catalog(base, store).state("daily")
    Path(path).unlink()
    with pytest.raises(CatalogError, match=r"vanished"):
        catalog(base, store).state("daily")
    shutil.copy(f"{path}.kept", path)
    assert catalog(base, store).state("daily").info.stats is not None


def test_a_cleared_table_has_no_data(base: FileCatalog, store: LocalStore) -> None:
    publish_rows(store, rows(1), "Daily")
    clear_table(store, "Daily")
    with pytest.raises(CatalogError, match=r"no data yet"):
        catalog(base, store).state("daily")
    assert catalog(base, store).table("daily") == TableInfo("Daily", COLUMNS, format="published")


def test_names_that_clash(base: FileCatalog, store: LocalStore) -> None:
    with pytest.raises(CatalogError, match=r"table 'base' of the catalog has the name"):
        PublishedCatalog(base, store, [PlannedTable(name="BASE")])
    with pytest.raises(CatalogError, match=r"two queries publish table 'X'"):
        PublishedCatalog(base, store, [PlannedTable(name="x"), PlannedTable(name="X")])


def test_a_stored_catalog_has_whatever_is_published(base: FileCatalog, store: LocalStore) -> None:
    stored = StoredCatalog(base, store)
    assert repr(stored) == f"StoredCatalog({base!r}, {store!r})"
    assert (list(stored.table_names()), stored.published_names()) == (["base"], [])
    publish_rows(store, rows(1, 2), table="Daily")
    publish_rows(store, rows(3), table="BASE")
    assert stored.table("daily") is None
    stored.refresh()
    assert (list(stored.table_names()), stored.published_names()) == (["base", "Daily"], ["Daily"])
    assert stored.table("BASE") == base.table("base")
    state = stored.state("DAILY")
    info, snapshot = state.info, state.snapshot
    assert (info.name, info.columns, len(snapshot.files)) == ("Daily", COLUMNS, 1)
    assert stored.table("daily") == info
    assert stored.source("daily").location == store.uri("results/Daily")
    # A snapshot names the version, as one of a code location does.
    taken = take_snapshot(stored, ["daily", "base"])
    assert {name: table.version for name, table in taken.tables.items()} == {
        "Daily": 1,
        "base": None,
    }


def test_a_storage_that_does_not_answer_leaves_the_base_tables(
    base: FileCatalog, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: object) -> None:
        raise StorageError("no")

    monkeypatch.setattr(LocalStore, "folders", refuses)
    stored = StoredCatalog(base, store)
    assert list(stored.table_names()) == ["base"]
    assert stored.table("base") is not None
    with pytest.raises(StorageError):
        stored.table("daily")
