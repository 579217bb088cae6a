"""The functions of a catalog file: what is read, what is refused, and which version of the code."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.types import parse_type

GOOD = "python: 'udf_cat:f', arguments: [STRING, 'decimal(10, 2)'], returns: BIGINT"


def load(folder: Path, functions: str) -> FileCatalog:
    (folder / "catalog.yaml").write_text(f"tables:\nfunctions: {functions}\n")
    return load_catalog(folder / "catalog.yaml")


def test_a_function_is_read_and_its_code_looked_for_when_it_is_asked_for(tmp_path: Path) -> None:
    catalog = load(tmp_path, f"{{Total_Of: {{{GOOD}}}}}")
    assert catalog.function_names() == ["total_of"]
    assert catalog.function("other") is None
    with pytest.raises(
        CatalogError, match=r"function 'total_of': module 'udf_cat' was not found in"
    ):
        catalog.function("TOTAL_OF")
    (tmp_path / "udf_cat.py").write_text("raise SystemExit('imported')\ndef f(): ...\n")
    found = catalog.function("TOTAL_OF")
    assert found is not None
    assert found == ProjectFunction(
        name="total_of",
        python="udf_cat:f",
        arguments=(parse_type("string"), parse_type("decimal(10,2)")),
        returns=parse_type("bigint"),
        code=found.code,
    )
    assert re.fullmatch("source:[0-9a-f]{32}", found.code)
    assert "udf_cat" not in sys.modules
    assert catalog.code_path == (str(tmp_path),)


def test_a_change_of_the_code_is_noticed_at_once(tmp_path: Path) -> None:
    catalog = load(tmp_path, f"{{g: {{{GOOD}}}}}")
    (tmp_path / "udf_cat.py").write_text("import udf_near\ndef f(): return 1\n")
    (tmp_path / "udf_near.py").write_text("x = 1\n")
    before = catalog.function("g")
    assert catalog.function("g") is before
    (tmp_path / "udf_near.py").write_text("x = 2\n")
    assert catalog.function("g") != before
    (tmp_path / "udf_near.py").write_text("x = 1\n")
    assert catalog.function("g") == before


def test_a_module_that_was_not_there_before_is_noticed_at_once(tmp_path: Path) -> None:
    (tmp_path / "udf_cat.py").write_text(
        "try:\n    from udf_cat_extra import x\nexcept ImportError:\n    x = 1\ndef f(): ...\n"
    )
    catalog = load(tmp_path, f"{{total_of: {{{GOOD}}}}}")
    before = catalog.function("total_of")
    (tmp_path / "udf_cat_extra.py").write_text("x = 2\n")
    after = catalog.function("total_of")
    assert before is not None
    assert after is not None
    assert before.code != after.code


def test_a_declared_version_stands_for_the_code(tmp_path: Path) -> None:
    catalog = load(tmp_path, f"{{g: {{{GOOD}, version: 3}}}}")
    found = catalog.function("g")  # workers may have a module that is not here
    assert found is not None
    assert found.code == "version:3"


def test_a_module_on_pythons_path_is_found_there_and_workers_are_told_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "src" / "udf_pkg").mkdir(parents=True)
    (tmp_path / "src" / "udf_pkg" / "m.py").write_text("def f(): ...\n")
    monkeypatch.syspath_prepend(tmp_path / "src")
    (tmp_path / "here").mkdir()
    catalog = load(tmp_path / "here", f"{{g: {{{GOOD.replace('udf_cat', 'udf_pkg.m')}}}}}")
    assert catalog.function("g") is not None
    assert catalog.code_path == (str(tmp_path / "here"), str(tmp_path / "src"))


@pytest.mark.parametrize(("functions", "text"), [
    ("[f]", "'functions' must map names to functions"),
    (f"{{upper: {{{GOOD}}}}}", "function 'upper': Spark has a function of this name"),
    (f"{{Explode: {{{GOOD}}}}}", "function 'Explode': Spark has a function of this name"),
    (f"{{range: {{{GOOD}}}}}", "function 'range': Spark has a function of this name"),
    (f"{{a.b: {{{GOOD}}}}}", "function 'a.b': not a name"),
    (f"{{1: {{{GOOD}}}}}", "function 1: not a name"),
    (f"{{g: {{{GOOD}}}, G: {{{GOOD}}}}}", "function 'G': another function has the same name"),
    ("{g: 'udf_cat:f'}", "expected a mapping with the keys python, arguments and returns"),
    ("{g: {python: 'a:b', returns: INT}}", "the key 'arguments' is missing"),
    (f"{{g: {{{GOOD}, pure: true}}}}", "unknown key 'pure'"),
    (f"{{g: {{{GOOD}, determinstic: true}}}}", "did you mean 'deterministic'?"),
    (f"{{g: {{{GOOD}, deterministic: 1}}}}", "'deterministic' must be true or false, not 1"),
    (f"{{g: {{{GOOD}, kind: row}}}}", "'kind' must be scalar or pandas or arrow, not 'row'"),
    (f"{{g: {{{GOOD}, null_input: no}}}}", "'null_input' must be call or return_null, not False"),
    (f"{{g: {{{GOOD}, version: ''}}}}", "'version' must be a text or a number, not ''"),
    ("{g: {python: udf_cat, arguments: [INT], returns: INT}}", "'python' must be module:function"),
    ("{g: {python: '../x:f', arguments: [INT], returns: INT}}", "'python' must be module:function"),
    ("{g: {python: 'a:b', arguments: [], returns: INT}}", "a list of at least one type"),
    ("{g: {python: 'a:b', arguments: INT, returns: INT}}", "a list of at least one type"),
    ("{g: {python: 'a:b', arguments: [NUMBER], returns: INT}}", "'arguments': 'NUMBER' is not a type"),
    ("{g: {python: 'a:b', arguments: [INT], returns: 7}}", "'returns' must name types of Spark"),
    ("{g: {python: 'a:b', arguments: [INT], returns: VARIANT}}", "'VARIANT' is not a type"),
    ("{g: {python: 'a:b', arguments: [INT], returns: 'map<int>'}}", "'map<int>' is not a type"),
    ("{g: {python: 'a:b', arguments: [INTERVAL DAY], returns: INT}}", "cannot have values of type interval day"),
])  # fmt: skip
def test_what_is_wrong_is_said_when_the_catalog_is_loaded(
    tmp_path: Path, functions: str, text: str
) -> None:
    with pytest.raises(CatalogError, match=re.escape(text)):
        load(tmp_path, functions)


def test_a_name_that_the_module_does_not_define_is_refused(tmp_path: Path) -> None:
    (tmp_path / "udf_cat.py").write_text("from os import *\n")
    assert load(tmp_path, f"{{g: {{{GOOD}}}}}").function("g") is not None
    (tmp_path / "udf_cat.py").write_text("from os import path as f\nif f: g = 1\n")
    assert load(tmp_path, f"{{g: {{{GOOD}}}}}").function("g") is not None
    (tmp_path / "udf_cat.py").write_text("def ff(): ...\n")
    with pytest.raises(CatalogError, match="module 'udf_cat' does not define 'f'"):
        load(tmp_path, f"{{g: {{{GOOD}}}}}").function("g")
