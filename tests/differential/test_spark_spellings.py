"""Every function, aggregate and window function as we write it for Spark gives Spark's own answer.

A stage may run on Spark although DuckDB could: where it fails there, or beside a function that is
not proven. So all cases that are proven on DuckDB also run with each stage on Spark. The scalars of
`test_functions` are compared there, in Spark's text as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stagecoach.planner import plan_query
from stagecoach.planner.errors import SqlError
from tests.differential.edge_tables import EdgeTables
from tests.differential.engine_mix import on_spark
from tests.differential.inprocess import InProcessRunner
from tests.differential.query_check import SHUFFLED, ask_spark, graph_differences
from tests.differential.test_aggregates import CALLS, is_float
from tests.share import share

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

# Aggregates that no DuckDB stage computes, or that only some arguments of which do.
MORE = {
    "percentile": ["percentile(i, array(0.5, 0.9))", "percentile(ti, array(0, 1))", "percentile(ti, 0.5, 2)", "percentile(d52, array(0.25BD, 5e-1))"],
    "approx_percentile": ["approx_percentile(i, 0.5)", "approx_percentile(si, array(0.25, 0.5), 100)", "percentile_approx(d52, array(0, 1))"],
    "percentile_cont": ["percentile_cont(array(0.25, 0.5)) WITHIN GROUP (ORDER BY i)"],
    "percentile_disc": ["percentile_disc(array(0.25, 1)) WITHIN GROUP (ORDER BY i DESC)"],
    "approx_count_distinct": ["approx_count_distinct(i)", "approx_count_distinct(s, 0.01)"],
    "avg": ["avg(d384)", "avg(d52 / 3)", "avg(-d200)", "avg(CAST(i AS DECIMAL(38,0)))", "avg(CAST(ti AS DECIMAL(38,18)) / 7)"],
    "mode": ["mode(ti, true)"], "try_avg": ["try_avg(d152)"], "collect_list": ["size(collect_list(d))"],
}  # fmt: skip


@pytest.mark.parametrize("function", sorted({*CALLS, *MORE}))
def test_aggregates_written_for_spark_equal_spark(
    oracle: SparkSession, tables: EdgeTables, runner: InProcessRunner, function: str
) -> None:
    wrong = []
    for call in [*share(CALLS.get(function, []), 10), *MORE.get(function, [])]:
        sql = f"SELECT g, {call} AS v FROM g GROUP BY g"
        expected = ask_spark(oracle, sql)
        try:
            graph = plan_query(sql, tables.catalog, SHUFFLED[3])
        except SqlError as error:
            if expected.rows is not None:
                wrong.append(f"{call}: only the planner refuses: {error}")
            continue
        if graph.fallback_reason is None:
            rounded = (1,) if is_float(call) else ()
            found = graph_differences(
                on_spark(graph), runner, expected, native=False, rounded=rounded
            )
            wrong += [f"{call}: {line}" for line in found]
    assert not wrong, "\n".join(wrong)
