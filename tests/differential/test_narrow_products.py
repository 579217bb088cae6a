"""Decimal products in 64 bits equal Spark's, and bounds that lie raise instead of being wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stagecoach.infra.errors import QueryError
from stagecoach.planner import plan_query
from stagecoach.planner.catalog import ColumnStats, MappingCatalog, TableStats
from stagecoach.planner.plan.expressions import Call
from stagecoach.planner.tree import walk
from tests.differential.edge_tables import EdgeTables
from tests.differential.inprocess import InProcessRunner, collect, multiset
from tests.differential.query_check import ALL_OPTIONS, ask_spark, differences

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

QUERIES = [
    "SELECT id, w * kc AS a, w * (1 - kc) AS b FROM x",
    "SELECT k, sum(w * kc) AS a, sum(w * (1 - kc)) AS b, avg(w * kc) AS c FROM x GROUP BY k",
    "SELECT sum(w * (1 - w)) AS a, max(w * kc) AS b, sum(DISTINCT w * kc) AS c FROM x",
]


def catalog_with_bounds(
    tables: EdgeTables, name: str, bounds: dict[str, tuple[float, float]]
) -> MappingCatalog:
    info = tables.catalog.table(name)
    assert info is not None
    assert info.stats is not None
    columns = {c: ColumnStats(low, high, 0) for c, (low, high) in bounds.items()}
    stats = TableStats(info.stats.num_rows, info.stats.num_bytes, 1, columns)
    return MappingCatalog([replace(info, stats=stats)])


def is_narrow(sql: str, catalog: MappingCatalog) -> bool:
    graph = plan_query(sql, catalog, ALL_OPTIONS["single"])
    parts = (p for n in walk(graph.head.fragment) for e in n.expressions for p in walk(e))
    return any(isinstance(p, Call) and p.function == "multiply_narrow" for p in parts)


@pytest.mark.parametrize("sql", QUERIES)
def test_narrow_products_equal_spark(
    oracle: SparkSession, tables: EdgeTables, runner: InProcessRunner, sql: str
) -> None:
    catalog = catalog_with_bounds(tables, "x", {"w": (-9.99, 9.99), "kc": (0.0, 2.5)})
    assert is_narrow(sql, catalog)
    expected = ask_spark(oracle, sql)
    for options in ALL_OPTIONS.values():
        assert not differences(sql, catalog, runner, expected, options)


def test_bounds_that_lie_raise_or_do_no_harm(
    oracle: SparkSession, tables: EdgeTables, runner: InProcessRunner
) -> None:
    catalog = catalog_with_bounds(tables, "e", {"d152": (-1.0, 1.0), "d104": (-1.0, 1.0)})
    raised = 0
    for row in range(0, 320, 4):
        sql = f"SELECT id, d152 * d104 AS a FROM e WHERE id BETWEEN {row} AND {row + 3}"
        assert is_narrow(sql, catalog)
        graph = plan_query(sql, catalog, ALL_OPTIONS["single"])
        try:
            found = runner.run(graph)
        except QueryError:
            raised += 1
            continue
        assert multiset(found) == multiset(collect(oracle.sql(sql)).cast(found.schema))
    assert raised
