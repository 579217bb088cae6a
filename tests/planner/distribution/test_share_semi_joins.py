"""Joins that read what a semi join has left of their input."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.physical import HashJoinExec, PhysicalPlan, ScanExec
from stagecoach.planner.planning import plan_query
from stagecoach.planner.render.fragment import render_fragment
from stagecoach.planner.tree import walk
from tests.planner.catalogs import table


def catalog(brands: int = 1000, note_bytes: float = 8.0) -> MappingCatalog:
    """Sales of items, of which few are of one brand."""
    distinct = {"item": 200_000, "shop": 500, "price": 1000, "note": 1000}
    columns = "item bigint; shop bigint; price decimal(9,2); note string"
    sales = table("sales", columns, 40_000_000, distinct=distinct)
    assert sales.stats is not None
    widths = dict(sales.stats.columns)
    widths["note"] = replace(widths["note"], avg_bytes=note_bytes)
    sales = replace(sales, stats=replace(sales.stats, columns=widths))
    distinct = {"id": 200_000, "shop": 500, "brand": brands}
    items = table("items", "id bigint; shop bigint; brand string", 200_000, distinct=distinct)
    return MappingCatalog([replace(i, by_cores=True, is_local=True) for i in (sales, items)])


CATALOG = catalog()
AVERAGE = "SELECT avg(t.price) FROM sales t WHERE t.item = i.id"
ABOVE = f"""
    SELECT sum(s.price) FROM sales s JOIN items i ON s.item = i.id
    WHERE i.brand = 'b' AND s.price > ({AVERAGE})
"""


def fragment(sql: str) -> PhysicalPlan:
    graph = plan_query(sql, CATALOG, PlannerOptions())
    assert len(graph.stages) == 1
    return graph.head.fragment


def scans(sql: str) -> int:
    """How often the engine reads `sales`: equal scans are one."""
    return len({n for n in walk(fragment(sql)) if isinstance(n, ScanExec) and n.table == "sales"})


@pytest.mark.parametrize(
    "sql",
    [
        ABOVE,
        ABOVE.replace("t.item = i.id", "t.item = i.id AND t.shop = i.shop").replace(
            "s.item = i.id", "s.item = i.id AND s.shop = i.shop"
        ),
        # The outer query joins more, or asks for less.
        ABOVE.replace("= i.id\n", "= i.id JOIN items o ON s.shop = o.id\n"),
        ABOVE.replace("WHERE i.brand", "WHERE s.shop > 3 AND i.brand"),
        # The subquery joins more.
        ABOVE.replace("FROM sales t", "FROM sales t JOIN items o ON t.shop = o.id"),
    ],
)
def test_the_outer_query_reads_the_rows_of_the_subquery(sql: str) -> None:
    assert scans(sql) == 1


@pytest.mark.parametrize(
    "sql",
    [
        # Most sales have a partner, so they are not kept.
        ABOVE.replace("i.brand = 'b' AND ", ""),
        # Rows of other items count.
        ABOVE.replace("JOIN items i ON s.item = i.id", "LEFT JOIN items i ON s.item = i.id"),
        # NULL has a partner in the outer query only.
        ABOVE.replace("s.item = i.id", "s.item <=> i.id"),
        # A row without a partner might raise an error.
        ABOVE.replace("= i.id\n", "= i.id AND 10 / s.shop = i.shop\n"),
        # The outer query joins by another column.
        ABOVE.replace("s.item = i.id", "s.shop = i.id"),
    ],
)
def test_rows_that_the_semi_join_leaves_out_may_count(sql: str) -> None:
    assert scans(sql) == 2


def test_the_rows_are_computed_once() -> None:
    graph = plan_query(ABOVE, CATALOG, PlannerOptions())
    text = render_fragment(graph.head, "duckdb", {})
    assert text.startswith("WITH part_0 AS MATERIALIZED (")
    assert text.count("SEMI JOIN") == 1
    semi = [
        n for n in walk(graph.head.fragment) if isinstance(n, HashJoinExec) and n.kind == "semi"
    ]
    assert len(semi) == 2
    assert len(set(semi)) == 1


@pytest.mark.parametrize(("note_bytes", "kept"), [(8.0, True), (1000.0, False)])
def test_wide_rows_of_the_outer_query_are_not_kept(note_bytes: float, kept: bool) -> None:
    """Nor is the task given up for them: it reads the table twice."""
    sql = ABOVE.replace("sum(s.price)", "s.note")
    options = PlannerOptions(max_lost_seconds=60)
    graph = plan_query(sql, catalog(brands=10, note_bytes=note_bytes), options)
    assert len(graph.stages) == 1
    assert ("part_0" in render_fragment(graph.head, "duckdb", {})) is kept
