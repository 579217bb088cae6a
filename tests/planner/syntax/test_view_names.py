"""The text that Spark gets: names of views for tables whose names Spark would not find."""

from __future__ import annotations

import pytest

from stagecoach.planner.syntax.parse import spark_text


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM range(5)",
        "SELECT id, r_name FROM range(5) JOIN region ON id = r_regionkey",
        "SELECT range.id FROM range(0, 9, 2) WHERE id > 1",
        "SELECT * FROM explode(array(1, 2)), stack(2, 1, 2)",
        "SELECT * FROM region a, range(5) b, LATERAL explode(array(1))",
        "FROM IDENTIFIER('range')(0, 3)",
    ],
)
def test_functions_that_are_read_as_tables_stay(sql: str) -> None:
    assert spark_text(sql).text == sql


def test_tables_beside_functions_are_renamed() -> None:
    sql = "SELECT range.id FROM range(5), a.b, t VERSION AS OF 3"
    expected = "SELECT range.id FROM range(5), `a.b` AS `b`, `t@version=3` AS `t`"
    assert spark_text(sql).text == expected
