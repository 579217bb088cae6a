"""Parameter values: literals, declared types, and everything that does not fit."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from stagecoach.api.parameters import (
    parse_assignments,
    parse_value,
    resolve_parameters,
)
from stagecoach.planner.errors import ParameterError
from stagecoach.planner.plan.given_parameters import check_known
from stagecoach.terminal.errors import Source, describe_error


def test_assignments_keep_equal_signs_of_the_value() -> None:
    assert parse_assignments(["a=1", "b=x=y", ":c="]) == {"a": "1", "b": "x=y", "c": ""}


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("a", r"--param a has no '='"),
        ("=1", r"'' is not a valid parameter name"),
        ("a b=1", r"'a b' is not a valid parameter name"),
    ],
)
def test_assignment_that_is_none(assignment: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        parse_assignments([assignment])


def test_assignment_given_twice() -> None:
    with pytest.raises(ParameterError, match="parameter 'a' is given twice"):
        parse_assignments(["a=1", "a=2"])


@pytest.mark.parametrize(
    ("text", "dtype", "canonical"),
    [
        ("42", "int", "42"),
        ("-7", "int", "-7"),
        ("2147483648", "bigint", "2147483648"),
        ("9223372036854775808", "decimal(19,0)", "9223372036854775808"),
        ("0.05", "decimal(2,2)", "0.05"),
        ("-12.50", "decimal(4,2)", "-12.50"),
        ("1e3", "double", "1000.0"),
        ("true", "boolean", "true"),
        ("FALSE", "boolean", "false"),
        ("DATE '1995-03-15'", "date", "1995-03-15"),
        ("date'1995-3-5'", "date", "1995-03-05"),
        ("TIMESTAMP '1995-03-15 10:00:00'", "timestamp", "1995-03-15 10:00:00.000000"),
        ("TIMESTAMP '1995-03-15 10:00:00+02:00'", "timestamp", "1995-03-15 08:00:00.000000"),
        ("'42'", "string", "42"),
        ("'it''s'", "string", "it's"),
        ("BUILDING", "string", "BUILDING"),
        ("1995-03-15", "string", "1995-03-15"),
        ("", "string", ""),
        ("'; DROP TABLE t; --", "string", "'; DROP TABLE t; --"),
    ],
)
def test_undeclared_values_are_sql_literals_or_text(text: str, dtype: str, canonical: str) -> None:
    value = parse_value("p", text)
    assert (str(value.dtype), value.text) == (dtype, canonical)


@pytest.mark.parametrize(
    ("declared", "text", "canonical"),
    [
        ("date", "1995-03-15", "1995-03-15"),
        ("date", "DATE '1995-03-15'", "1995-03-15"),
        ("date", "'1995-03-15'", "1995-03-15"),
        ("int", "7", "7"),
        ("bigint", "7", "7"),
        ("decimal(15,2)", "7", "7.00"),
        ("decimal(15,2)", "0.5", "0.50"),
        ("double", "7", "7.0"),
        ("string", "42", "42"),
        ("string", "'42'", "42"),
        ("string", "DATE '1995-03-15'", "DATE '1995-03-15'"),
        ("boolean", "TRUE", "true"),
        ("timestamp", "1995-03-15", "1995-03-15 00:00:00.000000"),
        ("timestamp", "DATE '1995-03-15'", "1995-03-15 00:00:00.000000"),
        ("timestamp_ntz", "1995-03-15 10:00:00", "1995-03-15 10:00:00.000000"),
    ],
)
def test_declared_type_decides(declared: str, text: str, canonical: str) -> None:
    value = parse_value("p", text, declared)
    assert (str(value.dtype), value.text) == (declared, canonical)


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ("date", "yesterday"),
        ("date", "1995-02-30"),
        ("date", "42"),
        ("int", "4.5"),
        ("int", "2147483648"),
        ("int", "four"),
        ("int", "true"),
        ("int", "DATE '1995-03-15'"),
        ("decimal(4,2)", "123.45"),
        ("decimal(4,2)", "0.555"),
        ("decimal(4,2)", "NaN"),
        ("boolean", "1"),
        ("timestamp_ntz", "1995-03-15 10:00:00+02:00"),
        ("double", "1_000"),
    ],
)
def test_value_of_the_wrong_type(declared: str, text: str) -> None:
    with pytest.raises(ParameterError, match=r"parameter 'p' must be of type .*, not "):
        parse_value("p", text, declared)


def test_declared_type_that_does_not_exist() -> None:
    with pytest.raises(ParameterError, match="parameter 'p': type 'datum' is not supported"):
        parse_value("p", "1", "datum")


def test_time_zone_of_timestamps() -> None:
    value = parse_value("p", "2024-07-01 12:00:00", "timestamp", "Europe/Berlin")
    assert value.text == "2024-07-01 10:00:00.000000"


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (True, "boolean", "true"),
        (3, "int", "3"),
        (0.5, "double", "0.5"),
        (Decimal("1.50"), "decimal(3,2)", "1.50"),
        (datetime.date(1995, 3, 15), "date", "1995-03-15"),
        (datetime.datetime(1995, 3, 15, 1), "timestamp", "1995-03-15 01:00:00.000000"),
        (None, "void", None),
    ],
)
def test_python_values(value: object, dtype: str, text: str | None) -> None:
    found = parse_value("p", value)  # type: ignore[arg-type]  # several types
    assert (str(found.dtype), found.text) == (dtype, text)


def test_python_value_of_another_class() -> None:
    with pytest.raises(ParameterError, match="parameter 'p' is a set"):
        parse_value("p", {1})  # type: ignore[arg-type]  # the point


def test_missing_value_and_default() -> None:
    values = resolve_parameters(["a"], {}, types={"a": "date"}, defaults={"a": "1995-03-15"})
    assert values["a"].text == "1995-03-15"
    with pytest.raises(ParameterError, match="parameter 'b' has no value; give it with --param b="):
        resolve_parameters(["b"], {}, defaults={"b": None})


def test_a_window_is_given_by_both_of_its_bounds() -> None:
    with pytest.raises(ParameterError, match="give both bounds: --param partition_start=… --param"):
        resolve_parameters(["partition_start"], {}, types={"partition_start": "date"})


def test_unknown_parameter_names_the_nearest() -> None:
    with pytest.raises(ParameterError, match=r"unknown parameter 'dat'; did you mean 'date'\?"):
        check_known({"dat": "1"}, {"date", "size"})
    with pytest.raises(ParameterError, match=r"\(the SQL has: none\)"):
        check_known({"x": "1"}, set())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "query 'late': parameter 'day' has no value; give it with --param day=…"),
        ({"day": "soon"}, "query 'late': parameter 'day' must be of type date, not 'soon'"),
    ],
)
def test_an_error_names_the_query_and_the_place_of_its_use(
    given: dict[str, str], message: str
) -> None:
    sql = "SELECT *\nFROM orders\nWHERE id > 1 AND\n  o_orderdate < :day"
    with pytest.raises(ParameterError) as caught:
        resolve_parameters(["day"], given, types={"day": "date"}, sql=sql, query="late")
    assert caught.value.message.startswith(message)
    assert (caught.value.line, caught.value.column) == (4, 17)
    shown = describe_error(caught.value, Source("late.sql", sql)).splitlines()
    assert shown[1:] == [
        "  --> late.sql:4:17",
        "   |",
        " 4 |   o_orderdate < :day",
        "   |                 ^",
    ]
