"""Functions of dates and timestamps.

DuckDB's spellings are in `functions.spell_times`.
"""

from __future__ import annotations

from collections.abc import Callable

from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.functions import rules as rule
from stagecoach.planner.functions import spell_times as spell
from stagecoach.planner.functions.date_patterns import read, written
from stagecoach.planner.functions.function import Args, Function, listed
from stagecoach.planner.plan.coercion import (
    as_bigint,
    as_date,
    as_double,
    as_int,
    as_string,
    cast_literal,
)
from stagecoach.planner.plan.expressions import Call, Expression, Literal
from stagecoach.planner.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    decimal,
)

SECONDS = decimal(8, 6)
DEFAULT_PATTERN = "yyyy-MM-dd HH:mm:ss"


def as_instant(expr: Expression) -> Expression:
    """The operand of a function of TIMESTAMP."""
    if expr.dtype.is_datetime or expr.dtype in (STRING, NULL):
        return cast_literal(expr, TIMESTAMP)
    raise AnalysisError(f"expected a timestamp, found {expr.dtype}")


def as_moment(expr: Expression) -> Expression:
    """The operand of a function of both kinds of timestamps."""
    return expr if expr.dtype == TIMESTAMP_NTZ else as_instant(expr)


def as_local(expr: Expression) -> Expression:
    """The operand of a function of TIMESTAMP_NTZ."""
    as_instant(expr)
    return cast_literal(expr, TIMESTAMP_NTZ)


def _as_bigint(expr: Expression) -> Expression:
    if expr.dtype.is_integral or expr.dtype == NULL:
        return cast_literal(expr, BIGINT)
    raise UnsupportedSqlError(f"{expr.dtype} is implicitly read as a bigint")


def _strict_date(args: Args) -> Args:
    if args[0].dtype not in (DATE, NULL):
        raise AnalysisError(f"expected a date, found {args[0].dtype}")
    return (cast_literal(args[0], DATE),)


def _strict_moment(args: Args) -> Args:
    if args[0].dtype == NULL:
        return (cast_literal(args[0], TIMESTAMP),)
    if args[0].dtype not in (TIMESTAMP, TIMESTAMP_NTZ):
        raise AnalysisError(f"expected a timestamp, found {args[0].dtype}")
    return args


def _as_seconds(expr: Expression) -> Expression:
    if not (expr.dtype.is_numeric or expr.dtype == NULL):
        raise UnsupportedSqlError(f"seconds are a {expr.dtype}")
    return cast_literal(expr, decimal(16, 6))


def _each(*rules: Callable[[Expression], Expression]) -> Callable[[Args], Args]:
    """Coerces every argument by its own rule; the last rule serves all that follow."""
    return lambda args: tuple(rules[min(i, len(rules) - 1)](a) for i, a in enumerate(args))


def _clocked(args: Args) -> Args:
    if len(args) == 2:
        raise UnsupportedSqlError("a second argument, which Spark passes over")
    return (as_moment(args[0]),)


def _word(expr: Expression) -> Expression:
    return as_string(expr)


def _field(name: str, duckdb: str, spark: str = "") -> Function:
    return Function(
        name, (1, 1), rule.dates, rule.fixed(INT), spark or f"{name}({{0}})", f"CAST({duckdb} AS INTEGER)",
        proof="test_functions",
    )  # fmt: skip


def _row(
    name: str,
    coerce: Callable[[Args], Args],
    result: DataType | Callable[[Args], DataType],
    duckdb: str | Callable[[Call], str] | None,
    *,
    arity: tuple[int, int] = (1, 1),
    refuse: Callable[[Call], str | None] = lambda _: None,
    spark: str | Callable[[Call], str] | None = None,
) -> Function:
    given = rule.fixed(result) if isinstance(result, DataType) else result
    return Function(
        name, arity, coerce, given, spark or listed(f"{name}({{*}})"), duckdb, refuse,
        "test_functions" if duckdb is not None else "",
    )  # fmt: skip


# ---------------------------------------------------------------- patterns


def _literal_text(node: Call, slot: int) -> str | None:
    arg = node.args[slot]
    return arg.value if isinstance(arg, Literal) and isinstance(arg.value, str) else None


def _format(node: Call) -> str:
    text = written(_literal_text(node, 1) or "", spell.local("{0}"))
    return text or "CAST(NULL AS VARCHAR)"


def _refuse_format(node: Call) -> str | None:
    pattern = _literal_text(node, 1)
    if pattern is None:
        return "the pattern is not a literal"
    return None if written(pattern, "{0}") else f"the pattern '{pattern}' is not proven"


