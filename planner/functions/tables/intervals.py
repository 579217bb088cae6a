"""Functions of intervals.

To DuckDB a day-time interval is its microseconds and a year-month interval its months, as in Spark,
so sums and comparisons are those of whole numbers. The calendar interval runs on Spark only.
"""

from __future__ import annotations

from collections.abc import Callable

from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.functions import rules as rule
from stagecoach.planner.functions import spell_times as spell
from stagecoach.planner.functions.function import Args, Function, listed
from stagecoach.planner.plan.coercion import cast_literal
from stagecoach.planner.plan.expressions import Call, Expression, Literal
from stagecoach.planner.types import (
    DATE,
    DAY_TIME_INTERVAL,
    INT,
    INTERVAL,
    INTERVAL_DAY,
    NULL,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    YEAR_MONTH_INTERVAL,
    DataType,
    decimal,
)

_PROOF = "test_functions"
_CALENDAR = "no stage of DuckDB holds calendar intervals"


def _row(
    name: str,
    arity: tuple[int, int],
    result: DataType | Callable[[Args], DataType],
    duckdb: str | Callable[[Call], str] | None,
    spark: str | Callable[[Call], str],
    *,
    coerce: Callable[[Args], Args] = rule.unchanged,
    refuse: Callable[[Call], str | None] = lambda _: None,
    reason: str = "",
) -> Function:
    given = rule.fixed(result) if isinstance(result, DataType) else result
    proof = _PROOF if duckdb is not None else ""
    return Function(name, arity, coerce, given, spark, duckdb, refuse, proof, reason=reason)


def _one_kind(args: Args) -> DataType:
    return DAY_TIME_INTERVAL if args[0].dtype.is_day_time else YEAR_MONTH_INTERVAL


def _number_type(node: Call) -> str:
    return "BIGINT" if node.dtype.is_day_time else "INTEGER"


def _rounded_division(above: str, below: str, dtype: str) -> str:
    """Division of HUGEINTs, halves away from zero."""
    size = f"((2 * abs({above}) + abs({below})) // (2 * abs({below})))"
    return f"CAST({size} * sign({above}) * sign({below}) AS {dtype})"


def _multiply(node: Call) -> str:
    number, dtype = node.args[1].dtype, _number_type(node)
    if number.is_integral:
        return f"CAST(CAST({{0}} AS HUGEINT) * CAST({{1}} AS HUGEINT) AS {dtype})"
    if number.is_floating:
        return f"CAST(round(CAST({{0}} AS DOUBLE) * CAST({{1}} AS DOUBLE)) AS {dtype})"
    unit = f"CAST({10**number.scale} AS HUGEINT)"
    unscaled = f"CAST({{1}} * CAST({10**number.scale} AS DECIMAL({number.scale + 1},0)) AS HUGEINT)"
    return _rounded_division(f"(CAST({{0}} AS HUGEINT) * {unscaled})", unit, dtype)


def _refuse_multiply(node: Call) -> str | None:
    number = node.args[1].dtype
    if number.is_decimal and number.precision > 15:
        return f"an interval times {number} is not proven"
    return None


def _divide(node: Call) -> str:
    dtype = _number_type(node)
    if node.args[1].dtype.is_integral:
        body = _rounded_division("CAST({0} AS HUGEINT)", "CAST(nullif({1}, 0) AS HUGEINT)", dtype)
    else:
        body = f"CAST(round(CAST({{0}} AS DOUBLE) / CAST({{1}} AS DOUBLE)) AS {dtype})"
    zero = f"CAST(error('INTERVAL_DIVIDED_BY_ZERO') AS {dtype})"
    return f"CASE WHEN {{1}} = 0 AND {{0}} IS NOT NULL THEN {zero} ELSE {body} END"


def _refuse_divide(node: Call) -> str | None:
    number = node.args[1].dtype
    return f"an interval divided by {number} is not proven" if number.is_decimal else None


def _field(name: str, result: DataType, text: str) -> Function:
    unit = name.removeprefix("interval_").removesuffix("s")
    return _row(name, (1, 1), result, text, f"extract({unit.upper()} FROM {{0}})")


def _day_time_parts(args: Args) -> Args:
    parts = (*args, *(Literal(INT, 0) for _ in range(4 - len(args))))
    seconds = parts[3]
    if not (seconds.dtype.is_numeric or seconds.dtype == NULL):
        raise UnsupportedSqlError(f"seconds are a {seconds.dtype}")
    return (*rule.ints(parts[:3]), cast_literal(seconds, decimal(18, 6)))


