"""Which parameters the names and types of columns may follow from."""

from __future__ import annotations

import pytest

from stagecoach.planner.syntax.parse import read_query
from stagecoach.planner.syntax.unparsed_query import UnparsedQuery

SHAPING = [
    "SELECT id + :n FROM t",
    "SELECT round(price, :n) AS p FROM t",
    "WITH c AS (SELECT id + :n FROM t) SELECT * FROM c WHERE id > 1",
    "SELECT count(*) FILTER (WHERE id > :n) FROM t",
    "SELECT sum(id) OVER (ORDER BY id + :n) FROM t",
    "SELECT * FROM (SELECT k, id FROM t) PIVOT (sum(id) FOR k IN (:n))",
    "SELECT id + :n, count(*) FROM t WHERE id > :n GROUP BY id + :n",
]

NOT_SHAPING = [
    "SELECT id FROM t WHERE id > :n",
    "SELECT id FROM t WHERE id IN (SELECT round(x, :n) FROM u)",
    "SELECT t.id FROM t JOIN u ON t.id = u.id + :n",
    "SELECT id, count(*) FROM t GROUP BY id HAVING count(*) > :n ORDER BY id + :n LIMIT :n",
    "SELECT (SELECT max(x) FROM u WHERE x < :n) FROM t",
    "SELECT id FROM t QUALIFY row_number() OVER (ORDER BY id) < :n",
]


@pytest.mark.parametrize("sql", SHAPING)
def test_it_shapes_the_columns(sql: str) -> None:
    assert read_query(sql).shaping_parameters == {"n"}


@pytest.mark.parametrize("sql", NOT_SHAPING)
def test_it_does_not(sql: str) -> None:
    assert read_query(sql).shaping_parameters == set()


def test_any_may_in_a_text_that_only_spark_reads() -> None:
    query = read_query("SELECT v:a[:n] FROM t WHERE id > :m AND v:b::int > 0")
    if not isinstance(query, UnparsedQuery):
        pytest.fail("the planner reads this text by now: take another one")
    assert query.shaping_parameters == {"n", "m"}
