"""Every aggregate over every type, in one step and in two, equals Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from planner.aggregates import AGGREGATES
from tests.differential.edge_tables import EdgeTables
from tests.differential.inprocess import InProcessRunner
from tests.differential.query_check import ALL_OPTIONS, ask_spark, differences

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

INTEGERS, DECIMALS, FLOATS = ["ti", "si", "i", "l"], ["d52", "d152", "d200", "d384"], ["f", "d"]
OTHERS = ["s", "b", "dt", "ts", "tn", "bin", "never"]
GROUPS = ["", "g", "h", "g, h", "gd", "gf", "gc", "gt", "i % 2"]
CALLS = {
    "count": ["count(*)", *(f"count({c})" for c in [*INTEGERS, "d52", "d", "s", "never"]), "count(i, s)", "count(DISTINCT i)", "count(DISTINCT s)", "count(DISTINCT d52)", "count(DISTINCT dt)", "count(DISTINCT i, s)", "count(1)", "count(NULL)", "count(*) FILTER (WHERE i > 0)", "count(DISTINCT s) FILTER (WHERE b)", "count_if(b)", "count_if(i > 0)"],
    "sum": [*(f"sum({c})" for c in ["ti", "si", "i", *DECIMALS, "never", *FLOATS]), "sum(l)", "sum(i + 1)", "sum(1 + l)", "sum(DISTINCT ti)", "sum(DISTINCT d52)", "sum(i) FILTER (WHERE b)", "avg(i + 1)", "sum(d52 + 1)", "sum(i - 1)", "sum(ti * 2)", "sum(d52 * (1 - d52))", "sum(CASE WHEN b THEN 1 ELSE 0 END)", "sum(DISTINCT d152) FILTER (WHERE b)"],
    "avg": [*(f"avg({c})" for c in ["ti", "si", "i", "d52", "d152", "never", "d", "f"]), "avg(DISTINCT ti)", "avg(DISTINCT d52)", "avg(i) FILTER (WHERE b)", "avg(d52 * d52)", "avg(d200)"],
    "min": [*(f"min({c})" for c in [*INTEGERS, *DECIMALS, *OTHERS]), "min(DISTINCT i)", "min(s) FILTER (WHERE b)"],
    "max": [*(f"max({c})" for c in [*INTEGERS, *DECIMALS, *OTHERS]), "max(DISTINCT i)"],
    "bool_and": ["bool_and(b)", "bool_and(i > -100)", "bool_and(b) FILTER (WHERE i > 0)"],
    "bool_or": ["bool_or(b)", "bool_or(i > 0)"],
}  # fmt: skip
SPARK_ONLY = ["min(d)", "max(f)", "count(DISTINCT d)", "sum(DISTINCT d)", "stddev_samp(i)", "var_pop(d52)", "corr(i, l)", "median(i)", "approx_count_distinct(s)", "max_by(id, id)", "min_by(s, id)", "covar_pop(i, l)"]  # fmt: skip


def is_float(call: str) -> bool:
    """Whether the result is computed from floats in the order of the rows."""
    names = ("sum(d)", "sum(f)", "avg(d)", "avg(f)", "sum(DISTINCT d)", "stddev", "var_", "corr", "covar")  # fmt: skip
    return call.startswith(names)


def check(
    oracle: SparkSession,
    tables: EdgeTables,
    runner: InProcessRunner,
    calls: list[str],
    group: str,
    where: str = "",
    *,
    native: bool = True,
    options: tuple[str, ...] = ("single", "shuffle-3"),
) -> list[str]:
    """Differences of all calls at once; one by one where that raises."""
    keys = [k.strip() for k in group.split(",")] if group else []
    items = ", ".join([*keys, *(f"{call} AS v{i}" for i, call in enumerate(calls))])
    tail = f" GROUP BY {group}" if group else ""
    sql = f"SELECT {items} FROM g{where}{tail}"
    expected = ask_spark(oracle, sql)
    rounded = tuple(len(keys) + i for i, call in enumerate(calls) if is_float(call))
    wrong = []
    for name in options:
        found = differences(sql, tables.catalog, runner, expected, ALL_OPTIONS[name], native=native, rounded=rounded)  # fmt: skip
        wrong += [f"{sql} [{name}]: {line}" for line in found]
    if (wrong or expected.rows is None) and len(calls) > 1:
        middle = len(calls) // 2
        return [
            line
            for part in (calls[:middle], calls[middle:])
            for line in check(
                oracle, tables, runner, part, group, where, native=native, options=options
            )
        ]
    return wrong


@pytest.mark.parametrize("group", GROUPS)
def test_aggregates_equal_spark(
    oracle: SparkSession, tables: EdgeTables, runner: InProcessRunner, group: str
) -> None:
    plain = [c for calls in CALLS.values() for c in calls if "DISTINCT" not in c]
    distinct = [c for calls in CALLS.values() for c in calls if "DISTINCT" in c]
    wrong = check(oracle, tables, runner, plain, group)
    wrong += check(oracle, tables, runner, distinct, group)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("where", [" WHERE id < 0", " WHERE g = 'nulls'", " WHERE i > 0 AND b"])
def test_aggregates_of_few_or_no_rows_equal_spark(
    oracle: SparkSession, tables: EdgeTables, runner: InProcessRunner, where: str
) -> None:
    calls = [c for calls in CALLS.values() for c in calls]
    wrong = check(oracle, tables, runner, calls, "", where)
    wrong += check(oracle, tables, runner, calls, "h", where)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("call", SPARK_ONLY)
def test_aggregates_that_are_not_proven_run_on_spark(
    oracle: SparkSession, tables: EdgeTables, runner: InProcessRunner, call: str
) -> None:
    wrong = check(oracle, tables, runner, [call], "h", native=False)
    assert not wrong, "\n".join(wrong)


def test_every_native_aggregate_has_cases() -> None:
    native = {n for n, f in AGGREGATES.items() if f.duckdb or f.states}
    assert native == set(CALLS)
