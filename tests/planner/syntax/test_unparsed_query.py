"""Texts that the planner's parser cannot read: which of them Spark is asked about, and what is known.

That Spark refuses the texts of `WRONG` is tested in `tests/stagecoach/api/test_texts_of_spark.py`.
"""

from __future__ import annotations

import pytest

from stagecoach.planner.errors import ForbiddenSqlError, ParseError
from stagecoach.planner.syntax.parse import parse_query, read_query
from stagecoach.planner.syntax.parsed_query import ParsedQuery
from stagecoach.planner.syntax.unparsed_query import UnparsedQuery

# Syntax errors that are certain: Spark is never asked.
WRONG = (
    "SELECT k FROM t WHERE k >",
    "SELECT k FROM t WHERE k = ",
    "SELECT (k FROM t",
    "SELECT k) FROM t",
    "SELECT f(k, ) FROM t",
    "SELECT f(, k) FROM t",
    "SELECT k,, j FROM t",
    "SELECT k[] FROM t",
    "SELECT k[1 FROM t",
    "SELECT 1 + , 2",
    "SELECT k FROM t ORDER BY ,",
    "SELECT 1 ||",
    "SELCT k FROM t",
    "SELECT 1; x",
)
# Spark may read these, and does read the first ones.
READ_BY_SPARK = (
    "WITH RECURSIVE r MAX RECURSION LEVEL 9 AS (SELECT 1 AS n) SELECT n FROM r",
    "SELECT X'1F', X\"1F\"",
    "SELECT k FROM t TABLESAMPLE (1 + 1 ROWS)",
)
REFUSED_BY_SPARK = ("SELECT k j i FROM t", "SELECT k FROM t GROUP BY", "SELECT k IN () FROM t")


def unparsed(sql: str) -> UnparsedQuery:
    query = read_query(sql)
    assert isinstance(query, UnparsedQuery), query
    return query


@pytest.mark.parametrize("sql", WRONG)
def test_a_certain_syntax_error_is_final(sql: str) -> None:
    for read in (read_query, parse_query):
        with pytest.raises(ParseError, match=r"syntax error|SELCT|2 statements"):
            read(sql)


@pytest.mark.parametrize("sql", READ_BY_SPARK + REFUSED_BY_SPARK)
def test_any_other_may_be_a_query(sql: str) -> None:
    assert unparsed(sql).error.message.partition("] ")[2].startswith("syntax error")


@pytest.mark.parametrize("sql", ["SELECT k FROM t", "SELECT CAST(k AS ARRAY<INT>) FROM t"])
def test_a_query_that_is_parsed_stays_so(sql: str) -> None:
    assert isinstance(read_query(sql), ParsedQuery)


def test_names_behind_from_can_be_tables() -> None:
    query = unparsed(
        "SELECT k j i FROM a, `b c`.d x JOIN s.e USING (k) WHERE EXISTS (TABLE g) AND f.k = 'h'"
    )
    names = [name for name, _ in query.tables]
    assert set(names) >= {"a", "b c.d", "s.e", "g"}
    assert not {"f.k", "h", "i", "x"} & set(names)
    assert all(is_maybe_other for _, is_maybe_other in query.tables)
    assert query.place_of("S.E") == (1, 37)
    assert query.place_of("nothing") is None


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("SELECT k j i WHERE k = :a\n  AND j > :b OR k < :a", {"a": (1, 24), "b": (2, 11)}),
        ("SELECT v:a, v:b.c[0]::int, f(v):d, :e:f j i", {"e": (1, 36)}),
        ("SELECT ? k j WHERE i = ?", {"1": (1, 8), "2": (1, 24)}),
        ("SELECT ':a' k j -- :b", {}),
        ("SELECT 1 j i LIMIT :n", {"n": (1, 20)}),
    ],
)
def test_a_colon_before_a_name_is_a_parameter(
    sql: str, parameters: dict[str, tuple[int, int]]
) -> None:
    assert unparsed(sql).parameters == parameters


def test_order_counts_outside_of_brackets() -> None:
    assert unparsed("SELECT k j i FROM t ORDER  BY k").is_ordered
    assert not unparsed("SELECT k j i FROM (SELECT k FROM t ORDER BY k)").is_ordered
    assert not unparsed("SELECT k j 'order by' FROM t").is_ordered


def test_what_changes_is_known() -> None:
    assert unparsed("SELECT k j i FROM t").is_deterministic
    assert unparsed("SELECT 'by now' j i FROM t").is_deterministic
    assert not unparsed("SELECT rand() j i FROM t").is_deterministic
    assert not unparsed("SELECT date'today' j i FROM t").is_deterministic
    assert not unparsed("SELECT k FROM t TABLESAMPLE (1 + 1 ROWS)").is_deterministic


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k j i FROM parquet.`/etc`",
        "SELECT k j i FROM t, CSV.x",
        "SELECT k j i FROM `a/b`",
        "WITH x AS (SELECT k j i) INSERT INTO t SELECT 1",
        "WITH x AS (SELECT k j i) DELETE FROM t",
        "WITH x AS (SELECT k j i) UPDATE t SET k = 1",
        "FROM t INSERT OVERWRITE u SELECT k j i",
        "SELECT reflect('a') j i",
        "SELECT TRANSFORM(k) USING 'sh' j i FROM t",
        "SELECT IDENTIFIER('reflect')('a') j i",
    ],
)
def test_what_does_more_than_read_tables_is_refused(sql: str) -> None:
    with pytest.raises(ForbiddenSqlError) as caught:
        read_query(sql)
    assert caught.value.line == 1
