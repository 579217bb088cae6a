"""Keywords that are names, names in IDENTIFIER, and adjacent texts are parsed as Spark reads them."""

from __future__ import annotations

import re

import pytest
from sqlglot import exp

from stagecoach.planner.errors import ForbiddenSqlError, ParseError
from stagecoach.planner.syntax.parse import parse_query

SAME = {
    "SELECT all, distinct FROM t": "SELECT `all`, `distinct` FROM t",
    "SELECT DISTINCT from FROM t": "SELECT DISTINCT `from` FROM t",
    "SELECT ALL x FROM t WHERE where = 1": "SELECT ALL x FROM t WHERE `where` = 1",
    "SELECT y AS select, select + 1, with + 1 FROM t": "SELECT y AS `select`, `select` + 1, `with` + 1 FROM t",
    "SELECT 1 AS select, 2 when FROM t": "SELECT 1 AS `select`, 2 AS `when` FROM t",
    "SELECT s.in AS a, s.in FROM t WHERE s.in AND (s.in = 1)": "SELECT s.`in` AS a, s.`in` FROM t WHERE s.`in` AND (s.`in` = 1)",
    "SELECT case.x FROM t AS case": "SELECT `case`.x FROM t AS `case`",
    "SELECT CASE when WHEN 1 THEN then ELSE else END FROM t": "SELECT CASE `when` WHEN 1 THEN `then` ELSE `else` END FROM t",
    "WITH union AS (SELECT 1) SELECT * FROM union UNION ALL FROM t": "WITH `union` AS (SELECT 1) SELECT * FROM `union` UNION ALL FROM t",
    "SELECT a NOT LIKE 'x', NOT a FROM t": "SELECT `a` NOT LIKE 'x', NOT a FROM t",
    "SELECT a IS NOT DISTINCT FROM b FROM t": "SELECT `a` IS NOT DISTINCT FROM b FROM t",
    "SELECT sum(a) FILTER (WHERE b) OVER (RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t": "SELECT sum(`a`) FILTER (WHERE b) OVER (RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
    "SELECT /*+ COALESCE(1) */ * FROM (SELECT 1)": "SELECT /*+ COALESCE(1) */ * FROM (SELECT 1)",
    "FROM t |> LEFT JOIN u ON true |> SELECT select": "FROM t |> LEFT JOIN u ON true |> SELECT `select`",
    "SELECT INTERVAL '1' DAY, interval + 1 FROM t": "SELECT INTERVAL '1' DAY, `interval` + 1 FROM t",
    "SELECT CAST(a::ARRAY<INT> AS STRING) FROM t": "SELECT CAST((a::ARRAY<INT>) AS STRING) FROM t",
    "SELECT CASE WHEN a THEN b::MAP<INT, INT> END FROM t": "SELECT CASE WHEN a THEN (b::MAP<INT, INT>) END FROM t",
    "SELECT a::ARRAY<ARRAY<STRUCT<when: INT, map: INT>>> FROM t": "SELECT a::ARRAY<ARRAY<STRUCT<`when`: INT, `map`: INT> > > FROM t",
    "SELECT array < 1 AND when > 2, a >>> 3 FROM t": "SELECT `array` < 1 AND `when` > 2, a >>> 3 FROM t",
    "SELECT 'a' 'b' \"c\"": "SELECT 'abc'",
    "SELECT IDENTIFIER('a') AS IDENTIFIER('b') FROM IDENTIFIER('t')": "SELECT `a` AS `b` FROM `t`",
}  # fmt: skip


def _text(sql: str) -> str:
    tree = parse_query(sql).tree.transform(lambda n: n.this if isinstance(n, exp.Paren) else n)
    return re.sub(r"quoted=(True|False)|'", "", repr(tree))


@pytest.mark.parametrize("sql", SAME)
def test_words_are_names_as_in_backticks(sql: str) -> None:
    assert _text(sql) == _text(SAME[sql])


@pytest.mark.parametrize("sql", ["SELECT (a FROM t", "SELECT a FROM t WHERE a =", "SELECT a b c FROM t"])  # fmt: skip
def test_what_is_no_query_stays_an_error(sql: str) -> None:
    with pytest.raises(ParseError):
        parse_query(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "FROM t INSERT INTO u SELECT a",
        "SELECT a INTO x FROM t",
        "UNCACHE TABLE t",
        "SELECT * FROM IDENTIFIER('parquet').`/x`",
        "FROM t SELECT TRANSFORM(a) USING 'x' 'y'",
        "SELECT IDENTIFIER('reflect')('a')",
    ],
)
def test_words_that_are_names_open_no_door(sql: str) -> None:
    with pytest.raises(ForbiddenSqlError):
        parse_query(sql)
