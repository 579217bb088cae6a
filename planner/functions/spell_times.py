"""Spell Spark's dates, timestamps and time zones for DuckDB.

A timestamp is an instant in microseconds. Anything that depends on a zone goes through the local
time (DuckDB's TIMESTAMP), because the engines disagree about which instant a local time means when
clocks are put back. Source: Spark's `DateTimeUtils`, `TimestampFormatter`.
"""

from __future__ import annotations

from collections.abc import Callable

from stagecoach.planner.functions.nested_rules import has_kind
from stagecoach.planner.plan.expressions import Call, Cast, Expression, Literal
from stagecoach.planner.text.time_zones import zone_reason
from stagecoach.planner.types import DataType

Spelling = Callable[[Call], str]
Refusal = Callable[[Call], str | None]

DAY = 86_400_000_000
EPOCH = "DATE '1970-01-01'"

# ---------------------------------------------------------------- instants and local times


def local(instant: str, zone: str = "") -> str:
    """The local time of an instant, in a zone given as SQL text or that of the session."""
    return f"timezone({zone}, {instant})" if zone else f"CAST({instant} AS TIMESTAMP)"


def local_of(slot: int, dtype: DataType) -> str:
    """The local time of an operand that is a date or a timestamp."""
    return f"{{{slot}}}" if dtype.kind == "timestamp_ntz" else local(f"{{{slot}}}")


def _at(instant_micros: str) -> str:
    return f"make_timestamptz({instant_micros})"


def zoned(when: str, zone: str = "") -> str:
    """The instant of a local time: the earlier one of two, later by the gap where there is none.

    DuckDB takes the later of two, so the offset of a day before is tried first.
    """
    later = f"timezone({zone}, {when})" if zone else f"CAST({when} AS TIMESTAMPTZ)"
    before = _at(f"epoch_us({later}) - {DAY}")
    offset = f"(epoch_us({local(before, zone)}) - epoch_us({before}))"
    earlier = _at(f"epoch_us({when}) - {offset}")
    return f"(CASE WHEN {local(earlier, zone)} = {when} THEN {earlier} ELSE {later} END)"


def start_of_day(date: str) -> str:
    """The instant at which a date begins; an error where a gap began before midnight."""
    midnight = f"CAST({date} AS TIMESTAMP)"
    start = zoned(midnight)
    eve = local(_at(f"epoch_us({start}) - 1"))
    return (
        f"(CASE WHEN {local(start)} = {midnight} OR epoch_us({eve}) = epoch_us({midnight}) - 1 "
        f"THEN {start} WHEN {date} IS NOT NULL THEN CAST(error('MIDNIGHT_IN_GAP') AS TIMESTAMPTZ) "
        "END)"
    )


def moved(when: str, instant: str) -> str:
    """The instant of a local time that was computed from `instant`, whose offset it keeps."""
    offset = f"(epoch_us({local(instant)}) - epoch_us({instant}))"
    same = _at(f"epoch_us({when}) - {offset}")
    return f"(CASE WHEN {local(same)} = {when} THEN {same} ELSE {zoned(when)} END)"


def shifted(slot: int, dtype: DataType, change: str) -> str:
    """A moment whose local time is changed, such as by whole days.

    Args:
        slot: Which operand the moment is.
        dtype: Its type, `timestamp` or `timestamp_ntz`.
        change: SQL over `{local}`.
    """
    when = change.replace("{local}", local_of(slot, dtype))
    return f"({when})" if dtype.kind == "timestamp_ntz" else moved(f"({when})", f"{{{slot}}}")


def date_number(date: str) -> str:
    """Days since 1970 of a date."""
    return f"({date} - {EPOCH})"


def floor_div(value: str, by: int) -> str:
    """Division of a BIGINT, rounded down."""
    return f"(({value} - ((({value} % {by}) + {by}) % {by})) // {by})"


def floor_mod(value: str, by: int) -> str:
    """Remainder of a BIGINT, never negative."""
    return f"((({value} % {by}) + {by}) % {by})"


def raised(condition: str, name: str, dtype: str, value: str) -> str:
    """A value, or an error where the condition holds."""
    return f"CASE WHEN {condition} THEN CAST(error('{name}') AS {dtype}) ELSE {value} END"


def year_text(when: str) -> str:
    """The year of a date or time as Java writes it: four digits, or more with a sign."""
    year = f"year({when})"
    sign = f"CASE WHEN {year} > 9999 THEN '+' WHEN {year} < 0 THEN '-' ELSE '' END"
    return f"({sign} || printf('%04d', abs({year})))"


