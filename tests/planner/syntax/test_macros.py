"""Macros are written into a query: what they mean, what is refused, and where mistakes are told."""

from __future__ import annotations

import pytest

from stagecoach.planner import plan_query
from stagecoach.planner.catalog import MappingCatalog, TableInfo
from stagecoach.planner.errors import ForbiddenSqlError, SqlError
from stagecoach.planner.syntax.macros import expand
from stagecoach.planner.syntax.macros.expand import Macros
from stagecoach.planner.syntax.macros.expansion import SourceText
from stagecoach.planner.syntax.parse import parse_query
from stagecoach.planner.types import INT, STRING, Field

FILE = """-- prices
CREATE FUNCTION net(price DECIMAL(12,2), discount DECIMAL(4,2))
  RETURNS DECIMAL(12,2)
  RETURN price * (1 - discount);  -- of one item

CREATE OR REPLACE FUNCTION half(p DECIMAL(12,2)) RETURN net(p, discount => 0.5);
CREATE FUNCTION shifted(xs ARRAY<INT>, k INT) RETURN transform(xs, x -> x + k);
CREATE FUNCTION twice(x INT) RETURN x + x;
CREATE FUNCTION one() RETURN 1;
CREATE FUNCTION later(d DATE, n INT) RETURN dateadd(DAY, n, d) > current_date;
CREATE FUNCTION city(a STRUCT<city: STRING>) RETURN upper(a.city);
CREATE FUNCTION odd(x INT) RETURN nothing_of_spark(x);

CREATE VIEW paid AS
  SELECT id, half(amount) AS amount
  FROM orders WHERE status = 'paid';
CREATE TEMPORARY VIEW best(a) AS SELECT max(amount) FROM paid
"""
MACROS = Macros.read([SourceText(FILE, "macros/p.sql")])
ORDERS = MappingCatalog(
    [
        TableInfo(
            name="orders",
            columns=(Field("id", INT), Field("amount", INT), Field("status", STRING)),
        )
    ]
)


def expanded(sql: str) -> str:
    text = MACROS.expand(sql).text
    parse_query(text)
    return text


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT one() AS a", "SELECT (1) AS a"),
        ("SELECT `ONE`() AS a", "SELECT (1) AS a"),
        ("SELECT twice(a * 2)", "SELECT ((CAST((a * 2) AS INT)) + (CAST((a * 2) AS INT)))"),
        (
            "SELECT net(discount => b, price => a)",
            "SELECT (CAST(((CAST((a) AS DECIMAL(12,2))) * (1 - (CAST((b) AS DECIMAL(4,2))))) "
            "AS DECIMAL(12,2)))",
        ),
        # A column of the query has the name of the variable, which is renamed.
        (
            "SELECT shifted(a, x) FROM t",
            "SELECT (transform((CAST((a) AS ARRAY<INT>)), x_1 -> x_1 + (CAST((x) AS INT)))) FROM t",
        ),
        (
            "SELECT shifted(a, b) FROM t",
            "SELECT (transform((CAST((a) AS ARRAY<INT>)), x -> x + (CAST((b) AS INT)))) FROM t",
        ),
        (
            "SELECT later(a, 1)",
            "SELECT (dateadd(DAY, (CAST((1) AS INT)), (CAST((a) AS DATE))) > current_date)",
        ),
        ("SELECT city(a)", "SELECT (upper((CAST((a) AS STRUCT<city: STRING>)).city))"),
        # No calls: an alias with columns, a CTE, a method, a text, a comment.
        ("SELECT x FROM t AS one(x), t one(x)", None),
        ("WITH one(a) AS (SELECT 1) SELECT a FROM one", None),
        ("SELECT t.one(1), 'one()', one /* one() */", None),
        ("SELECT 1 AS paid, 'paid' FROM t", None),
        # A CTE of the query's own hides a shared query.
        ("WITH paid AS (SELECT 1) SELECT * FROM paid", None),
    ],
)
def test_what_is_written(sql: str, expected: str | None) -> None:
    assert expanded(sql) == (expected or sql)


