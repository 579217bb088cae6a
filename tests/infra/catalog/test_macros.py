"""Macros of a catalog's project: where they are, and which names they may have."""

from __future__ import annotations

from pathlib import Path

import pytest

from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.planner.errors import CatalogError

TABLES = "tables: {orders: {location: orders}}\n"


def load(folder: Path, catalog: str = TABLES, **macros: str) -> list[str]:
    (folder / "macros").mkdir(exist_ok=True)
    for name, text in macros.items():
        (folder / "macros" / f"{name}.sql").write_text(text)
    (folder / "catalog.yaml").write_text(catalog)
    found = load_catalog(folder / "catalog.yaml").macros
    return sorted([*found.functions, *found.queries])


def test_the_folder_beside_the_catalog(tmp_path: Path) -> None:
    assert load(tmp_path) == []
    assert load(tmp_path, a="CREATE FUNCTION f() RETURN 1", b="CREATE VIEW v AS SELECT f()") == [
        "f",
        "v",
    ]


def test_other_folders(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "s.sql").write_text("CREATE FUNCTION s() RETURN 1")
    a = "CREATE FUNCTION a() RETURN 1"
    assert load(tmp_path, f"{TABLES}macros: shared", a=a) == ["s"]
    assert load(tmp_path, f"{TABLES}macros: [macros, shared]", a=a) == ["a", "s"]


@pytest.mark.parametrize(
    ("catalog", "text", "message"),
    [
        ("macros: nowhere", "", "'macros': there is no folder"),
        ("macros: {f: 1}", "", "'macros' must be a folder of .sql files, or a list of them"),
        ("", "CREATE VIEW Orders AS SELECT 1", "has the name of a table of catalog"),
        ("", "CREATE FUNCTION g() RETURN 1", "has the name of a function of catalog"),
        ("", "CREATE FUNCTION upper(s STRING) RETURN s", "Spark has a function 'upper'"),
        ("", "CREATE FUNCTION f(s INT)\n RETURN t", "a.sql: macro 'f' names 't', which is not an "),
        ("", "CREATE FUNCTION f(s INT) RETURN g(s) + s + s", ""),
    ],
)
def test_mistakes(tmp_path: Path, catalog: str, text: str, message: str) -> None:
    function = "functions: {g: {python: 'm:g', arguments: [INT], returns: INT}}\n"
    if not message:
        assert load(tmp_path, TABLES + function + catalog, a=text) == ["f"]
        return
    with pytest.raises(CatalogError) as caught:
        load(tmp_path, TABLES + function + catalog, a=text)
    assert message in str(caught.value)


def test_a_function_that_changes_is_no_argument_that_is_written_twice(tmp_path: Path) -> None:
    function = "functions: {g: {python: 'm:g', arguments: [INT], returns: INT}}\n"
    load(tmp_path, TABLES + function, a="CREATE FUNCTION f(s INT) RETURN s + s")
    macros = load_catalog(tmp_path / "catalog.yaml").macros
    with pytest.raises(Exception, match="'g' gives another value each time"):
        macros.expand("SELECT f(g(1))")
