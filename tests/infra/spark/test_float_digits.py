"""How Spark's Java writes floating-point numbers is asked once a session."""

from __future__ import annotations

from typing import Any

import pytest

from stagecoach.infra.spark.float_digits import float_variables


class FakeSession:
    """A Spark that answers every query with one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.queries: list[str] = []

    def sql(self, query: str) -> FakeSession:
        self.queries.append(query)
        return self

    def first(self) -> tuple[str]:
        return (self.text,)


@pytest.mark.parametrize(("text", "fewest"), [("2.0E23", 1), ("1.9999999999999998E23", 0)])
def test_a_session_is_asked_once(text: str, fewest: int) -> None:
    session: Any = FakeSession(text)
    for _ in range(2):
        assert float_variables(session) == {"shortest_floats": fewest}
    assert session.queries == ["SELECT CAST(2E23D AS STRING)"]
