"""Joins, set operations, orders, groups and subqueries equal Spark, however they are distributed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stagecoach.planner import plan_query
from tests.differential.edge_tables import EdgeTables
from tests.differential.inprocess import InProcessRunner
from tests.differential.operator_cases import FAMILIES, NOT_STAGED, ON_SPARK
from tests.differential.query_check import ALL_OPTIONS, ask_spark, differences
from tests.differential.spark_answers import all_differences, ask_spark_all
from tests.share import share

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize("family", list(FAMILIES))
def test_queries_equal_spark(
    oracle: SparkSession, tables: EdgeTables, runner: InProcessRunner, family: str
) -> None:
    expected = ask_spark_all(oracle, share(FAMILIES[family], 3))
    wrong = all_differences(expected, tables, runner, ALL_OPTIONS)
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong)


@pytest.mark.parametrize("sql", ON_SPARK)
def test_spark_stages_among_others_equal_spark(
    oracle: SparkSession, tables: EdgeTables, runner: InProcessRunner, sql: str
) -> None:
    expected = ask_spark(oracle, sql)
    for name, options in ALL_OPTIONS.items():
        graph = plan_query(sql, tables.catalog, options)
        assert "spark" in {stage.engine for stage in graph.stages}
        assert graph.fallback_reason is None
        wrong = differences(sql, tables.catalog, runner, expected, options, native=False)
        assert not wrong, f"{name}: {wrong}"


@pytest.mark.parametrize("sql", NOT_STAGED)
def test_what_is_not_staged_is_handed_over_whole(tables: EdgeTables, sql: str) -> None:
    graph = plan_query(sql, tables.catalog)
    assert graph.fallback_reason
    assert graph.head.sql == sql


@pytest.mark.parametrize(
    ("asked", "planned"),
    [
        ("SELECT id FROM x WHERE k > 1", "SELECT id FROM x WHERE k >= 1"),
        ("SELECT 0.0D AS a", "SELECT -0.0D AS a"),
        ("SELECT 1 AS a", "SELECT 1L AS a"),
        ("SELECT id FROM x ORDER BY id", "SELECT id FROM x ORDER BY id DESC"),
        ("SELECT 1 AS a", "SELECT 1 AS b"),
    ],
)
def test_the_comparison_can_fail(
    oracle: SparkSession, tables: EdgeTables, runner: InProcessRunner, asked: str, planned: str
) -> None:
    expected = ask_spark(oracle, asked)
    for options in ALL_OPTIONS.values():
        assert differences(planned, tables.catalog, runner, expected, options)
        assert not differences(asked, tables.catalog, runner, expected, options)