def test_shared_queries_come_first_and_once() -> None:
    text = expanded("WITH orders AS (SELECT 1) SELECT * FROM best, paid, orders")
    assert text.startswith("WITH `paid` AS (SELECT id, (")
    assert text.endswith(
        " AS amount   FROM orders WHERE status = 'paid'), `best`(a) AS (SELECT max(amount) FROM "
        "paid), orders AS (SELECT 1) SELECT * FROM best, paid, orders"
    )
    assert text.count("`paid` AS") == 1
    assert expanded("(SELECT * FROM best) UNION ALL SELECT 1").startswith("WITH `paid` AS (")
    assert MACROS.expand("SELECT * FROM best").macros == ("best", "half", "net", "paid")


def test_lines_and_comments_of_the_query_stay() -> None:
    sql = "/* ---\nowner: half(1)\n--- */\nSELECT net(a, -- one\n  b\n), c -- half(1)\nFROM paid"
    text = expanded(sql)
    assert text.splitlines()[:3] == sql.splitlines()[:3]
    assert text.splitlines()[5:] == [", c -- half(1)", "FROM paid"]


def test_the_plan_is_that_of_the_expanded_text() -> None:
    by_macro = MACROS.expand("SELECT sum(amount) AS s FROM paid").text
    by_hand = """
        WITH p AS (SELECT CAST(CAST(CAST(amount AS DECIMAL(12,2)) AS DECIMAL(12,2)) * (1 - CAST(
        0.5 AS DECIMAL(4,2))) AS DECIMAL(12,2)) AS amount FROM orders WHERE status = 'paid')
        SELECT sum(amount) AS s FROM p"""
    plans = [plan_query(sql, ORDERS) for sql in (by_macro, by_hand)]
    assert plans[0].plan_hash == plans[1].plan_hash
    assert plans[0].fallback_reason is None


# ---------------------------------------------------------------- places


def told(sql: str) -> tuple[int | None, int | None, str]:
    with pytest.raises(SqlError) as caught, MACROS.expand(sql).places():
        plan_query(MACROS.expand(sql).text, ORDERS)
    return caught.value.line, caught.value.column, caught.value.message


def test_a_mistake_in_the_query_keeps_its_place() -> None:
    line, column, message = told("SELECT\n  one(), half(id), wrong\nFROM paid")
    assert (line, column) == (2, 20)
    assert "`wrong`" in message or "'wrong'" in message
    line, column, message = told("SELECT half(id), half(\n  wrong) FROM paid")
    assert (line, column) == (2, 3)
    assert "macro" not in message


def test_a_mistake_in_a_macro_names_its_file_and_the_call() -> None:
    line, column, message = told("SELECT one(),\n  odd(id) FROM orders")
    assert (line, column) == (2, 3)
    assert "nothing_of_spark" in message
    assert message.endswith("(in macro 'odd', macros/p.sql:12:35)")


