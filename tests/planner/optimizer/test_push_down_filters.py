"""Conditions that grow when they are pushed below projections."""

from __future__ import annotations

from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.planning import plan_query
from stagecoach.planner.tree import walk
from tests.planner.catalogs import table

CATALOG = MappingCatalog([table("t", "a double; b bigint", 1000)])


def test_a_condition_that_doubles_with_each_projection_is_left_above() -> None:
    rows = "SELECT a FROM t"
    for _ in range(60):
        rows = f"SELECT a + a AS a FROM ({rows})"
    graph = plan_query(f"SELECT a FROM ({rows}) WHERE a > 0", CATALOG)
    assert graph.fallback_reason is None


def test_a_small_condition_reaches_the_table() -> None:
    rows = "SELECT a + a AS c, b FROM (SELECT a * 2 AS a, b FROM t)"
    graph = plan_query(f"SELECT c FROM ({rows}) WHERE c > 0 AND b < 7", CATALOG)
    (scan,) = graph.stages[0].leaves
    above = next(n for n in walk(graph.head.fragment) if scan in n.children)
    assert {column.name for column in scan.columns} == {"a", "b"}
    assert "0" in str(above.expressions)
    assert "7" in str(above.expressions)
