"""Deduplicated tables in the catalog: what YAML may say, and what planner and runs are told."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pytest

from stagecoach.api.catalog_tables import offered
from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.formats.deduplicated.compaction import compact
from stagecoach.infra.formats.deduplicated.table_format import chunk_table
from stagecoach.infra.formats.deduplicated.version import ChunkTableVersion
from stagecoach.infra.formats.snapshot import Snapshot, take_snapshot
from stagecoach.infra.formats.version_json import TableVersionError
from stagecoach.planner.catalog import ColumnStats
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.types import Field, parse_type

TABLE = "kind: deduplicated, location: t"


def load(folder: Path, body: str) -> FileCatalog:
    (folder / "catalog.yaml").write_text(f"tables: {{t: {{{body}}}}}")
    return load_catalog(folder / "catalog.yaml")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (TABLE, r"table 't': 'primary_key' is missing"),
        (f"{TABLE}, primary_key: []", r"'primary_key' is missing"),
        (f"{TABLE}, primary_key: [a, A]", r"'primary_key' names a column twice"),
        (f"{TABLE}, primary_key: 7", r"'primary_key' must be a list of column names, not 7"),
        (f"{TABLE}, primary_key: a, time_column: [b]", r"'time_column' must be the name of a col"),
        (f"{TABLE}, primary_key: a, delete_column: a", r"'delete_column' cannot belong"),
        (f"{TABLE}, primary_key: a, chunk_interval: 1d", r"needs a 'time_column' that belongs"),
        (f"{TABLE}, primary_key: a, time_column: a, chunk_interval: x", r"such as 1d, not 'x'"),
        (f"{TABLE}, primary_key: __a", r"names that start with '__' are Stagecoach's: '__a'"),
        (f"{TABLE}, primary_key: a, format: parquet", r"unknown key 'format'"),
        (
            "kind: deduplicate, location: t",
            r"kind 'deduplicate' is not known; did you mean 'deduplicated'",
        ),
        ("location: t, primary_key: a", r"unknown key 'primary_key'"),
        ("kind: deduplicated, location: t/*, primary_key: a", r"one folder of its own"),
    ],
)
def test_mistakes_in_yaml_are_named(tmp_path: Path, body: str, message: str) -> None:
    with pytest.raises(CatalogError, match=message):
        load(tmp_path, body)


def test_a_table_is_known_by_its_newest_version(tmp_path: Path) -> None:
    catalog = load(tmp_path, f"{TABLE}, primary_key: [k, day], time_column: day")
    with pytest.raises(CatalogError, match=r"table 't' has no data yet .*tables create t"):
        catalog.table("t")
    table = chunk_table(catalog, "T")
    table.create((Field("k", parse_type("string")), Field("day", parse_type("date"))))
    info = catalog.table("t")
    assert info is not None
    assert info.stats is not None
    assert (info.stats.num_rows, info.detail.chunks, info.name) == (0, (), "t")
    assert info.detail.table is not None
    assert (info.detail.table.splits_by_time, info.detail.table.columns) == (True, info.columns)
    days = [datetime.date(1970, 1, 2), datetime.date(1970, 1, 5)]
    table.append([pa.table({"k": ["a", None], "day": days, "x": [1.0, float("nan")]})])
    table.append([pa.table({"k": ["b"], "day": days[:1]})], sort=True)
    assert catalog.table("t") == info  # until it is refreshed
    catalog.refresh()
    info = catalog.table("t")
    assert info is not None
    assert info.stats is not None
    assert (info.stats.num_rows, info.stats.num_files) == (3, 2)
    assert info.stats.is_estimate  # of two rows with one key a reader sees one
    assert info.stats.columns["day"].min_value == 1
    assert info.stats.columns["x"] == ColumnStats(null_count=1, avg_bytes=pytest.approx(16 / 3))
    first, second = info.detail.chunks
    assert (first.kind, first.time_range, first.row_groups) == ("arrow", (1, 4), (2,))
    assert (second.kind, second.sort_order, second.sequence) == ("parquet", ("k", "day"), 2)
    assert first.ranges[0].null_count == 1
    assert (first.ranges[2].low, first.ranges[2].high) == (None, None)  # NaN
    assert Path(second.uri).stat().st_size == second.num_bytes


def test_snapshots_pin_chunks(tmp_path: Path) -> None:
    catalog = load(tmp_path, f"{TABLE}, primary_key: [k]")
    chunk_table(catalog, "t").append([pa.table({"k": [1, 2]})])
    taken = take_snapshot(catalog, ["t"])
    assert Snapshot.from_json(taken.to_json()) == taken
    table = taken.table("t")
    assert [f.uri for f in table.files] == [c.uri for c in table.detail.chunks]
    assert table.partition_columns == ()
    chunk_table(catalog, "t").append([pa.table({"k": [3]})])
    assert len(take_snapshot(catalog, ["t"]).table("t").files) == 2
    assert len(Snapshot.from_json(taken.to_json()).table("t").detail.chunks) == 1


def test_an_empty_table_has_a_snapshot(tmp_path: Path) -> None:
    catalog = load(tmp_path, f"{TABLE}, primary_key: [k]")
    chunk_table(catalog, "t").create((Field("k", parse_type("int")),))
    table = take_snapshot(catalog, ["t"]).table("t")
    assert (table.files, table.detail.chunks, table.partition_columns) == ((), (), ())
    assert table.num_rows == 0


def test_a_listing_changes_with_appends_only(tmp_path: Path) -> None:
    catalog = load(tmp_path, f"{TABLE}, primary_key: [k]")
    table = chunk_table(catalog, "t")
    table.append([pa.table({"k": [1]}), pa.table({"k": [1]})])
    before = catalog.list_files("t")
    compact(table)
    assert catalog.list_files("t") == before
    table.append([pa.table({"k": [1]})])
    assert catalog.list_files("t") != before


def test_the_declaration_must_stay(tmp_path: Path) -> None:
    catalog = load(tmp_path, f"{TABLE}, primary_key: [k, t], time_column: t")
    chunk_table(catalog, "t").append([pa.table({"k": [1], "t": [1]})])
    other = load(tmp_path, f"{TABLE}, primary_key: [k]")
    message = r"table 't': its primary_key is k, t there and k here \(there: as it was created"
    with pytest.raises(CatalogError, match=message):
        other.table("t")
    with pytest.raises(CatalogError, match=message):
        chunk_table(other, "t").append([pa.table({"k": [1]})])
    load(tmp_path, f"{TABLE}, primary_key: [k, t], time_column: t, chunk_interval: 5").table("t")
    with pytest.raises(CatalogError, match=r"table 't' is there already \(version 1, 1 rows\)"):
        chunk_table(catalog, "t").create(
            (Field("k", parse_type("int")), Field("t", parse_type("int")))
        )


def test_other_tables_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"table 't' is not deduplicated; declare it with"):
        offered(load(tmp_path, "location: t"), "t", "be appended to", lambda t: t.appends())


def test_versions_are_checked(tmp_path: Path) -> None:
    catalog = load(tmp_path, f"{TABLE}, primary_key: [k]")
    table = chunk_table(catalog, "t")
    version = table.append([pa.table({"k": [1, 2], "x": [[1], None]})]).version
    text = version.to_json()
    assert ChunkTableVersion.from_json(text, uri="there") == version
    for damaged in (text[:-9], text.replace(b'"k"', b'"j"'), b"[]"):
        with pytest.raises(TableVersionError, match=r"there is damaged"):
            ChunkTableVersion.from_json(damaged, uri="there")