def _from_unixtime(node: Call) -> str:
    seconds = spell.raised(
        "abs(CAST({0} AS HUGEINT)) > 9000000000000", "SECONDS_OUT_OF_RANGE", "TIMESTAMPTZ",
        "make_timestamptz({0} * 1000000)",
    )  # fmt: skip
    return written(_literal_text(node, 1) or "", spell.local(f"({seconds})")) or ""


def _read(kind: str, safe: bool) -> Callable[[Call], str]:
    """A rule that spells reading a text by a pattern: as `date`, `timestamp` or `timestamp_ntz`."""
    name = {"date": "DATE", "timestamp": "TIMESTAMPTZ", "seconds": "BIGINT"}.get(kind, "TIMESTAMP")

    def spelled(node: Call) -> str:
        found = read(_literal_text(node, 1) or "", "{0}")
        if found is None:
            return ""
        when = f"TRY({found.when})" if safe else found.when
        value = {
            # A day that the zone skips is the next one.
            "date": f"CAST(CAST({when} AS TIMESTAMPTZ) AS DATE)",
            "timestamp": spell.zoned(when),
            "seconds": f"(epoch_us({spell.zoned(when)}) // 1000000)",
        }.get(kind, when)
        nothing = f"WHEN NOT {found.perhaps} OR ({found.shape} AND NOT ({found.bounds})) THEN NULL "
        return (
            f"CASE WHEN {{0}} IS NULL THEN NULL {nothing if safe else ''}"
            f"WHEN {found.shape} AND {found.year} > 0 AND {found.bounds} THEN {value} "
            f"ELSE CAST(error('TEXT_NOT_OF_PATTERN') AS {name}) END"
        )

    return spelled


def _refuse_read(node: Call) -> str | None:
    pattern = _literal_text(node, 1)
    if pattern is None:
        return "the pattern is not a literal"
    return None if read(pattern, "{0}") else f"reading the pattern '{pattern}' is not proven"


def _reader(name: str, spark: str, kind: str, dtype: DataType, *, safe: bool = False) -> Function:
    return _row(
        name, _each(_word), dtype, _read(kind, safe), arity=(2, 2), refuse=_refuse_read,
        spark=f"{spark}({{0}}, {{1}})",
    )  # fmt: skip


# ---------------------------------------------------------------- units


def _moment_type(args: Args) -> DataType:
    return args[-1].dtype


def _unit_args(args: Args) -> Args:
    return (args[0], as_bigint(args[1]), as_moment(args[2]))


def _diff_args(args: Args) -> Args:
    return (args[0], *(as_instant(a) for a in args[1:]))


def _unit_text(name: str) -> Callable[[Call], str]:
    # The unit is a word of Spark's grammar there, not a text.
    return lambda node: f"{name}({spell.literal_word(node, 0)}, {{1}}, {{2}})"


# ---------------------------------------------------------------- making moments

_SIX = _each(as_int, as_int, as_int, as_int, as_int, _as_seconds, _word)


def _months_between(args: Args) -> Args:
    keep = args[2] if len(args) == 3 else Literal(BOOLEAN, True)
    return (as_instant(args[0]), as_instant(args[1]), *rule.booleans((keep,)))


def _refuse_months_between(node: Call) -> str | None:
    return None if isinstance(node.args[2], Literal) else "the rounding is not a literal"


def _number_args(args: Args) -> Args:
    if not (args[0].dtype.is_numeric or args[0].dtype == NULL):
        raise AnalysisError(f"expected a number, found {args[0].dtype}")
    return args if args[0].dtype != NULL else (as_double(args[0]),)