def dated_text(when: str) -> str:
    """A date or a local time as Spark writes it, such as `2024-02-29 10:11:12.5`."""
    # DuckDB writes the year -1 as `0002-01-01 (BC)`.
    rest = f"replace(regexp_replace(CAST({when} AS VARCHAR), '^[0-9]+', ''), ' (BC)', '')"
    return (
        f"CASE WHEN year({when}) BETWEEN 1 AND 9999 THEN CAST({when} AS VARCHAR) "
        f"ELSE {year_text(when)} || {rest} END"
    )


def seconds_text(micros: str) -> str:
    """Seconds of a number of microseconds below a minute, as DECIMAL(8,6)."""
    return f"CAST(CAST({micros} AS DECIMAL(8,0)) * CAST(0.000001 AS DECIMAL(6,6)) AS DECIMAL(8,6))"


# ---------------------------------------------------------------- fields and arithmetic


def clock_field(name: str) -> Spelling:
    """A rule that spells HOUR, MINUTE or SECOND of a timestamp."""

    def spell(node: Call) -> str:
        return f"CAST({name}({local_of(0, node.args[0].dtype)}) AS INTEGER)"

    return spell


def seconds_with_fraction(node: Call) -> str:
    """Seconds with their fraction."""
    micros = f"epoch_us({local_of(0, node.args[0].dtype)})"
    return seconds_text(floor_mod(micros, 60_000_000))


def plus_duration(node: Call) -> str:
    """A moment plus a day-time interval: whole days by the calendar, the rest by the clock."""
    dtype = node.args[0].dtype
    rest = f"({{1}} % {DAY})"
    whole = f"make_timestamp(epoch_us({{local}}) + ({{1}} - {rest}))"
    if dtype.kind == "timestamp_ntz":
        return "make_timestamp(epoch_us({0}) + {1})"
    days = shifted(0, dtype, whole)
    return f"make_timestamptz(epoch_us({days}) + {rest})"


def plus_months(node: Call) -> str:
    """A moment plus months, by the calendar."""
    return shifted(0, node.args[0].dtype, "{local} + to_months({1})")


def difference(node: Call) -> str:
    """Microseconds between two local times."""
    left, right = (f"epoch_us({local_of(i, a.dtype)})" for i, a in enumerate(node.args))
    return f"({left} - {right})"


def months_between(node: Call) -> str:
    """Months with a fraction of 31 days, as Hive counts them."""
    dates, rests = [], []
    for slot, arg in enumerate(node.args[:2]):
        del arg
        day = f"CAST({local(f'{{{slot}}}')} AS DATE)"
        dates.append(day)
        rests.append(f"((epoch_us({{{slot}}}) - epoch_us({start_of_day(day)})) // 1000000)")
    one, two = dates
    months = f"((year({one}) - year({two})) * 12 + month({one}) - month({two}))"
    ends = f"({one} = last_day({one}) AND {two} = last_day({two}))"
    seconds = f"((day({one}) - day({two})) * 86400 + {rests[0]} - {rests[1]})"
    exact = f"(CAST({months} AS DOUBLE) + CAST({seconds} AS DOUBLE) / CAST(2678400 AS DOUBLE))"
    rounded = f"(floor({exact} * CAST(1e8 AS DOUBLE) + CAST(0.5 AS DOUBLE)) / CAST(1e8 AS DOUBLE))"
    keep = node.args[2]
    result = rounded if isinstance(keep, Literal) and keep.value else exact
    return (
        "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL "
        f"WHEN day({one}) = day({two}) OR {ends} THEN CAST({months} AS DOUBLE) ELSE {result} END"
    )


_WEEKDAYS = ("TH", "FR", "SA", "SU", "MO", "TU", "WE")
_WEEKDAY_NAMES = ("THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY")


def weekday_number(name: object) -> int | None:
    """Spark's number of a weekday's name, Thursday first; None for another text."""
    text = str(name).upper()
    for number, full in enumerate(_WEEKDAY_NAMES):
        if text in (_WEEKDAYS[number], full[:3], full):
            return number
    return None


def next_day(node: Call) -> str:
    """The next date that is a given weekday."""
    day = node.args[1]
    number = weekday_number(day.value if isinstance(day, Literal) else None)
    ahead = f"(({number} - 1 - {date_number('{0}')}) % 7 + 7) % 7"
    return f"({{0}} + CAST(1 + {ahead} AS INTEGER))"


def refuse_next_day(node: Call) -> str | None:
    """Only a literal name of a weekday."""
    day = node.args[1]
    known = isinstance(day, Literal) and weekday_number(day.value) is not None
    return None if known else "the weekday is not a literal that Spark knows"


