"""Spell `sequence` of dates and timestamps for DuckDB.

Item `i` is the start plus `i` steps, by the calendar in months and days and by the clock below a
day. The step must be a literal interval, or absent. Source: `TemporalSequenceImpl` in Spark's
`Sequence`.
"""

from __future__ import annotations

from stagecoach.planner.functions.spell_collections import raises
from stagecoach.planner.functions.spell_times import DAY, EPOCH, local, shifted, zoned
from stagecoach.planner.plan.expressions import Call, Literal
from stagecoach.planner.types import DataType

_MOST_ITEMS = 10_000_000


def sequence_of_times(node: Call) -> str:
    """The items from one date or timestamp to another."""
    dtype = node.args[0].dtype
    if len(node.args) == 2:
        up, down = (_items(dtype, months=0, micros=sign * DAY) for sign in (1, -1))
        body = f"CASE WHEN {{0}} <= {{1}} THEN {up} ELSE {down} END"
        return f"CASE WHEN {{0}} IS NULL OR {{1}} IS NULL THEN NULL ELSE {body} END"
    step = _amount(node)
    if step is None:
        return "CAST(NULL AS {type})"
    months, micros = (step, 0) if node.args[2].dtype.is_year_month else (0, step)
    if dtype.kind == "date" and not months and not micros:
        wrong, items = "true", "CAST(NULL AS {type})"
    else:
        wrong = "{0} > {1}" if step > 0 else "{0} < {1}"
        items = _items(dtype, months=months, micros=micros)
    return (
        "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL "
        f"WHEN {wrong} THEN {raises('ILLEGAL_SEQUENCE_BOUNDARIES')} ELSE {items} END"
    )


def refuse_sequence(node: Call) -> str | None:
    """Why DuckDB must not make the items, or None."""
    dtype = node.args[0].dtype
    if not dtype.is_datetime or len(node.args) == 2:
        return None
    if not isinstance(node.args[2], Literal):
        return "a sequence of dates or timestamps by a computed step is not proven"
    step = _amount(node)
    if dtype.kind == "date" and node.args[2].dtype.is_day_time and step is not None and step % DAY:
        return "a sequence of dates by parts of days is not proven"
    if dtype.kind != "date" and step == 0:
        return "a sequence of timestamps by nothing is not proven"
    return None


def _amount(node: Call) -> int | None:
    step = node.args[2]
    return int(step.value) if isinstance(step, Literal) and step.value is not None else None


def _items(dtype: DataType, *, months: int, micros: int) -> str:
    """All items, where start and end are there and the step leads from one to the other."""
    if months:
        return _by_months(dtype, months)
    if dtype.kind == "date":
        start, stop = (f"CAST({{{i}}} - {EPOCH} AS BIGINT)" for i in (0, 1))
        step, item = micros // DAY, f"({EPOCH} + CAST(q_ AS INTEGER))"
    else:
        start, stop = "epoch_us({0})", "epoch_us({1})"
        step = micros
        item = "make_timestamp(q_)" if dtype.kind == "timestamp_ntz" else "make_timestamptz(q_)"
    count = f"abs((CAST({stop} AS HUGEINT) - {start}) // {step})"
    if dtype.kind == "timestamp" and abs(micros) >= DAY:
        # NOTE: days have 23 to 25 hours where clocks change, so one more item may fit.
        days = int(micros / DAY)
        rest = micros - days * DAY
        when = shifted(0, dtype, f"make_timestamp(epoch_us({{local}}) + q_ * ({days * DAY}))")
        whole = f"make_timestamptz(epoch_us({when}) + q_ * ({rest}))"
        return _listed(f"CAST({count} AS BIGINT) + 1", whole, micros)
    numbers = f"generate_series({start}, {stop}, CAST('{step}' AS BIGINT))"
    return (
        f"CASE WHEN {count} > {_MOST_ITEMS} THEN {raises('COLLECTION_SIZE_LIMIT_EXCEEDED')} "
        f"ELSE list_transform({numbers}, lambda q_: {item}) END"
    )


def _by_months(dtype: DataType, months: int) -> str:
    start, stop = (_local(i, dtype) for i in (0, 1))
    between = f"abs((year({stop}) - year({start})) * 12 + month({stop}) - month({start}))"
    change = f"to_months(CAST(q_ * ({months}) AS INTEGER))"
    if dtype.kind != "date":
        item = shifted(0, dtype, f"{{local}} + {change}")
        return _listed(f"{between} // {abs(months)}", item, months)
    midnight = "CAST({0} AS TIMESTAMP)"
    late = f"{local(zoned(midnight))} <> {midnight}"  # the day begins after midnight
    items = _listed(f"{between} // {abs(months)}", f"CAST({{0}} + {change} AS DATE)", months)
    return f"CASE WHEN {late} THEN {raises('MIDNIGHT_IN_GAP')} ELSE {items} END"


def _local(slot: int, dtype: DataType) -> str:
    return local(f"{{{slot}}}") if dtype.kind == "timestamp" else f"{{{slot}}}"


def _listed(most: str, item: str, direction: int) -> str:
    """The items number 0 to at most `most` that are not beyond the end."""
    within = "<=" if direction > 0 else ">="
    made = f"list_transform(generate_series(0, {most}), lambda q_: {item})"
    return (
        f"CASE WHEN {most} > {_MOST_ITEMS} THEN {raises('COLLECTION_SIZE_LIMIT_EXCEEDED')} "
        f"ELSE list_filter({made}, lambda r_: r_ {within} {{1}}) END"
    )
