"""`load_catalog`: what the YAML may say, which files make up a table, and the messages."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.planner.errors import CatalogError


def write(path: Path, **columns: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns or {"a": [1, 2, 3]}), path)
    return path


def catalog_of(tmp_path: Path, text: str) -> FileCatalog:
    path = tmp_path / "catalog.yaml"
    path.write_text(text)
    return load_catalog(path)


def one_table(tmp_path: Path, location: str) -> FileCatalog:
    return catalog_of(tmp_path, f"tables: {{t: {{location: '{location}'}}}}")


def test_locations_are_relative_to_the_yaml_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write(tmp_path / "data" / "t" / "a.parquet")
    catalog = one_table(tmp_path, "data/t")
    monkeypatch.chdir("/")
    table = catalog.table("T")
    assert table is not None and table.name == "t"
    assert [(f.name, str(f.dtype)) for f in table.columns] == [("a", "bigint")]


def test_unknown_table_is_none_and_read_suggests(tmp_path: Path):
    catalog = catalog_of(tmp_path, "tables: {Lineitem: {location: x}, orders: {location: y}}")
    assert catalog.table("nope") is None
    assert catalog.table_names() == ["Lineitem", "orders"]
    with pytest.raises(CatalogError, match=r"'lineitm' not found; did you mean 'Lineitem'\? \(ava"):
        catalog.state("lineitm")


def test_loading_touches_no_table(tmp_path: Path):
    catalog = one_table(tmp_path, "missing")
    with pytest.raises(CatalogError, match=r"table 't': .*/missing does not exist"):
        catalog.table("t")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "tables: {t: {location: x, fromat: parquet}}",
            r"table 't': unknown key 'fromat'; did you",
        ),
        ("tabels: {}", r"unknown key 'tabels'; did you mean 'tables'\?"),
        ("tables: {t: {format: parquet}}", r"table 't': 'location' is missing or empty"),
        ("tables: {t: {location: ' '}}", r"'location' is missing or empty"),
        ("tables: {t: {location: [a]}}", r"'location' is missing or empty"),
        ("tables: {t: {location: x, format: avro}}", r"format 'avro' is not supported"),
        ("tables: {t: {location: x, format: parqet}}", r"did you mean 'parquet'\?"),
        ("tables: {t: x}", r"table 't': expected a mapping"),
        ("tables: [t]", r"'tables' must map names"),
        ("tables: {t: {location: x}, T: {location: y}}", r"tables 't' and 'T' have the same name"),
        ("tables: {t: {location: x}, t: {location: y}}", r"key 't' is given twice"),
        ("tables: {on: {location: x}}", r"table name True is not text"),
        ("tables: {'a b': {location: x}}", r"'a b'.*not a name"),
        ("tables: {'../x': {location: x}}", r"not a name"),
        ("tables: {'a..b': {location: x}}", r"not a name"),
        ("tables: {t: {location: 'simplecache::s3://b/x'}}", r"table 't'.*chained URL"),
        ("tables: {t: {location: 's3://'}}", r"names no bucket"),
        ("tables: {t: {location: 'a/**/b'}}", r"has '\*\*'"),
        ("tables: {t: {", r"is not YAML"),
        ("tables: !!python/object/apply:os.system ['true']", r"is not YAML"),
        ("- a", r"expected a mapping with the key 'tables'"),
        ("", r"expected a mapping"),
        ("{}", r"the key 'tables' is missing"),
    ],
)
def test_bad_yaml_says_where_and_what(tmp_path: Path, text: str, message: str):
    with pytest.raises(CatalogError, match=message) as caught:
        catalog_of(tmp_path, text)
    assert "catalog.yaml" in str(caught.value)


def test_missing_and_binary_catalog_files(tmp_path: Path):
    with pytest.raises(CatalogError, match=r"nope\.yaml does not exist"):
        load_catalog(tmp_path / "nope.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CatalogError, match=r"binary\.yaml cannot be read"):
        load_catalog(tmp_path / "binary.yaml")


def test_no_tables_and_dotted_names(tmp_path: Path):
    assert catalog_of(tmp_path, "tables:").table_names() == []
    write(tmp_path / "x.parquet")
    table = catalog_of(tmp_path, "tables: {db.t: {location: x.parquet}}").table("DB.T")
    assert table is not None and table.name == "db.t"


def test_files_are_spark_s_and_sorted(tmp_path: Path):
    for name in ("b.parquet", "a.parquet", "c", "_SUCCESS", "_x.parquet", ".h.parquet"):
        write(tmp_path / "t" / name)
    (tmp_path / "t" / "d._COPYING_").touch()
    write(tmp_path / "t" / "sub" / "z.parquet", other=["x"])
    files = one_table(tmp_path, "t").state("t").snapshot.files
    names = [os.path.relpath(file.uri, tmp_path / "t") for file in files]
    assert names == ["a.parquet", "b.parquet", "c"]


@pytest.mark.parametrize("location", ["t/*.parquet", "t/[ab].parquet", "t*", "file://{}/t"])
def test_globs_and_file_urls(tmp_path: Path, location: str):
    write(tmp_path / "t" / "a.parquet")
    write(tmp_path / "t" / "b.parquet")
    table = one_table(tmp_path, location.format(tmp_path)).table("t")
    assert table is not None and table.stats is not None
    assert (table.stats.num_files, table.stats.num_rows) == (2, 6)


def test_a_folder_with_brackets_in_its_name_is_no_glob(tmp_path: Path):
    write(tmp_path / "t[1]" / "a.parquet")
    table = one_table(tmp_path, "t[1]").table("t")
    assert table is not None and table.stats is not None and table.stats.num_rows == 3


def test_symbolic_links_resolve_to_one_identity(tmp_path: Path):
    real = write(tmp_path / "v1" / "a.parquet")
    (tmp_path / "current").symlink_to("v1")
    files = one_table(tmp_path, "current").state("t").snapshot.files
    assert files[0].uri == os.path.realpath(real)


def test_a_pattern_over_partition_folders_is_refused(tmp_path: Path):
    write(tmp_path / "t" / "day=1" / "a.parquet")
    with pytest.raises(CatalogError, match=r"table 't': .*matches the partition folder 'day=1'"):
        one_table(tmp_path, "t/*").table("t")


def test_one_hive_partition_may_be_named(tmp_path: Path):
    write(tmp_path / "t" / "day=1" / "a.parquet")
    table = one_table(tmp_path, "t/day=1").table("t")
    assert table is not None and [f.name for f in table.columns] == ["a"]


@pytest.mark.parametrize("make", [None, "sub/a.parquet", "_SUCCESS"])
def test_a_folder_without_data_files(tmp_path: Path, make: str | None):
    (tmp_path / "t").mkdir()
    if make:
        write(tmp_path / "t" / make)
    with pytest.raises(CatalogError, match=r"table 't': .*/t has no data file"):
        one_table(tmp_path, "t").table("t")


def test_table_stays_until_refresh_and_read_is_fresh(tmp_path: Path):
    write(tmp_path / "t" / "a.parquet")
    catalog = one_table(tmp_path, "t")
    before = catalog.table("t")
    write(tmp_path / "t" / "b.parquet")
    assert catalog.table("t") is before
    assert len(catalog.state("t").snapshot.files) == 2
    catalog.refresh()
    after = catalog.table("t")
    assert after is not None and after.stats is not None and after.stats.num_files == 2


def test_a_named_pipe_is_no_table(tmp_path: Path):
    (tmp_path / "t").mkdir()
    os.mkfifo(tmp_path / "t" / "pipe")
    with pytest.raises(CatalogError, match=r"pipe is not a regular file"):
        one_table(tmp_path, "t").table("t")
