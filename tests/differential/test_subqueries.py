"""Subqueries and lateral joins of every kind are native, and equal Spark however distributed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import duckdb
import pytest

from stagecoach.planner import plan_query
from tests.differential.case_files import read_families
from tests.differential.edge_tables import EdgeTables
from tests.differential.inprocess import InProcessRunner, multiset
from tests.differential.query_check import SHUFFLED, SINGLE
from tests.differential.spark_answers import all_differences, ask_spark_all
from tests.share import share

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPTIONS = {"single": SINGLE, "shuffle-1": SHUFFLED[1], "shuffle-3": SHUFFLED[3]}
FAMILIES = read_families("subqueries.sql")
BEYOND_SPARK = [q for queries in read_families("subqueries_beyond_spark.sql").values() for q in queries]  # fmt: skip


def test_there_are_many_queries() -> None:
    assert sum(map(len, FAMILIES.values())) >= 120


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("family", list(FAMILIES))
def test_subqueries_equal_spark(
    oracle: SparkSession, tables: EdgeTables, runner: InProcessRunner, family: str
) -> None:
    expected = ask_spark_all(oracle, share(FAMILIES[family], 3))
    wrong = all_differences(expected, tables, runner, OPTIONS)
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong)


@pytest.fixture(scope="module")
def database(tables: EdgeTables) -> duckdb.DuckDBPyConnection:
    """DuckDB over the tables, with Spark's order of NULLs."""
    connection = duckdb.connect()
    connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
    for name, paths in tables.files.items():
        connection.execute(f'CREATE VIEW "{name}" AS SELECT * FROM read_parquet({list(paths)})')
    return connection


@pytest.mark.parametrize("sql", BEYOND_SPARK)
def test_what_spark_refuses_is_what_duckdb_says(
    database: duckdb.DuckDBPyConnection, tables: EdgeTables, sql: str
) -> None:
    """Correlation over several levels, in SELECT and over groups, which Spark does not plan."""
    expected = Counter(database.execute(sql).fetchall())
    for options in OPTIONS.values():
        graph = plan_query(sql, tables.catalog, options)
        assert graph.fallback_reason is None
        assert {stage.engine for stage in graph.stages} == {"duckdb"}
        assert multiset(InProcessRunner(tables).run(graph)) == expected
