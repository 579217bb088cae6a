"""Functions of dates, timestamps and intervals.

One table of `Function` rows; the rules are in `planner.functions.function`.
"""

from __future__ import annotations

from planner.coercion import as_date, as_string, as_timestamp_like, cast_literal
from planner.functions import duckdb as duck
from planner.functions import rules as rule
from planner.functions.function import Function
from planner.types import DATE, INT, STRING, TIMESTAMP


def _field(name: str, duckdb: str, proof: str = "date_fields") -> Function:
    return Function(
        name,
        (1, 1),
        rule.times,
        rule.fixed(INT),
        f"{name}({{0}})",
        f"CAST({duckdb} AS INTEGER)",
        proof=proof,
    )


FUNCTIONS: tuple[Function, ...] = (
    _field("year", "year(CAST({0} AS DATE))"), _field("month", "month({0})"), _field("day", "day({0})"),
    _field("quarter", "quarter({0})"), _field("dayofyear", "dayofyear({0})"), _field("weekofyear", "weekofyear({0})"),
    _field("dayofweek", "dayofweek({0}) + 1"), _field("weekday", "isodow({0}) - 1"),
    Function("hour", (1, 1), rule.times, rule.fixed(INT), "hour({0})", "CAST(hour({0}) AS INTEGER)", duck.only("timestamp", "timestamp_ntz"), "time_fields"),
    Function("minute", (1, 1), rule.times, rule.fixed(INT), "minute({0})", "CAST(minute({0}) AS INTEGER)", duck.only("timestamp", "timestamp_ntz"), "time_fields"),
    Function("second", (1, 1), rule.times, rule.fixed(INT), "second({0})", "CAST(second({0}) AS INTEGER)", duck.only("timestamp", "timestamp_ntz"), "time_fields"),
    Function("date_add", (2, 2), rule.date_int, rule.fixed(DATE), "date_add({0}, {1})", "({0} + {1})", proof="date_arithmetic"),
    Function("date_sub", (2, 2), rule.date_int, rule.fixed(DATE), "date_sub({0}, {1})", "({0} - {1})", proof="date_arithmetic"),
    Function("datediff", (2, 2), rule.dates, rule.fixed(INT), "datediff({0}, {1})", "CAST({0} - {1} AS INTEGER)", proof="date_arithmetic"),
    Function("add_months", (2, 2), rule.date_int, rule.fixed(DATE), "add_months({0}, {1})", "CAST({0} + to_months({1}) AS DATE)", proof="date_arithmetic"),
    Function("last_day", (1, 1), rule.dates, rule.fixed(DATE), "last_day({0})", "CAST(last_day({0}) AS DATE)", proof="date_arithmetic"),
    Function("trunc", (2, 2), lambda a: (as_date(a[0]), as_string(a[1])), rule.fixed(DATE), "trunc({0}, {1})", "CAST(date_trunc({1}, {0}) AS DATE)", duck.date_unit, "date_arithmetic"),
    Function("date_trunc", (2, 2), lambda a: (as_string(a[0]), cast_literal(as_timestamp_like(a[1]), TIMESTAMP)), rule.fixed(TIMESTAMP), "date_trunc({0}, {1})", None),
    Function("date_format", (2, 2), lambda a: (cast_literal(as_timestamp_like(a[0]), TIMESTAMP), as_string(a[1])), rule.fixed(STRING), "date_format({0}, {1})", None),
)  # fmt: skip
