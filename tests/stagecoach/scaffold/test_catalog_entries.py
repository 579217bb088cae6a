"""Entries that are added to a catalog file: what they say, and that the rest of the file stays."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from stagecoach.commands.main import cli
from stagecoach.planner.errors import CatalogError
from stagecoach.scaffold.catalog_entries import (
    doubtful_columns,
    has_entry,
    new_entry,
    table_name,
    with_entries,
)

ENTRY = {"location": "../data/new", "format": "csv", "options": {"header": True}}


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("data/orders", "orders"),
        ("data/orders/", "orders"),
        ("data/Orders 2026.csv.gz", "orders_2026"),
        ("s3://lake/raw/orders-of-shops/", "orders_of_shops"),
        ("orders.parquet", "orders"),
    ],
)
def test_a_table_has_the_name_of_its_file_or_folder(location: str, name: str) -> None:
    assert table_name(location) == name


@pytest.mark.parametrize("location", ["2026.parquet", "s3://", "/", "data/class.csv"])
def test_a_location_that_gives_no_name(location: str) -> None:
    with pytest.raises(CatalogError, match="--name"):
        table_name(location)


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_the_format_follows_from_the_names_of_files(tmp_path: Path) -> None:
    touch(tmp_path, "p/day=1/a.parquet", "p/_SUCCESS", "c/a.csv", "c/b.csv.gz", "j/a.jsonl")
    touch(tmp_path, "t/a.tsv", "o/a.orc", "both/a.csv", "both/b.parquet", "odd/a.xlsx", "empty/_x")
    catalog = tmp_path / "pipelines" / "catalog.yaml"

    def entry(name: str) -> object:
        return new_entry(str(tmp_path / name), catalog)

    assert entry("p") == {"location": "../p"}
    assert entry("c") == {"location": "../c", "format": "csv", "options": {"header": True}}
    assert entry("c/b.csv.gz") == {**ENTRY, "location": "../c/b.csv.gz"}
    assert entry("j") == {"location": "../j", "format": "json"}
    assert entry("o") == {"location": "../o", "format": "orc"}
    options = {"header": True, "sep": "\t"}
    assert entry("t/a.tsv") == {"location": "../t/a.tsv", "format": "csv", "options": options}
    assert entry("t") == {"location": "../t", "format": "csv", "options": options}
    assert new_entry("s3://lake/orders/", catalog) == {"location": "s3://lake/orders/"}
    assert new_entry("s3://lake/o.orc", catalog) == {"location": "s3://lake/o.orc", "format": "orc"}
    for name, part in [
        ("both", "several formats (csv, parquet)"),
        ("odd", "'a.xlsx' does not tell its format"),
        ("empty", "has no files"),
        ("nowhere", "there is no file or folder"),
    ]:
        with pytest.raises(CatalogError) as caught:
            entry(name)
        assert part in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing yet\n",
        "tables:\n",
        "tables: {}\n",
        "tables:\n  a: {location: a}   # the first\n",
        "tables:\n    a:\n        location: a\n\n\n# the end\n",
        "# top\ntables:\n  a: {location: a}\n\n# functions of the project\nfunctions:\n  f: {module: m}\n",
        "functions: {f: {module: m}}\ntables:\n  a: {location: a}",
    ],
)
def test_an_entry_is_added_and_nothing_else_changes(text: str) -> None:
    made = with_entries(text, {"new": ENTRY, "other": {"location": "x"}}, file="catalog.yaml")
    before = yaml.safe_load(text) or {}
    tables = {**(before.get("tables") or {}), "new": ENTRY, "other": {"location": "x"}}
    assert yaml.safe_load(made) == {**before, "tables": tables}
    kept = [line for line in text.splitlines() if line.strip() and not line.startswith("tables:")]
    assert [line for line in made.splitlines() if line in kept] == kept


@given(
    st.dictionaries(st.from_regex(r"[a-z][a-z0-9_ ]{0,8}", fullmatch=True), st.text(), max_size=4)
)
def test_any_location_can_be_added(locations: dict[str, str]) -> None:
    entries = {name: {"location": text} for name, text in locations.items()}
    made = (
        with_entries("tables:\n  A: {location: a}\n", entries, file="c")
        if "a" not in entries
        else ""
    )
    if made:
        assert yaml.safe_load(made)["tables"] == {"A": {"location": "a"}, **entries}


@pytest.mark.parametrize(
    ("text", "is_there"),
    [
        ("", False),
        ("tables:\n", False),
        ("tables: [a]\n", False),
        ("tables:\n  New: {location: ../new.parquet}\n", True),
        ("tables:\n  new: {location: ../other.parquet}\n", False),
        ("tables:\n  old: {location: ../new.parquet}\n", False),
    ],
)
def test_a_table_that_is_there_already(text: str, is_there: bool) -> None:
    assert has_entry(text, "new", {"location": "../new.parquet"}) == is_there


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("tables:\n  New: {location: a}\n", "has a table 'new' already"),
        ("tables: {a: {location: a}}\n", "add by hand:\n  new:\n    location"),
        ("{tables: {}}\n", "add by hand"),
    ],
)
def test_a_file_that_cannot_be_added_to_is_not_changed(text: str, part: str) -> None:
    with pytest.raises(CatalogError) as caught:
        with_entries(text, {"new": ENTRY}, file="catalog.yaml")
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "part"),
    [
        ({"id;name;Umsatz in €": "STRING"}, "separator ';'"),
        ({"a\tb": "STRING"}, "separator '\\t'"),
        ({"_corrupt_record": "STRING"}, "multiLine: true"),
        ({"a": "INT", "_corrupt_record": "STRING"}, "multiLine: true"),
        ({"a": "INT"}, None),
        ({"a;b": "INT", "c": "INT"}, None),
        (None, None),
    ],
)
def test_columns_that_look_wrong_are_pointed_out(
    columns: dict[str, str] | None, part: str | None
) -> None:
    found = doubtful_columns({"location": "x", "columns": columns})
    assert (found is None) if part is None else (part in str(found))


def test_a_file_that_cannot_be_read_is_not_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.parquet").write_bytes(pq_bytes({"Größe in m": [1]}))
    (tmp_path / "zero.parquet").write_bytes(b"")
    add = ["tables", "add", "--catalog", "c.yaml"]
    refused = CliRunner().invoke(cli, [*add, "good.parquet", "zero.parquet"])
    assert "zero.parquet: the file is empty" in f"{refused.output}{refused.exception}"
    assert not (tmp_path / "c.yaml").exists()
    refused = CliRunner().invoke(cli, [*add, "good.parquet", "--name", "my table"])
    assert "catalog c.yaml, table 'my table': not a name" in f"{refused.output}{refused.exception}"
    added = CliRunner().invoke(cli, [*add, "good.parquet"])
    assert "`stagecoach tables good --catalog c.yaml` shows" in added.output
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "c.yaml",
        "good.parquet",
        "zero.parquet",
    ]


def test_a_file_without_columns_is_not_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("stagecoach.api.inferring.infer_columns", lambda *_: [])
    (tmp_path / "e.csv").write_bytes(b"")
    refused = CliRunner().invoke(cli, ["tables", "add", "--catalog", "c.yaml", "e.csv"])
    assert "e.csv has no columns" in f"{refused.output}{refused.exception}"
    assert not (tmp_path / "c.yaml").exists()


def pq_bytes(columns: dict[str, list[int]]) -> bytes:
    """A Parquet file."""
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()