FUNCTIONS: tuple[Function, ...] = (
    _field("year", "year({0})"), _field("month", "month({0})"), _field("day", "day({0})"),
    _field("quarter", "quarter({0})"), _field("dayofyear", "dayofyear({0})"), _field("weekofyear", "weekofyear({0})"),
    _field("dayofweek", "dayofweek({0}) + 1"), _field("weekday", "isodow({0}) - 1"),
    _field("yearofweek", "isoyear({0})", "extract(YEAROFWEEK FROM {0})"),
    _row("unix_date", _strict_date, INT, f"CAST({spell.date_number('{0}')} AS INTEGER)"),
    _row("hour", _clocked, INT, spell.clock_field("hour"), arity=(1, 2)),
    _row("minute", _clocked, INT, spell.clock_field("minute"), arity=(1, 2)),
    _row("second", _clocked, INT, spell.clock_field("second"), arity=(1, 2)),
    _row("second_with_fraction", _each(as_moment), SECONDS, spell.seconds_with_fraction, spark="extract(SECOND FROM {0})"),
    _row("dayname", rule.dates, STRING, "left(dayname({0}), 3)"),
    _row("monthname", rule.dates, STRING, "left(monthname({0}), 3)"),
    _row("date_add", rule.date_int, DATE, "({0} + {1})", arity=(2, 2)),
    _row("date_sub", rule.date_int, DATE, "({0} - {1})", arity=(2, 2)),
    _row("datediff", rule.dates, INT, "CAST({0} - {1} AS INTEGER)", arity=(2, 2)),
    _row("add_months", rule.date_int, DATE, "CAST({0} + to_months({1}) AS DATE)", arity=(2, 2)),
    _row("last_day", rule.dates, DATE, "CAST(last_day({0}) AS DATE)"),
    _row("next_day", _each(as_date, _word), DATE, spell.next_day, arity=(2, 2), refuse=spell.refuse_next_day),
    _row("trunc", _each(as_date, _word), DATE, spell.trunc, arity=(2, 2), refuse=spell.refuse_unit(1)),
    _row("date_trunc", _each(_word, as_instant), TIMESTAMP, spell.date_trunc, arity=(2, 2), refuse=spell.refuse_unit(0)),
    _row("months_between", _months_between, DOUBLE, spell.months_between, arity=(2, 3), refuse=_refuse_months_between),
    _row("timestampadd", _unit_args, _moment_type, spell.add_units, arity=(3, 3), spark=_unit_text("timestampadd")),
    _row("timestampdiff", _diff_args, BIGINT, spell.diff_units, arity=(3, 3), spark=_unit_text("timestampdiff")),
    _row("date_from_unix_date", _each(as_int), DATE, f"({spell.EPOCH} + {{0}})"),
    _row("unix_seconds", _strict_moment, BIGINT, spell.floor_div("epoch_us({0})", 1_000_000)),
    _row("seconds_since_1970", _each(as_instant), BIGINT, "(epoch_us({0}) // 1000000)", spark="to_unix_timestamp({0})"),
    _row("unix_millis", _strict_moment, BIGINT, spell.floor_div("epoch_us({0})", 1_000)),
    _row("unix_micros", _strict_moment, BIGINT, "epoch_us({0})"),
    _row("timestamp_seconds", _number_args, TIMESTAMP, spell.from_seconds, refuse=spell.refuse_seconds),
    _row("timestamp_millis", _each(_as_bigint), TIMESTAMP, "make_timestamptz({0} * 1000)"),
    _row("timestamp_micros", _each(_as_bigint), TIMESTAMP, "make_timestamptz({0})"),
    _row("make_date", _each(as_int), DATE, spell.make_date, arity=(3, 3)),
    _row("make_timestamp_ntz", _SIX, TIMESTAMP_NTZ, spell.make_local, arity=(6, 6)),
    _row("make_timestamp_ltz", _SIX, TIMESTAMP, spell.make_instant, arity=(6, 7), refuse=spell.refuse_zones(6)),
    _row("try_make_timestamp_ntz", _SIX, TIMESTAMP_NTZ, spell.try_make_local, arity=(6, 6)),
    _row("try_make_timestamp_ltz", _SIX, TIMESTAMP, spell.try_make_instant, arity=(6, 7), refuse=spell.refuse_zones(6)),
    _row("from_utc_timestamp", _each(as_instant, _word), TIMESTAMP, spell.from_utc, arity=(2, 2), refuse=spell.refuse_zones(1)),
    _row("to_utc_timestamp", _each(as_instant, _word), TIMESTAMP, spell.to_utc, arity=(2, 2), refuse=spell.refuse_zones(1)),
    _row("convert_timezone", _each(_word, _word, as_local), TIMESTAMP_NTZ, spell.convert_zone, arity=(3, 3), refuse=spell.refuse_zones(0, 1)),
    _row("current_timezone", rule.unchanged, STRING, "current_setting('TimeZone')", arity=(0, 0)),
    _row("date_format", _each(as_instant, _word), STRING, _format, arity=(2, 2), refuse=_refuse_format),
    _row("from_unixtime", _each(as_bigint, _word), STRING, _from_unixtime, arity=(2, 2), refuse=_refuse_format),
    _reader("to_date", "to_date", "date", DATE), _reader("try_to_date", "try_to_date", "date", DATE, safe=True),
    _reader("to_timestamp_ltz", "to_timestamp_ltz", "timestamp", TIMESTAMP), _reader("to_timestamp_ntz", "to_timestamp_ntz", "timestamp_ntz", TIMESTAMP_NTZ),
    _reader("try_to_timestamp", "try_to_timestamp", "timestamp", TIMESTAMP, safe=True),
    _reader("to_unix_timestamp", "to_unix_timestamp", "seconds", BIGINT),
)  # fmt: skip

__all__ = ["DEFAULT_PATTERN", "FUNCTIONS", "as_instant", "as_moment"]
