"""The planner names the columns of a result as Spark does.

Every expression form, literal, operator and function of the registry, without an alias.
`result_names.txt` has one form a line; the others are the cases of the functions.
`result_names_unlike.txt` has those that the planner names otherwise, mostly because their names
depend on types; a run corrects them, because it asks Spark. Neither list may have a line too many.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from stagecoach.planner.errors import SqlError
from stagecoach.planner.planning import plan_query
from tests.differential import (
    cases_collections,
    cases_csv,
    cases_json,
    cases_times,
    function_cases,
    test_aggregates,
    window_cases,
)
from tests.differential.edge_tables import EdgeTables
from tests.differential.query_check import SINGLE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HERE = Path(__file__).parent
UNLIKE = HERE / "result_names_unlike.txt"
BATCH = 100


def expressions() -> dict[str, list[str]]:
    """Expressions by the table that has their columns."""
    forms = (HERE / "result_names.txt").read_text(encoding="utf-8").splitlines()
    of_edges = [
        *forms,
        *_all(function_cases.NATIVE),
        *_all(function_cases.REFUSED),
        *_all(cases_times.NATIVE),
        *_all(function_cases.EITHER)[::25],
    ]
    of_nested = [*_all(cases_collections.NATIVE), *_all(cases_collections.REFUSED)]
    of_groups = [*_all(test_aggregates.CALLS), *_all(window_cases.CALLS)[::5]]
    return {
        table: list(dict.fromkeys(found))
        for table, found in (
            ("e", of_edges),
            ("n", of_nested),
            ("jt", _all(cases_json.NATIVE)),
            ("cv", _all(cases_csv.NATIVE)),
            ("g", of_groups),
        )
    }


def _all(cases: dict[str, list[str]]) -> list[str]:
    return [expression for group in cases.values() for expression in group]


def of_spark(oracle: SparkSession, table: str, asked: list[str]) -> Iterator[tuple[str, str]]:
    """Expressions with Spark's names, without those that do not make one column."""
    try:
        names = oracle.sql(f"SELECT {', '.join(asked)} FROM {table}").columns
    except (PySparkException, Py4JJavaError):
        names = []
    if len(names) == len(asked):
        yield from zip(asked, names, strict=True)
    elif len(asked) > 1:
        middle = len(asked) // 2
        yield from of_spark(oracle, table, asked[:middle])
        yield from of_spark(oracle, table, asked[middle:])


def ours(tables: EdgeTables, table: str, expression: str) -> str | None:
    """The planner's name; None where Spark runs the whole query."""
    try:
        graph = plan_query(f"SELECT {expression} FROM {table}", tables.catalog, SINGLE)
    except SqlError:
        return None
    return graph.result[0].name if len(graph.result) == 1 else None


def test_names_are_sparks(oracle: SparkSession, tables: EdgeTables) -> None:
    known = set(UNLIKE.read_text(encoding="utf-8").splitlines())
    compared, wrong, unlike = 0, [], set()
    for table, asked in expressions().items():
        for start in range(0, len(asked), BATCH):
            for expression, name in of_spark(oracle, table, asked[start : start + BATCH]):
                found = ours(tables, table, expression)
                compared += found is not None
                if found is None or found == name:
                    continue
                unlike.add(expression)
                if expression not in known:
                    wrong.append(f"{expression}: Spark names it {name!r}, ours {found!r}")
    assert compared > 1500
    assert not wrong, "\n".join(wrong)
    assert not known - unlike, "take out of result_names_unlike.txt: " + "\n".join(known - unlike)
