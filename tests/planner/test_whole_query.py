"""Queries that Spark runs as they stand: their tables, and whether a later run may reuse them."""

from __future__ import annotations

import pytest

from stagecoach.planner import plan_query
from stagecoach.planner.errors import AnalysisError
from tests.planner.catalogs import SALES


@pytest.mark.parametrize(
    ("sql", "deterministic"),
    [
        ("SELECT id, rand() FROM orders", False),
        ("SELECT uuid() FROM orders", False),
        ("SELECT max(current_timestamp()), collate(id, 'UNICODE') FROM orders", False),
        ("SELECT * FROM orders TABLESAMPLE (10 PERCENT)", False),
        ("SELECT collate(id, 'UNICODE') FROM orders", True),
        ("SELECT collate(id, 'UNICODE') FROM orders WHERE status = 'today'", True),
        ("SELECT collate(id, 'UNICODE'), DATE'today' FROM orders", False),
        ("SELECT collate(id, 'UNICODE') FROM orders WHERE day < date 'Yesterday '", False),
        ("SELECT TIMESTAMP'now' AS n FROM orders", False),
        ('SELECT timestamp_ntz" NOW UTC" AS n FROM orders', False),
        ("SELECT localtime() AS n FROM orders", False),
        ("SELECT collate(id, 'UNICODE'), localtime FROM orders", False),
        ("SELECT collate(id, 'UNICODE'), USER FROM orders", False),
        ("SELECT collate(id, 'UNICODE'), o.user FROM orders o", True),
    ],
)
def test_only_what_gives_the_same_in_every_run_is_deterministic(
    sql: str, deterministic: bool
) -> None:
    graph = plan_query(sql, SALES)
    assert graph.fallback_reason
    assert graph.head.deterministic is deterministic


def test_a_cte_may_hide_the_table_that_it_reads() -> None:
    sql = "WITH orders AS (SELECT * FROM orders) SELECT collate(id, 'UNICODE') FROM orders"
    assert plan_query(sql, SALES).head.tables == ("orders",)


def test_a_table_that_is_in_no_catalog_is_named() -> None:
    with pytest.raises(AnalysisError, match="'nothing' is not in the catalog"):
        plan_query("SELECT collate(id, 'UNICODE') FROM nothing", SALES)


def test_who_runs_a_query_is_asked_anew_in_every_run() -> None:
    for name in ("current_user()", "user()", "session_user"):
        graph = plan_query(f"SELECT id, {name} AS who FROM orders", SALES)
        assert not graph.fallback_reason
        assert not graph.stages[0].deterministic