TRUNC_DATE = {
    "YEAR": "year",
    "YYYY": "year",
    "YY": "year",
    "QUARTER": "quarter",
    "MONTH": "month",
    "MM": "month",
    "MON": "month",
    "WEEK": "week",
}
_TRUNC_CLOCK = {"MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000}
_TRUNC_LOCAL = {"MINUTE": 60_000_000, "HOUR": 3_600_000_000, "DAY": DAY, "DD": DAY}


def literal_word(node: Call, slot: int) -> str | None:
    """The upper-case text of a literal argument, or None."""
    arg = node.args[slot]
    if isinstance(arg, Literal) and isinstance(arg.value, str):
        return arg.value.upper()
    return None


def trunc(node: Call) -> str:
    """TRUNC of a date; an unknown unit gives NULL."""
    unit = TRUNC_DATE.get(literal_word(node, 1) or "")
    if unit is None:
        return "CASE WHEN {0} IS NULL THEN CAST(NULL AS DATE) END"
    return f"CAST(date_trunc('{unit}', {{0}}) AS DATE)"


def date_trunc(node: Call) -> str:
    """DATE_TRUNC of a timestamp: days and more by date, hours and minutes keep their offset."""
    unit = literal_word(node, 0) or ""
    if unit in _TRUNC_CLOCK:
        micros = "epoch_us({1})"
        return f"make_timestamptz({micros} - {floor_mod(micros, _TRUNC_CLOCK[unit])})"
    if unit in _TRUNC_LOCAL:
        when = f"epoch_us({local('{1}')})"
        cut = f"make_timestamp({when} - {floor_mod(when, _TRUNC_LOCAL[unit])})"
        return moved(cut, "{1}")
    if unit in TRUNC_DATE:
        date = f"CAST(date_trunc('{TRUNC_DATE[unit]}', CAST({local('{1}')} AS DATE)) AS DATE)"
        return start_of_day(date)
    return "CASE WHEN {1} IS NULL THEN CAST(NULL AS TIMESTAMPTZ) END"


def refuse_unit(slot: int) -> Refusal:
    """A rule that refuses a unit that is not a literal."""

    def refuse(node: Call) -> str | None:
        return None if literal_word(node, slot) is not None else "the unit is not a literal"

    return refuse


# ---------------------------------------------------------------- units of timestampadd and -diff

UNIT_MICROS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": DAY,
    "DAYOFYEAR": DAY,
    "WEEK": 7 * DAY,
}
UNIT_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def add_units(node: Call) -> str:
    """TIMESTAMPADD(unit, quantity, moment)."""
    unit = literal_word(node, 0) or ""
    dtype = node.args[2].dtype
    if unit in UNIT_MONTHS:
        months = f"CAST(CAST({{1}} AS BIGINT) * {UNIT_MONTHS[unit]} AS INTEGER)"
        return shifted(2, dtype, f"{{local}} + to_months({months})")
    micros = f"(CAST({{1}} AS BIGINT) * CAST({UNIT_MICROS[unit]} AS BIGINT))"
    if dtype.kind == "timestamp_ntz":
        return f"make_timestamp(epoch_us({{2}}) + {micros})"
    if UNIT_MICROS[unit] < DAY:
        return f"make_timestamptz(epoch_us({{2}}) + {micros})"
    return shifted(2, dtype, f"make_timestamp(epoch_us({{local}}) + {micros})")


def diff_units(node: Call) -> str:
    """TIMESTAMPDIFF(unit, start, end): whole units between the local times."""
    unit = literal_word(node, 0) or ""
    start, end = (local_of(i, node.args[i].dtype) for i in (1, 2))
    if unit in UNIT_MICROS:
        return f"((epoch_us({end}) - epoch_us({start})) // {UNIT_MICROS[unit]})"

    # As java.time counts: the end's date gives or takes a day by the clock, then months of 32 days.
    first, last = (f"CAST({when} AS DATE)" for when in (start, end))
    begins, ends = (floor_mod(f"epoch_us({when})", DAY) for when in (start, end))
    step = (
        f"CASE WHEN {last} > {first} AND {ends} < {begins} THEN -1 "
        f"WHEN {last} < {first} AND {ends} > {begins} THEN 1 ELSE 0 END"
    )
    months = f"(({_packed(f'({last} + CAST({step} AS INTEGER))')} - {_packed(first)}) // 32)"
    return f"CAST({months} // {UNIT_MONTHS[unit]} AS BIGINT)"


def _packed(date: str) -> str:
    return f"((year({date}) * 12 + month({date})) * 32 + day({date}))"


# ---------------------------------------------------------------- making moments


def make_date(_: Call) -> str:
    """MAKE_DATE; DuckDB raises for what is not a date."""
    return "make_date({0}, {1}, {2})"


