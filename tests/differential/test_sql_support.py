"""docs/sql-support.md tells the truth: it is current, complete, and every claim has a case."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from stagecoach.planner.explain.support import support_of
from stagecoach.planner.functions.builtin import functions_by_group
from tests.differential import (
    cases_collections,
    cases_csv,
    cases_json,
    cases_scalars,
    cases_texts,
    cases_times,
    function_cases,
    window_cases,
)
from tests.differential.test_aggregates import CALLS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
_MODULES = (
    cases_collections, cases_csv, cases_json, cases_scalars, cases_texts, cases_times, function_cases, window_cases,
)  # fmt: skip


def _page() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sql_support", ROOT / "docs" / "sql_support.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in _texts(v)] if isinstance(value, list | tuple) else []


def proven_texts() -> str:
    """All expressions and queries that tests run on DuckDB and compare with Spark."""
    tables = [
        table
        for module in _MODULES
        for name, table in vars(module).items()
        if name.isupper() and not any(word in name for word in ("REFUSED", "EITHER", "UNPLANNED", "WRONG"))
    ]  # fmt: skip
    files = [*HERE.glob("*.sql"), *HERE.glob("corpus/*/*.sql")]
    queries = [t for f in files if "-- on: " not in (t := f.read_text(encoding="utf-8"))]
    return "\n".join([*_texts(CALLS), *_texts(tables), *queries]).lower()


def test_the_page_is_current() -> None:
    page = _page()
    assert page.PAGE.read_text(encoding="utf-8") == page.page(), "run `make sql-support`"


def test_every_function_that_is_said_to_run_on_duckdb_has_a_case() -> None:
    texts = proven_texts()
    claimed = [
        name
        for names in _page().functions().values()
        for name in names
        if support_of(name).status in ("native", "rewrite")
    ]
    missing = []
    for name in claimed:
        words = rf"(?<!\w){re.escape(name)}(?!\w)" if name[0].isalpha() else re.escape(name)
        if not re.search(words, texts):
            missing.append(name)
    assert missing == []


def test_all_functions_are_counted_and_most_run_on_duckdb() -> None:
    counts = _page().counted()
    assert counts.total() == len(functions_by_group())
    assert counts["native"] + counts["rewrite"] >= 0.67 * counts.total(), dict(counts)
    assert counts["unknown"] + counts["refused"] <= 0.08 * counts.total(), dict(counts)


def test_what_does_not_run_on_duckdb_has_a_reason() -> None:
    found = {name: support_of(name) for name, _ in functions_by_group()}
    assert not [n for n, s in found.items() if s.status not in ("native", "rewrite") and not s.note]


@pytest.mark.spark
@pytest.mark.slow
def test_the_list_of_functions_is_sparks(spark: SparkSession) -> None:
    utils = spark._jvm.org.apache.spark.sql.api.python.PythonSQLUtils  # type: ignore[union-attr]
    assert set(functions_by_group()) == {
        (i.getName(), i.getGroup()) for i in utils.listBuiltinFunctionInfos()
    }
