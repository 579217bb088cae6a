"""Generated SQL is large: nothing in the planner may run into Python's recursion limit."""

from __future__ import annotations

import itertools

import pytest

from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.explain.display import render_graph
from stagecoach.planner.plan.serde import dump_graph, load_graph
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from stagecoach.planner.render.fragment import render_fragment
from tests.planner.catalogs import SALES, table
from tests.planner.tpch import FORCED

WIDE = MappingCatalog([table("wide", "; ".join(f"c{i} bigint" for i in range(300)))])
QUERIES = {
    "1,000 terms of OR": "SELECT id FROM orders WHERE "
    + " OR ".join(f"(customer = {i} AND total > {i})" for i in range(1000)),
    "1,000 terms of AND": "SELECT id FROM orders WHERE "
    + " AND ".join(f"customer <> {i}" for i in range(1000)),
    "a list of 5,000 values": "SELECT id FROM orders WHERE customer IN ("
    + ", ".join(str(i) for i in range(5000))
    + ")",
    "CASE with 500 branches": "SELECT CASE "
    + " ".join(f"WHEN customer = {i} THEN {i}" for i in range(500))
    + " ELSE 0 END AS c FROM orders",
    "25 nested parentheses": "SELECT " + "(" * 25 + "id" + ")" * 25 + " AS id FROM orders",
    "a sum of 100 terms": "SELECT " + " + ".join(["id"] * 100) + " AS s FROM orders",
    "a union of 100 queries": " UNION ALL ".join(
        f"SELECT id FROM orders WHERE customer = {i}" for i in range(100)
    ),
    "30 nested subqueries": "SELECT id FROM (" * 30 + "SELECT id FROM orders" + ")" * 30,
}
WIDE_QUERIES = {
    "300 columns": "SELECT " + ", ".join(f"c{i} + 1 AS d{i}" for i in range(300)) + " FROM wide",
    "300 aggregates": "SELECT c0, "
    + ", ".join(f"sum(c{i}) AS s{i}" for i in range(1, 300))
    + " FROM wide GROUP BY c0",
}


def check(graph: StageGraph) -> None:
    assert graph.fallback_reason is None
    assert load_graph(dump_graph(graph)) == graph
    for stage in graph.stages:
        assert render_fragment(stage, stage.engine, {})
    assert render_graph(graph)
    assert len(graph.plan_hash) == 64


@pytest.mark.parametrize("sql", QUERIES.values(), ids=QUERIES)
def test_large_query_is_staged(sql: str) -> None:
    check(plan_query(sql, SALES, FORCED))


@pytest.mark.parametrize("sql", WIDE_QUERIES.values(), ids=WIDE_QUERIES)
def test_wide_query_is_staged(sql: str) -> None:
    graph = plan_query(sql, WIDE, FORCED)
    check(graph)
    assert len(graph.result) == 300


def test_twelve_way_join_is_planned_without_trying_every_order() -> None:
    tables = [table(f"t{i}", "k bigint; v bigint", 1000 * (i + 1)) for i in range(12)]
    joins = " ".join(f"JOIN t{i} ON t{i}.k = t{i - 1}.v" for i in range(1, 12))
    check(plan_query(f"SELECT t0.k FROM t0 {joins}", MappingCatalog(tables), FORCED))


@pytest.mark.parametrize("terms", [300, 1000, 3000])
def test_what_is_too_deep_is_one_spark_stage_and_no_crash(terms: int) -> None:
    graph = plan_query("SELECT " + " + ".join(["id"] * terms) + " AS s FROM orders", SALES)
    assert graph.fallback_reason == "the query is nested too deeply to be staged"
    assert load_graph(dump_graph(graph)) == graph


def test_the_text_of_nested_calls_grows_with_their_number() -> None:
    """DuckDB's spelling of `get_json_object` names its argument twenty times."""
    catalog = MappingCatalog([table("t", "s string")])
    sizes = []
    for levels in (2, 4, 6, 8):
        call = "get_json_object(" * levels + "s" + ", '$.a')" * levels
        (stage,) = plan_query(f"SELECT {call} AS v FROM t", catalog).stages
        sizes.append(len(render_fragment(stage, "duckdb", {})))
    steps = [after - before for before, after in itertools.pairwise(sizes)]
    assert max(steps) < 1.1 * min(steps)
