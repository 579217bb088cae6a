"""Values as people write them."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pytest

from stagecoach.assets.query_tests.values import CellError, column_of
from stagecoach.planner.types import parse_type


def value(cell: Any, kind: str, zone: str = "UTC") -> Any:
    return column_of([cell], parse_type(kind), zone).to_pylist()[0]


@pytest.mark.parametrize(
    ("cell", "kind", "expected"),
    [
        (None, "int", None),
        ("7", "bigint", 7),
        ("-128", "tinyint", -128),
        ("1998-09-02", "string", "1998-09-02"),
        ("007", "string", "007"),
        ("", "string", ""),
        ("true", "boolean", True),
        ("0.1", "decimal(20,4)", Decimal("0.1000")),
        ("12345678901234567890.1234567890", "decimal(38,10)", Decimal("12345678901234567890.1234567890")),
        ("1e3", "double", 1000.0),
        (".inf", "double", math.inf),
        ("1998-09-02", "date", dt.date(1998, 9, 2)),
        ("1998-09-02 01:02:03.000004", "timestamp_ntz", dt.datetime(1998, 9, 2, 1, 2, 3, 4)),
        ("0x00ff", "binary", b"\x00\xff"),
        (["1", None], "array<int>", [1, None]),
        ({"a": "1.5"}, "map<string,double>", [("a", 1.5)]),
        ({"b": "x"}, "struct<a:int,b:string>", {"a": None, "b": "x"}),
    ],
)  # fmt: skip
def test_values(cell: Any, kind: str, expected: Any) -> None:
    assert value(cell, kind) == expected


def test_nan() -> None:
    assert math.isnan(value(".nan", "double"))
    assert math.isnan(value("NaN", "float"))


def test_a_timestamp_without_a_zone_is_of_the_session() -> None:
    found = value("2024-07-01 12:00:00", "timestamp", "Europe/Berlin")
    assert found == dt.datetime(2024, 7, 1, 10, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("cell", "kind", "problem"),
    [
        ("x", "int", "'x' is not a valid int"),
        ("300", "tinyint", "'300' is not a valid tinyint"),
        ("1.005", "decimal(10,2)", "'1.005' is not a valid decimal"),
        ("2024-02-30", "date", "write it as 2024-01-31"),
        ("abc", "binary", "hexadecimal"),
        (["1"], "int", "write a single value"),
        ("1", "array<int>", "must be a list"),
        ({"c": "1"}, "struct<a:int>", "'c' is no member"),
        ("1", "interval day", "by a Parquet file"),
    ],
)
def test_what_does_not_fit(cell: Any, kind: str, problem: str) -> None:
    with pytest.raises(CellError, match=problem.replace("(", r"\(")) as raised:
        column_of([None, cell], parse_type(kind), "UTC")
    assert raised.value.row == 1
