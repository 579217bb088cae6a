"""Filters of one task that are computed once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.physical import FilterExec, ScanExec
from stagecoach.planner.planning import plan_query
from stagecoach.planner.render.fragment import render_fragment
from stagecoach.planner.tree import walk
from tests.planner.catalogs import table

CATALOG = MappingCatalog(
    [
        replace(
            table(
                "accounts",
                "id bigint; code string; balance decimal(9,2)",
                20_000_000,
                distinct={"id": 20_000_000, "code": 1000, "balance": 100_000},
            ),
            by_cores=True,
            is_local=True,
        )
    ]
)
ABOVE = """
    SELECT id, balance FROM accounts WHERE code IN ('a', 'b') AND balance > (
        SELECT avg(balance) FROM accounts WHERE code IN ('a', 'b')
    )
"""


def shared_filters(sql: str) -> list[FilterExec]:
    """Filters of which an engine keeps the rows."""
    graph = plan_query(sql, CATALOG, PlannerOptions())
    assert len(graph.stages) == 1
    nodes = list(walk(graph.head.fragment))
    return [
        node
        for node in set(nodes)
        if isinstance(node, FilterExec)
        and isinstance(node.child, ScanExec)
        and nodes.count(node) > 1
    ]


@pytest.mark.parametrize(
    "sql",
    [
        ABOVE,
        # One of them asks for more, in any order.
        ABOVE.replace(
            "(balance) FROM accounts WHERE", "(balance) FROM accounts WHERE balance > 0 AND"
        ),
        ABOVE.replace("AND balance >", "AND id > 3 AND balance >"),
    ],
)
def test_rows_of_the_same_filter_are_kept(sql: str) -> None:
    assert len(shared_filters(sql)) == 1
    graph = plan_query(sql, CATALOG, PlannerOptions())
    text = render_fragment(graph.head, "duckdb", {})
    assert text.startswith("WITH part_0 AS MATERIALIZED (SELECT * FROM in_")
    assert text.count("IN ('a', 'b')") == 1


@pytest.mark.parametrize(
    "sql",
    [
        ABOVE.replace("'b'", "'c'", 1),
        # Each asks for what the other one does not.
        ABOVE.replace("IN ('a', 'b') AND", "IN ('a', 'b') AND id > 3 AND").replace(
            "IN ('a', 'b')\n", "IN ('a', 'b') AND id <> 7\n"
        ),
        # Most rows are left: an engine reads a scan twice as fast as it keeps them.
        ABOVE.replace("code IN ('a', 'b')", "balance <> 3"),
        # A cast that fails for a code that the other condition leaves out.
        ABOVE.replace("AND balance >", "AND CAST(code AS INT) = 3 AND balance >"),
    ],
)
def test_other_filters_stay_as_they_are(sql: str) -> None:
    assert shared_filters(sql) == []


def test_few_rows_are_not_worth_keeping() -> None:
    small = MappingCatalog(
        [replace(table("accounts", "id bigint; code string", 1000), by_cores=True)]
    )
    sql = "SELECT * FROM accounts a JOIN accounts b ON a.id = b.id WHERE a.code = 'x' AND b.code = 'x'"
    graph = plan_query(sql, small, PlannerOptions())
    assert "part_0" not in render_fragment(graph.head, "duckdb", {})
