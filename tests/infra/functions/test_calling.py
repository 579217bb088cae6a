"""Calls over Arrow columns: NULLs, conversions, and what is not as it is declared."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from stagecoach.infra.errors import FunctionError
from stagecoach.infra.functions.calling import call_function
from stagecoach.infra.functions.errors import FunctionRaisedError, marked, problem_in
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.types import parse_type, to_arrow


def declared(arguments: list[str], returns: str, **changes: Any) -> ProjectFunction:
    types = tuple(map(parse_type, arguments))
    return ProjectFunction("f", "m:f", types, parse_type(returns), **changes)


def call(
    code: Callable[..., Any],
    arguments: list[str],
    returns: str,
    *columns: pa.Array | list[Any],
    zone: str = "Europe/Berlin",
    **changes: Any,
) -> pa.Array:
    function = declared(arguments, returns, **changes)
    arrays = [
        c if isinstance(c, pa.Array) else pa.array(c, to_arrow(t))
        for c, t in zip(columns, function.arguments, strict=True)
    ]
    found = call_function(function, code, arrays, zone)
    assert found.type == to_arrow(function.returns)
    return found


@pytest.mark.parametrize("kind", ["scalar", "pandas", "arrow"])
def test_rows_with_a_null_argument_are_left_out(kind: str) -> None:
    seen = []

    def code(a: Any, b: Any) -> Any:
        seen.append((a, b))
        return pc.add(a, b) if kind == "arrow" else a + b

    columns = ([1, None, 3, None, 5], [10, 20, None, None, 50])
    found = call(code, ["INT", "BIGINT"], "BIGINT", *columns, kind=kind, null_input="return_null")
    assert found.to_pylist() == [11, None, None, None, 55]
    assert "None" not in str(seen)
    nothing = call(
        code, ["INT", "BIGINT"], "BIGINT", [None], [1], kind=kind, null_input="return_null"
    )
    assert nothing.to_pylist() == [None]


@pytest.mark.parametrize("kind", ["scalar", "pandas", "arrow"])
def test_no_row_calls_nothing(kind: str) -> None:
    def code(*_: Any) -> None:
        raise AssertionError("called")

    assert call(code, ["INT"], "STRING", [], kind=kind).to_pylist() == []


def test_a_timestamp_is_a_wall_clock_both_ways() -> None:
    noon = datetime.datetime(2024, 7, 1, 12, tzinfo=datetime.UTC)
    aware = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=3)))
    seen: list[Any] = []

    def code(value: Any) -> Any:
        seen.append(value)
        return [value["at"].replace(hour=0), aware]

    found = call(code, ["STRUCT<at: TIMESTAMP>"], "ARRAY<TIMESTAMP>", [{"at": noon}])
    assert seen[0].at == datetime.datetime(2024, 7, 1, 14)  # in Berlin
    assert found.to_pylist() == [
        [datetime.datetime(2024, 6, 30, 22, tzinfo=datetime.UTC), aware.astimezone(datetime.UTC)]
    ]


def test_hours_that_a_time_zone_has_twice_or_never_are_taken_as_pandas_series() -> None:
    moments = [
        datetime.datetime(2024, 10, 27, 0, 30, tzinfo=datetime.UTC),
        datetime.datetime(2024, 10, 27, 1, 30, tzinfo=datetime.UTC),
        None,
    ]
    found = call(lambda s: s, ["TIMESTAMP"], "TIMESTAMP", moments, kind="pandas")
    assert found.to_pylist() == [moments[0], moments[0], None]


def test_decimals_are_rounded_half_to_even_to_the_declared_digits() -> None:
    values = iter([Decimal("1.005"), Decimal("-1.015"), Decimal("1E-30"), 7, Decimal("NaN")])
    found = call(lambda _: next(values), ["INT"], "DECIMAL(10,2)", [1, 2, 3, 4, 5])
    assert found.to_pylist() == [
        Decimal("1.00"),
        Decimal("-1.02"),
        Decimal("0.00"),
        Decimal(7),
        None,
    ]


def test_nan_of_pandas_is_null() -> None:
    found = call(lambda s: s.fillna(float("nan")), ["DOUBLE"], "DOUBLE", [1.0, None], kind="pandas")
    assert found.to_pylist() == [1.0, None]


def test_a_chunked_array_and_another_width_are_taken() -> None:
    found = call(
        lambda a: pa.chunked_array([a.cast(pa.int64())]), ["INT"], "INT", [1], kind="arrow"
    )
    assert found.to_pylist() == [1]


@pytest.mark.parametrize(("code", "kind", "returns", "text"), [
    (lambda _: "x", "scalar", "INT", "gave a value that is not int"),
    (lambda _: b"\xff", "scalar", "INT", "gave a value that is not int"),
    (lambda _: 1 << 40, "scalar", "INT", "gave a value that is not int"),
    (lambda _: Decimal("100"), "scalar", "DECIMAL(3,1)", "gave a value that is not decimal"),
    (lambda _: {"b": 1}, "scalar", "STRUCT<a: INT>", "the struct has no member 'b'"),
    (lambda _: (1, 2), "scalar", "STRUCT<a: INT>", "the struct has 1 members, not 2"),
    (lambda _: 5, "scalar", "MAP<INT, INT>", "gave a value that is not map"),
    (lambda s: s.tolist(), "pandas", "INT", "it must be a pandas.Series, not a list"),
    (lambda s: s, "pandas", "STRUCT<a: INT>", "must be a pandas.DataFrame"),
    (lambda s: pd.DataFrame({"b": s}), "pandas", "STRUCT<a: INT>", "has no column 'a'"),
    (lambda s: s.head(0), "pandas", "INT", "gave 0 values for 1 rows"),
    (lambda a: a.to_pylist(), "arrow", "INT", "gave a list; it must give a pyarrow.Array"),
    (lambda a: pa.array(["x"]), "arrow", "INT", "gave a value that is not int"),
    (lambda a: pa.array([1, 2]), "arrow", "BIGINT", "gave 2 values for 1 rows"),
    (lambda _: 1 // 0, "scalar", "INT", "raised ZeroDivisionError: integer division"),
])  # fmt: skip
def test_what_is_not_as_declared_is_said(
    code: Callable[..., Any], kind: str, returns: str, text: str
) -> None:
    with pytest.raises(FunctionRaisedError, match=text):
        call(code, ["INT"], returns, [1], kind=kind)


@pytest.mark.parametrize(("column", "dtype", "value"), [
    (pa.array([1], pa.int8()), "BIGINT", 1),
    (pa.array([1], pa.int64()), "INT", 1),
    (pa.array([1], pa.int64()), "STRING", "1"),
    (pa.array([1.5], pa.float32()), "DOUBLE", 1.5),
    (pa.array([Decimal("1.5")]), "DECIMAL(10,2)", Decimal("1.50")),
    (pa.array([datetime.date(2024, 1, 1)]), "STRING", "2024-01-01"),
    (pa.array(["a"], pa.large_string()), "STRING", "a"),
    (pa.nulls(1), "DATE", None),
])  # fmt: skip
def test_arguments_of_a_text_that_spark_runs_are_cast_where_that_is_exact(
    column: pa.Array, dtype: str, value: object
) -> None:
    assert call(lambda x: x, [dtype], dtype, column).to_pylist() == [value]


@pytest.mark.parametrize(("column", "dtype"), [
    (pa.array([1.5]), "STRING"),
    (pa.array([1.5]), "INT"),
    (pa.array(["1"]), "INT"),
    (pa.array([True]), "INT"),
    (pa.array([1], pa.int64()), "DOUBLE"),
    (pa.array([1 << 40]), "INT"),
    (pa.array([Decimal("1.55")]), "DECIMAL(10,1)"),
    (pa.array([1], pa.duration("us")), "BIGINT"),
])  # fmt: skip
def test_other_arguments_are_refused(column: pa.Array, dtype: str) -> None:
    with pytest.raises(FunctionRaisedError, match="as argument 1, not"):
        call(lambda x: x, [dtype], dtype, column)


def test_a_time_zone_that_python_lacks_matters_only_to_timestamps() -> None:
    assert call(lambda x: x, ["INT"], "INT", [1], zone="+02:00").to_pylist() == [1]
    with pytest.raises(FunctionRaisedError, match="which '\\+02:00' is not"):
        call(lambda x: x, ["TIMESTAMP"], "INT", [None], zone="+02:00")


def test_an_error_is_found_again_in_a_text_of_spark() -> None:
    try:
        call(lambda _: 1 // 0, ["INT"], "INT", [1])
    except FunctionRaisedError as error:
        text = f"Traceback\nRuntimeError: {marked(error)}\n\n  at org.apache.spark"
    found = problem_in(text)
    assert found is not None
    assert found.unusable is None
    assert found.text.startswith("function 'f' (m:f) raised ZeroDivisionError")
    assert 'calling.py"' not in found.text.replace("test_calling.py", "")
    assert "in <lambda>" in found.text
    unusable = problem_in(marked(FunctionError("f", "m:f", "no")))
    assert unusable is not None
    assert unusable.unusable == ("f", "m:f", "no")
    assert problem_in(text[:60]) is None