def _make_day_time(node: Call) -> str:
    del node
    whole = (
        f"CAST({{0}} AS HUGEINT) * {spell.DAY} + CAST({{1}} AS HUGEINT) * 3600000000 "
        "+ CAST({2} AS HUGEINT) * 60000000"
    )
    seconds = "CAST({3} * CAST(1000000 AS DECIMAL(19,0)) AS HUGEINT)"
    return f"CAST({whole} + {seconds} AS BIGINT)"


def _year_month_parts(args: Args) -> Args:
    return rule.ints((*args, *(Literal(INT, 0) for _ in range(2 - len(args)))))


def _moment_type(args: Args) -> DataType:
    return args[0].dtype


def _difference_args(args: Args) -> Args:
    types = (args[0].dtype, args[1].dtype)
    if not all(t.is_datetime for t in types):
        raise AnalysisError(f"expected timestamps, found {types[0]} and {types[1]}")
    dtype = TIMESTAMP_NTZ if TIMESTAMP_NTZ in types else TIMESTAMP
    return tuple(cast_literal(a, dtype) for a in args)


def _interval_args(args: Args) -> Args:
    return (args[0], *(_checked(a) for a in args[1:]))


def _checked(arg: Expression) -> Expression:
    if arg.dtype != INTERVAL:
        raise AnalysisError(f"expected an interval, found {arg.dtype}")
    return arg


def _average(node: Call) -> str:
    divided = _rounded_division(
        "CAST({0} AS HUGEINT)", "CAST(nullif({1}, 0) AS HUGEINT)", _number_type(node)
    )
    return f"CASE WHEN {{1}} = 0 THEN NULL ELSE {divided} END"


FUNCTIONS: tuple[Function, ...] = (
    _row("date_difference", (2, 2), INTERVAL_DAY, f"(CAST({{0}} - {{1}} AS BIGINT) * {spell.DAY})", "({0} - {1})"),
    _row("time_difference", (2, 2), DAY_TIME_INTERVAL, spell.difference, "({0} - {1})", coerce=_difference_args),
    _row("date_plus_days", (2, 2), DATE, f"({{0}} + CAST({{1}} // {spell.DAY} AS INTEGER))", "({0} + {1})"),
    _row("date_plus_months", (2, 2), DATE, "CAST({0} + to_months({1}) AS DATE)", "({0} + {1})"),
    _row("time_plus_duration", (2, 2), _moment_type, spell.plus_duration, "({0} + {1})"),
    _row("time_plus_months", (2, 2), _moment_type, spell.plus_months, "({0} + {1})"),
    _row("plus_interval", (2, 2), _moment_type, None, "({0} + {1})", coerce=_interval_args),
    _row("minus_interval", (2, 2), _moment_type, None, "({0} - {1})", coerce=_interval_args),
    _row("interval_multiply", (2, 2), _one_kind, _multiply, "({0} * {1})", refuse=_refuse_multiply),
    _row("interval_divide", (2, 2), _one_kind, _divide, "({0} / {1})", refuse=_refuse_divide),
    _row("average_interval", (2, 2), _one_kind, _average, "CASE WHEN {1} = 0 THEN NULL ELSE {0} / {1} END"),
    _field("interval_days", INT, f"CAST({{0}} // {spell.DAY} AS INTEGER)"),
    _field("interval_hours", TINYINT, f"CAST(({{0}} % {spell.DAY}) // 3600000000 AS TINYINT)"),
    _field("interval_minutes", TINYINT, "CAST(({0} % 3600000000) // 60000000 AS TINYINT)"),
    _field("interval_seconds", decimal(8, 6), spell.seconds_text("({0} % 60000000)")),
    _field("interval_years", INT, "CAST({0} // 12 AS INTEGER)"),
    _field("interval_months", TINYINT, "CAST({0} % 12 AS TINYINT)"),
    _row("make_dt_interval", (0, 4), DAY_TIME_INTERVAL, _make_day_time, listed("make_dt_interval({*})"), coerce=_day_time_parts),
    _row("make_ym_interval", (0, 2), YEAR_MONTH_INTERVAL, "CAST(CAST({0} AS BIGINT) * 12 + {1} AS INTEGER)", listed("make_ym_interval({*})"), coerce=_year_month_parts),
    _row("make_interval", (0, 7), INTERVAL, None, listed("make_interval({*})"), reason=_CALENDAR),
    _row("try_make_interval", (0, 7), INTERVAL, None, listed("try_make_interval({*})"), reason=_CALENDAR),
)  # fmt: skip
