"""Which query makes which table and which reads it."""

from pathlib import Path

import pytest

from stagecoach.assets.project.dependencies import order_queries, tables_read, type_changes
from stagecoach.assets.project.front_matter import parse_front_matter
from stagecoach.assets.project.queries import ProjectError, Query
from stagecoach.planner.types import INT, STRING, Field


def query(name: str, sql: str) -> Query:
    return Query(
        name=name, sql=sql, path=Path(f"queries/{name}.sql"), front_matter=parse_front_matter(sql)
    )


def test_upstream_comes_first_whatever_the_names_are() -> None:
    order = order_queries(
        [
            query("a_report", "SELECT * FROM m_daily JOIN Region USING (r)"),
            query("m_daily", "/*\noutput: {table: m_daily}\n*/ SELECT * FROM Z_Base, orders"),
            query("z_base", "SELECT * FROM lineitem"),
        ]
    )
    assert [q.name for q in order.queries] == ["z_base", "m_daily", "a_report"]
    assert [q.name for q in order.upstream(order.queries[1])] == ["z_base"]
    assert order.maker("orders") is None
    assert order.reads["m_daily"] == ("Z_Base", "orders")


def test_a_table_has_the_name_that_its_query_gives_it() -> None:
    order = order_queries(
        [
            query("make", "/*\noutput: {table: sales}\n*/ SELECT 1 AS x"),
            query("read", "SELECT x FROM SALES"),
            query("other", "SELECT x FROM make"),
        ]
    )
    maker = order.maker("Sales")
    assert maker is not None
    assert maker.name == "make"
    assert order.upstream(order.queries[-1]) or order.upstream(order.queries[1])
    assert order.maker("make") is None


def test_circles_are_refused_with_their_path() -> None:
    with pytest.raises(ProjectError) as caught:
        order_queries(
            [
                query("a", "SELECT * FROM b"),
                query("b", "SELECT * FROM (SELECT * FROM c)"),
                query("c", "WITH x AS (SELECT * FROM a) SELECT * FROM x"),
                query("d", "SELECT * FROM a"),
            ]
        )
    text = str(caught.value)
    assert "in a circle" in text
    assert all(f"queries/{name}.sql" in text for name in "abc")
    assert "queries/d.sql" not in text


def test_a_query_must_not_read_its_own_table() -> None:
    with pytest.raises(
        ProjectError, match=r"queries/a.sql: the query reads its own output table 'a'"
    ):
        order_queries([query("a", "SELECT * FROM a")])


def test_a_query_that_cannot_be_parsed_reads_nothing() -> None:
    assert tables_read("SELECT FROM WHERE") == ()
    assert set(tables_read("WITH c AS (SELECT * FROM t) SELECT * FROM c, `u v`")) == {
        "t",
        "c",
        "u v",
    }


def test_changes_of_types_name_the_readers() -> None:
    reader = query("trend", "SELECT x FROM daily")
    was = [Field("x", INT), Field("y", STRING), Field("z", INT)]
    lines = type_changes("daily", was, [Field("X", STRING), Field("z", INT)], [reader])
    assert lines == [
        "column 'x' of table 'daily' was int and is string; queries/trend.sql read(s) it",
        "column 'y' of table 'daily' is gone; queries/trend.sql read(s) it",
    ]
