"""Window functions equal Spark: every function, frame and key, on one task and on several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stagecoach.planner import plan_query
from stagecoach.planner.engines.duckdb.window_proofs import NATIVE_AGGREGATES
from stagecoach.planner.errors import AnalysisError
from stagecoach.planner.windows.registry import WINDOW_FUNCTIONS
from tests.differential.edge_tables import EdgeTables
from tests.differential.inprocess import InProcessRunner
from tests.differential.query_check import ALL_OPTIONS, Expected, ask_spark, differences
from tests.differential.window_cases import (
    CALLS,
    ERRORS,
    ON_SPARK,
    QUERIES,
    ROUNDED,
    SPARK_QUERIES,
)
from tests.share import share

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_BATCH = 64  # calls of one query
_SINGLE, _TASKS = ("single",), ("shuffle-1", "shuffle-3")


class _Check:
    """Compares queries over the edge tables with Spark."""

    def __init__(self, oracle: SparkSession, tables: EdgeTables, runner: InProcessRunner) -> None:
        self._oracle = oracle
        self._tables = tables
        self._runner = runner

    def query(self, sql: str, expected: Expected, options: tuple[str, ...], **how: Any) -> list[str]:  # fmt: skip
        """Differences of one query, with the names of the options."""
        found = []
        for name in options:
            lines = differences(sql, self._tables.catalog, self._runner, expected, ALL_OPTIONS[name], **how)  # fmt: skip
            found += [f"{sql} [{name}]: {line}" for line in lines]
        return found

    def calls(self, calls: list[str], *, native: bool = True, rounded: bool = False) -> list[str]:
        """Differences of all calls at once; of each where that fails."""
        items = ", ".join(f"{call} AS v{i}" for i, call in enumerate(calls))
        sql = f"SELECT id, {items} FROM g"
        expected = ask_spark(self._oracle, sql)
        columns = tuple(range(1, len(calls) + 1)) if rounded else ()
        # One exchange a partitioning: a few are as good as all, and each is a stage.
        options = ("single", "shuffle-3")
        wrong = self.query(sql, expected, options, native=native, rounded=columns)
        if (wrong or expected.rows is None) and len(calls) > 1:
            each = [self.calls([call], native=native, rounded=rounded) for call in calls]
            return [line for lines in each for line in lines] or wrong
        return wrong or ([f"Spark raises: {sql}"] if expected.rows is None else [])


@pytest.fixture(scope="module")
def check(oracle: SparkSession, tables: EdgeTables, runner: InProcessRunner) -> _Check:
    """The comparison."""
    return _Check(oracle, tables, runner)


@pytest.mark.parametrize("family", list(CALLS))
def test_calls_equal_spark(check: _Check, family: str) -> None:
    calls = share(CALLS[family], 3)
    batches = [calls[at : at + _BATCH] for at in range(0, len(calls), _BATCH)]
    wrong = [line for batch in batches for line in check.calls(batch)]
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong)


def test_sums_of_floats_equal_spark_to_rounding(check: _Check) -> None:
    wrong = check.calls(ROUNDED, rounded=True)
    assert not wrong, "\n".join(wrong)


def test_what_is_not_proven_runs_on_spark(check: _Check, tables: EdgeTables) -> None:
    for call in ON_SPARK:
        graph = plan_query(f"SELECT id, {call} AS v FROM g", tables.catalog)
        assert graph.fallback_reason is None, f"{call}: {graph.fallback_reason}"
        assert "spark" in {stage.engine for stage in graph.stages}, call
    wrong = check.calls(ON_SPARK, native=False)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("part", range(4))
def test_queries_equal_spark(oracle: SparkSession, check: _Check, part: int) -> None:
    wrong = []
    for name, sql in share(list(QUERIES.items())[part::4], 3):
        expected = ask_spark(oracle, sql)
        assert expected.rows is not None, f"{name}: {expected.error}"
        wrong += [f"{name}: {line}" for line in check.query(sql, expected, (*_SINGLE, *_TASKS))]
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong)


@pytest.mark.parametrize("name", list(SPARK_QUERIES))
def test_overflows_are_errors(oracle: SparkSession, check: _Check, name: str) -> None:
    sql = SPARK_QUERIES[name]
    expected = ask_spark(oracle, sql)
    assert expected.rows is None
    assert not check.query(sql, expected, (*_SINGLE, *_TASKS))


def test_what_spark_refuses_is_refused_with_its_place(
    oracle: SparkSession, tables: EdgeTables
) -> None:
    for name, (sql, words) in ERRORS.items():
        assert ask_spark(oracle, sql).rows is None, f"Spark accepts {name}: {sql}"
        with pytest.raises(AnalysisError, match=words) as caught:
            plan_query(sql, tables.catalog)
        assert caught.value.line == 1 and caught.value.column is not None, f"{name}: no place"


def test_every_native_function_has_cases() -> None:
    named = " ".join(call for calls in CALLS.values() for call in calls)
    native = (name for name, function in WINDOW_FUNCTIONS.items() if function.duckdb)
    for name in (*native, *NATIVE_AGGREGATES):
        assert f"{name}(" in named, name


def test_the_comparison_can_fail(oracle: SparkSession, check: _Check) -> None:
    expected = ask_spark(oracle, "SELECT id, rank() OVER (ORDER BY v) AS r FROM x")
    other = "SELECT id, row_number() OVER (ORDER BY v, id) AS r FROM x"
    assert check.query(other, expected, ("single", "shuffle-3"))
