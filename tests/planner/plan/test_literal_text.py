"""Texts of values: what is read as which literal, and back."""

from __future__ import annotations

import pytest

from stagecoach.planner.plan.literal_text import parse_literal, sql_literal, to_text
from stagecoach.planner.types import parse_type


@pytest.mark.parametrize(
    ("dtype", "text", "canonical"),
    [
        ("tinyint", "-128", "-128"),
        ("bigint", " +9223372036854775807 ", "9223372036854775807"),
        ("double", "1e3", "1000.0"),
        ("double", "-Infinity", "-inf"),
        ("float", "nan", "nan"),
        ("boolean", "TRUE", "true"),
        ("string", " as it is ", " as it is "),
        ("decimal(4,2)", "-1.5", "-1.50"),
        ("decimal(38,10)", "1234567890123456789012345678.0123456789", None),
        ("date", "1995-3-5", "1995-03-05"),
        ("timestamp", "2024-07-01 12:00:00", "2024-07-01 10:00:00.000000"),
        ("timestamp", "2024-07-01T12:00:00+00:00", "2024-07-01 12:00:00.000000"),
        ("timestamp_ntz", "2024-07-01", "2024-07-01 00:00:00.000000"),
    ],
)
def test_a_text_is_read_by_its_type_and_written_again(
    dtype: str, text: str, canonical: str | None
) -> None:
    literal = parse_literal(text, parse_type(dtype), "Europe/Berlin")
    assert literal.dtype == parse_type(dtype)
    assert to_text(literal) == (canonical or text)
    # What is canonical is in UTC, and is read as what it is.
    again = parse_literal(to_text(literal), parse_type(dtype))
    assert again == literal or dtype == "float"


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        ("tinyint", "128"),
        ("int", "1_000"),
        ("int", ""),
        ("double", "1_000"),
        ("double", "1e999"),
        ("decimal(4,2)", "0.005"),
        ("decimal(4,2)", "100"),
        ("decimal(4,2)", "NaN"),
        ("decimal(4,2)", "Infinity"),
        ("boolean", "1"),
        ("date", "2024-02-30"),
        ("timestamp", "noon"),
        ("timestamp", "0001-01-01 00:00:00"),
        ("timestamp_ntz", "2024-01-31T10:00:00Z"),
        ("array<int>", "1"),
    ],
)
def test_what_does_not_fit_is_refused(dtype: str, text: str) -> None:
    with pytest.raises(ValueError, match="is not a valid "):
        parse_literal(text, parse_type(dtype), "Asia/Tokyo")


def test_sql_literals_have_their_own_types() -> None:
    found = {
        text: sql_literal(text)
        for text in ("NULL", "7", "1.50", "1e2", "DATE '2024-1-2'", "'a''b'")
    }
    assert [(str(v.dtype), v.value) for v in found.values() if v is not None] == [
        ("void", None),
        ("int", 7),
        ("decimal(3,2)", "1.50"),
        ("double", 100.0),
        ("date", "2024-01-02"),
        ("string", "a'b"),
    ]
    assert sql_literal("BUILDING") is None


@pytest.mark.parametrize("text", ["DATE '2024-02-30'", "TIMESTAMP 'noon'", "1" * 39])
def test_a_sql_literal_of_no_value_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a valid|more than 38 digits"):
        sql_literal(text)
