"""A CTE of a query as a query of its own."""

from __future__ import annotations

import pytest

from stagecoach.planner.errors import UnsupportedSqlError
from stagecoach.planner.syntax.cte_units import unit_text, with_clause
from stagecoach.planner.syntax.parse import parse_query

SQL = """-- a comment with WITH x AS (
WITH a AS (SELECT 1 AS x), -- (
  `b c` (y) AS (SELECT x + length(')') FROM a),
  d AS (SELECT 2 AS z)
SELECT * FROM `b c`, d"""


def squeezed(text: str) -> str:
    return " ".join(text.split()).replace(" ,", ",")


def test_the_ctes_of_a_query() -> None:
    assert with_clause(SQL).names() == ("a", "b c", "d")
    assert with_clause("SELECT 1").names() == ()
    assert with_clause("WITH RECURSIVE r(n) AS (SELECT 1) SELECT * FROM r").is_recursive


@pytest.mark.parametrize(
    ("cte", "given", "expected"),
    [
        ("a", [], "WITH a AS (SELECT 1 AS x) SELECT * FROM `a`"),
        (
            "B C",
            [],
            "WITH a AS (SELECT 1 AS x), `b c` (y) AS (SELECT x + length(')') FROM a) "
            "SELECT * FROM `b c`",
        ),
        ("b c", ["A"], "WITH `b c` (y) AS (SELECT x + length(')') FROM a) SELECT * FROM `b c`"),
        ("d", ["a"], "WITH d AS (SELECT 2 AS z) SELECT * FROM `d`"),
        (None, ["b c"], "WITH a AS (SELECT 1 AS x), d AS (SELECT 2 AS z) SELECT * FROM `b c`, d"),
        (None, ["a", "b c", "d"], "SELECT * FROM `b c`, d"),
        (None, ["a", "d"], "WITH `b c` (y) AS (SELECT x + length(')') FROM a) SELECT * FROM `b c`, d"),
    ],
)  # fmt: skip
def test_units(cte: str | None, given: list[str], expected: str) -> None:
    text = unit_text(SQL, cte, given)
    assert squeezed(text) == expected
    parse_query(text)


def test_without_a_cte_the_text_stays() -> None:
    assert unit_text(SQL, None) == SQL
    assert unit_text(SQL, None, ["orders"]) == SQL


def test_what_stays_keeps_its_place() -> None:
    text = unit_text(SQL, "b c", ["a"])
    assert text.splitlines()[2].index("length") == SQL.splitlines()[2].index("length")


def test_ctes_of_subqueries_are_part_of_their_cte() -> None:
    sql = "WITH a AS (WITH b AS (SELECT 1 AS x) SELECT * FROM b), c AS (SELECT * FROM a) SELECT 1"
    assert with_clause(sql).names() == ("a", "c")
    assert "WITH b AS" in unit_text(sql, "c")


def test_wrong_names() -> None:
    with pytest.raises(UnsupportedSqlError, match=r"no CTE 'x' \(it has: a, b c, d\)"):
        unit_text(SQL, "x")
    with pytest.raises(UnsupportedSqlError, match="rows cannot be given"):
        unit_text(SQL, "a", ["a"])
