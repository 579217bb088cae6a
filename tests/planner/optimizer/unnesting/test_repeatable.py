"""Outer rows that may differ when they are computed a second time."""

from __future__ import annotations

import pytest

from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.planning import plan_query
from tests.planner.catalogs import table

CATALOG = MappingCatalog(
    [
        table("t", "k bigint; v bigint; d double; s string", 1000),
        table("u", "k bigint; v bigint; d double", 1000),
    ]
)
SQL = "SELECT o.c, (SELECT count(*) FROM u WHERE u.{column} > o.c) AS n FROM ({rows}) o"


def reason(rows: str, column: str = "v") -> str | None:
    return plan_query(SQL.format(rows=rows, column=column), CATALOG).fallback_reason


@pytest.mark.parametrize(
    "rows",
    [
        "SELECT k, max(v) AS c FROM t GROUP BY k",
        "SELECT k, sum(v) AS c FROM t GROUP BY k",
        "SELECT k, v AS c, sum(d) AS x FROM t GROUP BY k, v",
        "SELECT rank() OVER (PARTITION BY k ORDER BY v) AS c FROM t",
        "SELECT sum(v) OVER (PARTITION BY k ORDER BY v) AS c FROM t",
        "SELECT max(v) AS c FROM (SELECT v FROM t ORDER BY v LIMIT 7) GROUP BY v",
        "SELECT v AS c FROM t ORDER BY k LIMIT 7",
    ],
)
def test_what_gives_the_same_again_is_staged(rows: str) -> None:
    assert reason(rows) is None


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ("SELECT k, first(v) AS c FROM t GROUP BY k", "first()"),
        ("SELECT k, max_by(v, s) AS c FROM t GROUP BY k", "max_by()"),
        ("SELECT row_number() OVER (PARTITION BY k ORDER BY v) AS c FROM t", "row_number()"),
        ("SELECT lag(v) OVER (PARTITION BY k ORDER BY s) AS c FROM t", "lag()"),
        (
            "SELECT sum(v) OVER (ORDER BY k ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS c FROM t",
            "sum()",
        ),
        ("SELECT max(v) AS c FROM (SELECT k, v FROM t ORDER BY k LIMIT 7) GROUP BY k", "LIMIT"),
        ("SELECT max(v) AS c FROM (SELECT k, v FROM t LIMIT 7) GROUP BY k", "LIMIT"),
    ],
)
def test_what_may_differ_is_asked_of_spark(rows: str, why: str) -> None:
    assert why in (reason(rows) or "")


def test_a_sum_of_floats_differs_in_its_last_digit() -> None:
    assert "sum()" in (reason("SELECT k, sum(d) AS c FROM t GROUP BY k", column="d") or "")