def make_local(node: Call) -> str:
    """The local time of six fields; 60 seconds are the next minute."""
    return _made(node, safe=False)


def try_make_local(node: Call) -> str:
    """The local time of six fields, NULL where there is none."""
    return _made(node, safe=True)


def _made(node: Call, *, safe: bool) -> str:
    del node
    micros = "CAST({5} * 1000000 AS BIGINT)"
    wrong = "{3} NOT BETWEEN 0 AND 23 OR {4} NOT BETWEEN 0 AND 59 OR {5} < 0 OR {5} > 60"
    clock = f"(CAST({{3}} * 3600 + {{4}} * 60 AS BIGINT) * 1000000 + {micros})"
    value = f"make_timestamp(epoch_us(CAST(make_date({{0}}, {{1}}, {{2}}) AS TIMESTAMP)) + {clock})"
    nulls = " OR ".join(f"{{{i}}} IS NULL" for i in range(6))
    error = "CAST(error('INVALID_FIELD') AS TIMESTAMP)"
    return (
        f"(CASE WHEN {nulls} THEN NULL WHEN {{0}} NOT BETWEEN 1 AND 9999 THEN {error} "
        f"WHEN {wrong} THEN {'NULL' if safe else error} "
        f"ELSE {f'TRY({value})' if safe else value} END)"
    )


def make_instant(node: Call) -> str:
    """The instant of six fields, in the session's zone or a literal one."""
    return zoned(make_local(node), "{6}" if len(node.args) == 7 else "")


def try_make_instant(node: Call) -> str:
    """The instant of six fields, NULL where there is none."""
    return zoned(try_make_local(node), "{6}" if len(node.args) == 7 else "")


def from_utc(node: Call) -> str:
    """The instant whose UTC clock shows what another zone's clock shows."""
    del node
    return f"make_timestamptz(epoch_us({local('{0}', '{1}')}))"


def to_utc(node: Call) -> str:
    """The instant at which another zone's clock shows what UTC's shows."""
    del node
    return zoned("make_timestamp(epoch_us({0}))", "{1}")


def convert_zone(node: Call) -> str:
    """CONVERT_TIMEZONE of a local time."""
    del node
    return local(zoned("{2}", "{0}"), "{1}")


def refuse_zones(*slots: int) -> Refusal:
    """A rule that refuses zones that are not literals of proven regions."""

    def refuse(node: Call) -> str | None:
        for slot in slots:
            if slot >= len(node.args):
                continue
            zone = node.args[slot]
            if isinstance(zone, Call) and zone.function == "current_timezone":
                continue  # which `zone_reason` has looked at for the whole stage
            if not isinstance(zone, Literal) or not isinstance(zone.value, str):
                return "the time zone is not a literal"
            if (reason := zone_reason(zone.value)) is not None:
                return reason
        return None

    return refuse


def from_seconds(node: Call) -> str:
    """TIMESTAMP_SECONDS of a whole number or a decimal of microseconds."""
    if node.args[0].dtype.is_integral:
        return "make_timestamptz(CAST({0} AS BIGINT) * 1000000)"
    return "make_timestamptz(CAST({0} * CAST(1000000 AS DECIMAL(7,0)) AS BIGINT))"


def refuse_seconds(node: Call) -> str | None:
    """Whole numbers, and decimals that DuckDB multiplies exactly."""
    dtype = node.args[0].dtype
    if dtype.is_integral or (dtype.is_decimal and dtype.scale <= 6 and dtype.precision <= 30):
        return None
    return f"timestamp_seconds of {dtype} is not proven"


# Calls that compare or pass instants on without a look at the clock.
_ZONE_FREE = frozenset(
    (
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "eq_null_safe",
        "in",
        "case",
        "coalesce",
        "nullif",
        "greatest",
        "least",
        "is_null",
        "is_not_null",
        "unix_seconds",
        "unix_millis",
        "unix_micros",
        "timestamp_seconds",
        "timestamp_millis",
        "timestamp_micros",
        "from_utc_timestamp",
        "to_utc_timestamp",
        "single_value",
        "seconds_since_1970",
        "window_bound",
    )
)


def uses_zone(node: Expression) -> bool:
    """Whether the node turns instants into local times or back."""
    if isinstance(node, Call):
        if node.function in _ZONE_FREE:
            return False
        if node.function == "current_timezone":
            return True
    elif not isinstance(node, Cast):
        return False
    types = (node.dtype, *(child.dtype for child in node.children))
    if isinstance(node, Cast) or node.function == "to_json":
        return any(has_kind(dtype, "timestamp") for dtype in types)
    return any(dtype.kind == "timestamp" for dtype in types)
