"""The source of a function: found without an import, compared, and loaded as it was read."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stagecoach.infra.errors import FunctionError
from stagecoach.infra.functions.loading import SOURCE, load_function
from stagecoach.infra.functions.sources import SourceError, find_code
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.types import BIGINT


@pytest.fixture(autouse=True)
def modules() -> Iterator[None]:
    """Leave no module of a test behind."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("udf_"):
            del sys.modules[name]


def write(folder: Path, **files: str) -> tuple[str, ...]:
    for name, text in files.items():
        path = folder / f"{name.replace('__in__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return (str(folder),)


def function(python: str, path: tuple[str, ...], version: str = "") -> ProjectFunction:
    code = (
        f"version:{version}" if version else SOURCE + find_code(python.split(":")[0], path).digest
    )
    return ProjectFunction("f", python, (BIGINT,), BIGINT, code=code)


def test_the_code_is_the_module_and_what_it_imports_of_the_project(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        udf_pkg__in____init__="",
        udf_pkg__in__functions="import json\nfrom . import near\nfrom .deep.far import x\nimport udf_top as t\n",
        udf_pkg__in__near="import pyarrow\n",
        udf_pkg__in__deep__in__far="def g():\n    import udf_lazy\n",
        udf_top="",
        udf_lazy="from udf_top import *\n",
        udf_other="",
        json="raise SystemExit('shadows a module of Python')",
    )
    loaded = set(sys.modules)
    found = find_code("udf_pkg.functions", path)
    assert [module.name for module in found.modules] == [
        "json",  # Python's own is imported, unless its path has the project first
        "udf_lazy",
        "udf_pkg",
        "udf_pkg.deep",
        "udf_pkg.deep.far",
        "udf_pkg.functions",
        "udf_pkg.near",
        "udf_top",
    ]
    assert found.root == str(tmp_path)
    assert set(sys.modules) == loaded


def test_a_module_that_hides_one_of_python_is_code_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, udf_hides="import this\ndef f(k): return k + this.X\n", this="X = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "this", raising=False)
    first = function("udf_hides:f", path)
    assert load_function(first, path)(1) == 2
    write(tmp_path, this="X = 200\n")
    second = function("udf_hides:f", path)
    assert second.code != first.code
    assert load_function(second, path)(1) == 201
    monkeypatch.delitem(sys.modules, "this")


def test_any_change_of_the_code_changes_its_digest(tmp_path: Path) -> None:
    one = write(tmp_path / "one", udf_a="from udf_b import x\n", udf_b="x = 1\n")
    two = write(tmp_path / "two", udf_a="from udf_b import x\n", udf_b="x = 1\n", udf_c="")
    assert find_code("udf_a", one).digest == find_code("udf_a", two).digest
    write(tmp_path / "two", udf_b="x = 2\n")
    assert find_code("udf_a", one).digest != find_code("udf_a", two).digest


@pytest.mark.parametrize(("module", "text"), [
    ("udf_nope", "module 'udf_nope' was not found in"),
    ("udf_a.nope", "module 'udf_a.nope' was not found in"),
    ("udf_folder", "a folder without __init__.py"),
    ("udf_wrong", "cannot be parsed"),
    ("_datetime", "has no Python source; declare its 'version'"),
])  # fmt: skip
def test_what_is_not_there_is_said(tmp_path: Path, module: str, text: str) -> None:
    path = write(tmp_path, udf_a="", udf_folder__in__b="", udf_wrong="def (:\n")
    with pytest.raises(SourceError, match=text):
        find_code(module, path)


def test_a_function_of_a_package_in_a_zip_file_is_found(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "shipped.zip", "w") as archive:
        archive.writestr("udf_zipped/__init__.py", "")
        archive.writestr("udf_zipped/m.py", "from .n import one\ndef f(x): return x + one\n")
        archive.writestr("udf_zipped/n.py", "one = 1\n")
    path = (str(tmp_path / "shipped.zip"),)
    assert load_function(function("udf_zipped.m:f", path), path)(1) == 2


def test_a_changed_module_is_loaded_anew_and_an_old_plan_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, udf_a="from udf_b import x\ndef f(i): return i + x\n", udf_b="x = 1\n")
    old = function("udf_a:f", path)
    assert load_function(old, path)(1) == 2
    write(tmp_path, udf_b="x = 5\n")
    new = function("udf_a:f", path)
    assert load_function(new, path)(1) == 6
    with pytest.raises(FunctionError, match="not the one that the query was planned with"):
        load_function(old, path)


def test_modules_of_one_name_in_two_projects_are_two(tmp_path: Path) -> None:
    one = write(tmp_path / "one", udf_a="def f(i): return 1\n")
    two = write(tmp_path / "two", udf_a="def f(i): return 2\n")
    assert load_function(function("udf_a:f", one), one)(0) == 1
    assert load_function(function("udf_a:f", two), two)(0) == 2
    assert load_function(function("udf_a:f", one), one)(0) == 1


@pytest.mark.parametrize(("python", "text"), [
    ("udf_a:nope", "module 'udf_a' has no 'nope'"),
    ("udf_a:x", "it is a int, which cannot be called"),
    ("udf_fails:f", "importing module 'udf_fails' failed: ModuleNotFoundError: No module named 'udf_none'"),
])  # fmt: skip
def test_code_that_cannot_be_used_is_an_error_with_the_host(
    tmp_path: Path, python: str, text: str
) -> None:
    path = write(tmp_path, udf_a="x = 1\n", udf_fails="import udf_none\n")
    with pytest.raises(
        FunctionError, match=f"function 'f' .* cannot be used: on .*{text}"
    ) as caught:
        load_function(function(python, path), path)
    assert not caught.value.retryable


def test_a_declared_version_stands_for_the_source(tmp_path: Path) -> None:
    path = write(tmp_path, udf_a="class A:\n    @staticmethod\n    def f(i): return i\n")
    found = function("udf_a:A.f", path, version="1")
    assert load_function(found, path)(3) == 3
    assert load_function(replace(found, python="_operator:neg"), path)(3) == -3
