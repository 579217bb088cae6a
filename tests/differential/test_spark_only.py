"""Functions that only Spark computes make their stage run on Spark, and not the whole query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stagecoach.planner import plan_query
from stagecoach.planner.aggregates import spark_only as aggregates
from stagecoach.planner.functions.tables import spark_only
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.expressions import AggregateCall, Call, WindowCall
from stagecoach.planner.tree import walk
from tests.differential.edge_tables import EdgeTables
from tests.differential.inprocess import InProcessRunner
from tests.differential.query_check import ALL_OPTIONS, ask_spark, differences
from tests.differential.spark_only_cases import QUERIES
from tests.differential.test_functions import report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
OPTIONS = ALL_OPTIONS["shuffle-3"]


@pytest.mark.slow
def test_queries_equal_plain_spark(
    tables: EdgeTables, oracle: SparkSession, runner: InProcessRunner
) -> None:
    wrong = []
    for sql in QUERIES:
        expected = ask_spark(oracle, sql)
        if expected.rows is None:
            wrong.append(f"{sql}: {expected.error}")
        found = differences(sql, tables.catalog, runner, expected, OPTIONS, native=False)
        wrong += [f"{sql}: {text}" for text in found]
    assert not wrong, report(wrong)


def test_every_function_is_staged_on_spark(tables: EdgeTables) -> None:
    found = set()
    for sql in QUERIES:
        graph = plan_query(sql, tables.catalog, OPTIONS)
        assert graph.fallback_reason is None, f"{sql}: {graph.fallback_reason}"
        assert any(stage.engine == "spark" for stage in graph.stages), sql
        found |= {
            part.function
            for stage in graph.stages
            for node in walk(stage.fragment)
            for expr in node.expressions
            for part in walk(expr)
            if isinstance(part, Call | AggregateCall | WindowCall)
        }
    rows = (*spark_only.FUNCTIONS, *aggregates.AGGREGATES)
    assert {row.name for row in rows} <= found


def test_the_stages_before_and_after_stay_on_duckdb(tables: EdgeTables) -> None:
    sql = (
        "SELECT x.k, n, count(*) AS c FROM x JOIN "
        "(SELECT k, hll_sketch_estimate(hll_sketch_agg(v)) AS n FROM y GROUP BY k) AS q ON x.k = q.k "
        "GROUP BY x.k, n"
    )
    graph = plan_query(sql, tables.catalog, OPTIONS)
    engines = [stage.engine for stage in graph.stages]
    assert "spark" in engines and "duckdb" in engines, engines


def test_other_types_are_left_to_spark(tables: EdgeTables) -> None:
    for expr in ("hll_sketch_estimate(i)", "parse_json(s)", "st_srid(NULL)", "from_csv(s, t)"):
        graph = plan_query(f"SELECT id, {expr} AS v FROM e", tables.catalog, PlannerOptions())
        assert graph.fallback_reason is not None, expr
