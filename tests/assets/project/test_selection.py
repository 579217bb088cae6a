"""Selectors: what they mean over the queries of a project, and what is wrong with them."""

from __future__ import annotations

import pytest

from stagecoach.assets.project.dependencies import QueryOrder, order_queries
from stagecoach.assets.project.front_matter import parse_front_matter
from stagecoach.assets.project.queries import Query
from stagecoach.assets.project.selection import SelectorError, parse_selection

#   orders ─▶ paid ─▶ revenue ─▶ report        (revenue makes the table sales.revenue)
#   shops ───────────▶┘
#   shops ─▶ map
QUERIES = {
    "paid": "-- tags: [finance, daily]\nSELECT * FROM orders",
    "revenue": "-- tags: {team: sales}\n-- output: {table: sums}\nSELECT * FROM paid, shops",
    "report": "-- tags: {team: board}\nSELECT * FROM sums",
    "map": "SELECT * FROM Shops",
}


@pytest.fixture(scope="module")
def order() -> QueryOrder:
    return order_queries(
        Query(name=name, sql=sql, front_matter=parse_front_matter(sql))
        for name, sql in QUERIES.items()
    )


def chosen(order: QueryOrder, select: str, exclude: str = "") -> list[str]:
    selection = parse_selection([select] if select else [], [exclude] if exclude else [])
    return sorted(q.name for q in selection.queries(order, lambda query: query.name == "paid"))


@pytest.mark.parametrize(
    ("select", "exclude", "expected"),
    [
        ("paid", "", "paid"),
        ("PAID", "", "paid"),
        ("sums", "", "revenue"),
        ("paid+", "", "paid report revenue"),
        ("+report", "", "paid report revenue"),
        ("+revenue+", "", "paid report revenue"),
        ("orders+", "", "paid report revenue"),
        ("shops+", "", "map report revenue"),
        ("shops+", "map", "report revenue"),
        ("r*", "", "report revenue"),
        ("map paid", "", "map paid"),
        ("paid+,tag:team=board", "", "report"),
        ("tag:finance", "", "paid"),
        ("tag:finance+", "", "paid report revenue"),
        ("+tag:team", "", "paid report revenue"),
        ("tag:team=sales", "", "revenue"),
        ("tag:team=s*", "", "revenue"),
        ("state:modified", "", "paid"),
        ("state:modified+", "paid", "report revenue"),
        ("state:modified,map", "", ""),
        ("", "tag:team", "map paid"),
    ],
)
def test_selectors(order: QueryOrder, select: str, exclude: str, expected: str) -> None:
    assert chosen(order, select, exclude) == expected.split()


def test_selected_queries_are_in_order(order: QueryOrder) -> None:
    selection = parse_selection(["report", "paid"])
    assert [q.name for q in selection.queries(order, lambda _: False)] == ["paid", "report"]


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("revenu", "there is no query 'revenu'; did you mean 'revenue'?"),
        ("ordrs+", "there is no query 'ordrs'; did you mean 'orders'?"),
        ("xyz*", "there is no query 'xyz*'; there are: "),
        ("orders", "'orders' is a table that no query makes; to select what reads it, write"),
        ("tag:finanse", "no query has the tag 'finanse'; did you mean 'finance'?"),
        ("tag:team=bord", "no query has the tag 'team=bord'; did you mean 'team=board'?"),
        ("tags:finance", "unknown method 'tags'; did you mean 'tag'?"),
        ("state:new", "unknown state 'new'; there are: modified"),
        ("+", "'+' is not a selector; write a name"),
        ("a++", "'a++' is not a selector"),
        ("tag:", "'tag:' is not a selector"),
        ("a,,b", "'' is not a selector"),
    ],
)
def test_mistakes(order: QueryOrder, select: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        chosen(order, select)
    assert message in str(caught.value)