def test_a_mistake_in_a_shared_query_names_what_uses_it() -> None:
    macros = Macros.read(
        [
            SourceText("CREATE FUNCTION f(a INT) RETURN no_such(a)", "f.sql"),
            SourceText("CREATE VIEW v AS\n SELECT f(id) AS x FROM orders", "v.sql"),
        ]
    )
    expansion = macros.expand("SELECT *\nFROM v")
    with pytest.raises(SqlError) as caught, expansion.places():
        plan_query(expansion.text, ORDERS)
    assert (caught.value.line, caught.value.column) == (2, 6)
    assert caught.value.message.endswith("(in macro 'f', f.sql:1:33, which 'v' uses, v.sql:2:9)")


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT twice()", "macro 'twice' takes 1 argument (x INT), not 0 (line 1, column 8)"),
        ("SELECT 1,\n twice(1, 2)", "takes 1 argument (x INT), not 2 (line 2, column 2)"),
        ("SELECT twice(y => 1)", "has no argument 'y' (it has: x) (line 1, column 14)"),
        ("SELECT net(1, price => 2)", "takes 2 arguments"),
        ("SELECT net(, 2)", "argument 1 of macro 'net' is missing"),
        ("SELECT twice(1", "the call of macro 'twice' has no closing )"),
        ("SELECT twice(rand())", "'rand' gives another value each time"),
        (
            "WITH paid AS (SELECT 1) SELECT * FROM best, paid",
            "the CTE 'paid' has the name of a shared query that 'best' reads; rename it",
        ),
    ],
)
def test_wrong_uses(sql: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        MACROS.expand(sql)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        ("SELECT 1", "CREATE is missing here"),
        ("CREATE TABLE t AS SELECT 1", "VIEW is missing here"),
        ("CREATE FUNCTION f(a INT) RETURN", "the expression of macro 'f' is missing"),
        ("CREATE FUNCTION f(a INT, A INT) RETURN a", "has two arguments 'a'"),
        ("CREATE FUNCTION f(a NOTHING) RETURN a", "'NOTHING' is not a type"),
        ("CREATE FUNCTION f(a) RETURN a", "a type is missing here"),
        ("CREATE FUNCTION f(a INT) RETURN a + b", "names 'b', which is not an argument of it"),
        ("CREATE FUNCTION f(a INT) RETURN\n t.a", "names 't'"),
        ("CREATE FUNCTION f(a INT) RETURN (SELECT max(x) FROM t)", "cannot hold a query"),
        ("CREATE FUNCTION f(a INT) RETURN a IN (SELECT 1)", "cannot hold a query"),
        ("CREATE FUNCTION f(a INT) RETURN a + :p", "cannot have a parameter"),
        ("CREATE FUNCTION f(a INT) RETURN sum(a) OVER w", "cannot name a window"),
        ("CREATE FUNCTION f(a INT) RETURN a, a", "must be one expression"),
        ("CREATE FUNCTION f(a INT) RETURN 1) FROM t WHERE (a", "has a ')' without its beginning"),
        ("CREATE FUNCTION f(a INT) RETURN 1 +", "syntax error"),
        ("CREATE FUNCTION f(x INT) RETURN transform(array(1), x -> x)", "rename one"),
        ("CREATE FUNCTION f(a INT) RETURN 'x\ny'", "must be on one line"),
        ("CREATE FUNCTION f(a INT) RETURN f(a)", "macros use one another in a circle: f → f"),
        (
            "CREATE FUNCTION f(a INT) RETURN g(a); CREATE FUNCTION g(a INT) RETURN f(a)",
            "macros use one another in a circle: f → g → f",
        ),
        ("CREATE VIEW v AS SELECT * FROM w; CREATE VIEW w AS SELECT * FROM v", "v → w → v"),
        ("CREATE FUNCTION f() RETURN 1; CREATE VIEW F AS SELECT 1", "another macro is named 'F'"),
        ("CREATE VIEW v AS DELETE FROM t", "DELETE"),
        ("CREATE VIEW v AS SELECT * FROM parquet.`/etc`", "reads a path"),
        ("CREATE FUNCTION f(a STRING) RETURN reflect('java.lang.System', a)", "not allowed"),
    ],
)
def test_wrong_declarations(declaration: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        Macros.read([SourceText(declaration, "m.sql")])
    assert message in str(caught.value)
    assert str(caught.value).startswith(("m.sql: ", "[PARSE_SYNTAX_ERROR] m.sql: "))
    assert "line " in str(caught.value)


def test_an_argument_passes_the_same_walls() -> None:
    with pytest.raises(ForbiddenSqlError):
        parse_query(MACROS.expand("SELECT twice(java_method('a.B', 'c'))").text)


def test_a_text_that_grows_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expand, "LONGEST_TEXT", 10_000)
    deep = "x"
    for _ in range(12):
        deep = f"twice({deep})"
    with pytest.raises(SqlError, match="longer than 1 MiB"):
        MACROS.expand(f"SELECT {deep}")


def test_a_text_without_macros_is_not_looked_at() -> None:
    assert MACROS.expand("this is ' not SQL").text == "this is ' not SQL"
    assert not Macros()
