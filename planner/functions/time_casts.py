"""Spell casts from and to dates, timestamps and intervals for DuckDB.

A cast that is not proven has no spelling. Values outside the proven range raise, and Spark runs the
stage.
"""

from __future__ import annotations

from stagecoach.planner.functions import spell_times as spell
from stagecoach.planner.functions.templates import quoted
from stagecoach.planner.types import DataType, interval_fields

_BLANK = r"[\x00-\x20\x7f]*"
_MINUTES = r"(?:[01]?[0-9]|2[0-3]):[0-5]?[0-9]"
_SECONDS = r":[0-5]?[0-9](?:\.[0-9]{1,6})?"
_CLOCK = rf"{_MINUTES}(?:{_SECONDS})?"
_DATE = "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_TIME = rf"{_BLANK}({_DATE}(?:[ T]{_CLOCK})?){_BLANK}"
_OFFSET = r"(?:Z|[+-](?:0[0-9]|1[0-7]):[0-5][0-9])"
_TIME_AT = rf"{_BLANK}({_DATE}[ T]{_MINUTES}{_SECONDS}{_OFFSET}){_BLANK}"
_YEAR_ZERO = f"regexp_matches({{0}}, {quoted(f'^{_BLANK}0000')})"
_UNITS = {"day": spell.DAY, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}


_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_MOMENT = _DAY + r"[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"


def written_moment(text: str, target: DataType) -> tuple[str, str]:
    """Whether a text of CSV or JSON is plainly a date or a timestamp, and its value."""
    if target.kind == "date":
        value = f"TRY_CAST({text} AS DATE)"
        # NOTE: DuckDB reads the year 0000, which is none to Spark's casts.
        return f"regexp_full_match({text}, {quoted(_DAY)}) AND {value} >= DATE '0001-01-01'", value
    value = _text_to_timestamp(target.kind == "timestamp", safe=True).replace("{0}", text)
    return f"regexp_full_match({text}, {quoted(_MOMENT)}) AND {value} IS NOT NULL", value


def time_cast(source: DataType, target: DataType, *, safe: bool = False) -> str | None:
    """DuckDB text of a cast that has to do with time; None for one that is not proven."""
    if source.is_interval or target.is_interval:
        return None if safe else _interval_cast(source, target)
    if target.kind in ("timestamp", "timestamp_ntz"):
        return _to_timestamp(source, target, safe)
    if source.kind == "date" and target.kind == "string":
        return spell.dated_text("{0}")
    if source.kind in ("timestamp", "timestamp_ntz"):
        return None if safe and target.is_numeric else _from_timestamp(source, target)
    return None


def _to_timestamp(source: DataType, target: DataType, safe: bool) -> str | None:
    instant = target.kind == "timestamp"
    match source.kind:
        case "date":
            return spell.start_of_day("{0}") if instant else "CAST({0} AS TIMESTAMP)"
        case "timestamp":
            return spell.local("{0}")
        case "timestamp_ntz":
            return spell.zoned("{0}")
        case "string":
            return _text_to_timestamp(instant, safe)
    if source.is_integral and instant and not safe:
        return spell.raised(
            "abs(CAST({0} AS HUGEINT)) > 9000000000000",
            "OUT_OF_RANGE",
            "TIMESTAMPTZ",
            "make_timestamptz(CAST({0} AS BIGINT) * 1000000)",
        )
    return None


def _text_to_timestamp(instant: bool, safe: bool) -> str:
    word = "TRY_CAST" if safe else "CAST"
    # NULL where the text is of another shape: DuckDB computes both branches of a constant.
    found = f"nullif(regexp_extract({{0}}, {quoted(f'^{_TIME}$')}, 1), '')"
    plain = f"{word}({found} AS TIMESTAMP)"
    value = spell.zoned(plain) if instant else plain
    whens = f"WHEN {{0}} IS NULL THEN NULL WHEN {_is(_TIME)} THEN {value} "
    if instant:
        text = f"nullif(regexp_extract({{0}}, {quoted(f'^{_TIME_AT}$')}, 1), '')"
        whens += f"WHEN {_is(_TIME_AT)} THEN {word}({text} AS TIMESTAMPTZ) "
        local = spell.zoned("java_zoneless_time({0})")
        other = f"coalesce(java_instant({{0}}), {local})"
    else:
        other = "java_local_time({0})"
    if safe:
        whens += "WHEN NOT regexp_matches({0}, '[0-9]') THEN NULL "
    else:
        name = "TIMESTAMPTZ" if instant else "TIMESTAMP"
        other = f"coalesce({other}, CAST(error('CAST_INVALID_INPUT') AS {name}))"
    return f"(CASE {whens}ELSE {other} END)"


def _is(pattern: str) -> str:
    return f"regexp_full_match({{0}}, {quoted(pattern)}) AND NOT {_YEAR_ZERO}"


def _from_timestamp(source: DataType, target: DataType) -> str | None:
    when = spell.local_of(0, source)
    match target.kind:
        case "date":
            return f"CAST({when} AS DATE)"
        case "string":
            return spell.dated_text(when)
    if source.kind == "timestamp_ntz":
        return None
    if target.is_integral:
        return f"CAST({spell.floor_div('epoch_us({0})', 1_000_000)} AS {{type}})"
    if target.kind == "double":
        return "(CAST(epoch_us({0}) AS DOUBLE) / CAST(1000000 AS DOUBLE))"
    return None


def _interval_cast(source: DataType, target: DataType) -> str | None:
    if source.is_day_time and target.is_day_time:
        last = interval_fields(target)[1]
        if last == "second":
            return "CAST({0} AS BIGINT)"
        return f"({{0}} - {{0}} % {_UNITS[last]})"
    if source.is_year_month and target.is_year_month:
        return (
            "CAST({0} AS INTEGER)" if interval_fields(target)[1] == "month" else "({0} - {0} % 12)"
        )
    if source.is_integral and target.is_interval:
        first, last = interval_fields(target)
        if first != last:
            return None
        unit = _UNITS.get(first) or (12 if first == "year" else 1)
        return f"CAST(CAST({{0}} AS HUGEINT) * {unit} AS {{type}})"
    if source.is_interval and target.is_integral:
        first, last = interval_fields(source)
        if first != last:
            return None
        unit = _UNITS.get(first) or (12 if first == "year" else 1)
        return f"CAST({{0}} // {unit} AS {{type}})"
    return None
