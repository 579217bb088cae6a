"""Python values of Arrow columns: timestamps in a zone, and dates that Python has no value for."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from stagecoach.planner.text.time_zones import zone_info
from stagecoach.terminal.value_texts import Entries, moment_text

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
_DAY_MICROS = 86_400_000_000
# After 400 years the calendar repeats, days of the week and hence rules of time zones included.
_CYCLE_YEARS = 400
_CYCLE = datetime.timedelta(days=146_097)
_EARLY = datetime.datetime(401, 1, 1, tzinfo=datetime.UTC)
_LATE = datetime.datetime(9201, 1, 1, tzinfo=datetime.UTC)


def python_values(
    column: pa.Array | pa.ChunkedArray, time_zone: str | None = None, *, shown: bool = False
) -> list[Any]:
    """The values of a column, in structs, arrays and maps, too.

    A date or timestamp outside the years 1 to 9999, which Python cannot hold, is the text that
    Spark casts it to.

    Args:
        column: Of a type that carries one of Spark's.
        time_zone: Zone of timestamps; None to leave them as they are.
        shown: Whether the values become texts: a float is then the number whose text is Spark's.
    """
    if time_zone is not None:
        zoned = pa.timestamp("us", tz=time_zone)
        column = _cast(column, lambda t: zoned if pa.types.is_timestamp(t) and t.tz else t)
    if shown:
        column = _with_short_floats(column)
    try:
        return list(column.to_pylist())
    except OverflowError:
        dtype = column.type
        return [_timed(value, dtype) for value in _cast(column, _as_number).to_pylist()]


def with_entries(values: list[Any], dtype: pa.DataType) -> list[Any]:
    """The values of a column of this type, with `Entries` for maps."""
    return [_marked(value, dtype) for value in values] if _has_map(dtype) else values


def _cast(
    column: pa.Array | pa.ChunkedArray, change: Callable[[pa.DataType], pa.DataType]
) -> pa.Array | pa.ChunkedArray:
    changed = _changed(column.type, change)
    return column if changed.equals(column.type) else column.cast(changed)


def _changed(dtype: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """A type whose members, at any depth, are changed."""
    if pa.types.is_list(dtype):
        member = dtype.value_field
        return pa.list_(member.with_type(_changed(member.type, change)))
    if pa.types.is_struct(dtype):
        return pa.struct([f.with_type(_changed(f.type, change)) for f in dtype])
    if pa.types.is_map(dtype):
        return pa.map_(_changed(dtype.key_type, change), _changed(dtype.item_type, change))
    return change(dtype)


def _with_short_floats(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Floats as the doubles that have their texts: 1.1, not 1.100000023841858."""

    def to(wanted: pa.DataType) -> pa.DataType:
        return _changed(dtype, lambda t: wanted if pa.types.is_float32(t) else t)

    dtype = column.type
    texts = to(pa.string())
    # Arrow writes the fewest digits that tell a float from its neighbours, as Java does.
    return column if texts.equals(dtype) else column.cast(texts).cast(to(pa.float64()))


def _as_number(dtype: pa.DataType) -> pa.DataType:
    if pa.types.is_date32(dtype):
        return pa.int32()
    return pa.int64() if pa.types.is_timestamp(dtype) else dtype


def _timed(value: Any, dtype: pa.DataType) -> Any:
    """A value with the numbers that stand for dates and timestamps replaced by these."""
    if value is None:
        return None
    if pa.types.is_date32(dtype):
        return _moment(value * _DAY_MICROS, None, is_date=True)
    if pa.types.is_timestamp(dtype):
        return _moment(value, dtype.tz)
    return _rebuilt(value, dtype, _timed)


def _moment(
    micros: int, zone: str | None, *, is_date: bool = False
) -> datetime.datetime | datetime.date | str:
    moved, cycles = _EPOCH, 0
    try:
        moved = _in_zone(_EPOCH + micros * _MICROSECOND, zone)
    except OverflowError:
        # The same day of a year that Python knows, of ancient or of future rules of the zone.
        base = _LATE if micros > 0 else _EARLY
        cycles, rest = divmod(micros - (base - _EPOCH) // _MICROSECOND, _CYCLE // _MICROSECOND)
        moved = _in_zone(base + rest * _MICROSECOND, zone)
    if not cycles:
        return moved.date() if is_date else moved
    year = moved.year + cycles * _CYCLE_YEARS
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    text = moment_text(moved)[4:]
    return f"{sign}{abs(year):04}{text[: len('-01-01')] if is_date else text}"


def _in_zone(moment: datetime.datetime, zone: str | None) -> datetime.datetime:
    return moment.replace(tzinfo=None) if zone is None else moment.astimezone(zone_info(zone))


def _has_map(dtype: pa.DataType) -> bool:
    members = (dtype.field(i).type for i in range(dtype.num_fields))
    return pa.types.is_map(dtype) or any(map(_has_map, members))


def _marked(value: Any, dtype: pa.DataType) -> Any:
    if value is None or not dtype.num_fields:
        return value
    found = _rebuilt(value, dtype, _marked)
    return Entries(found) if pa.types.is_map(dtype) else found


def _rebuilt(value: Any, dtype: pa.DataType, change: Callable[[Any, pa.DataType], Any]) -> Any:
    """A value that is not NULL, with its members changed."""
    if pa.types.is_map(dtype):
        return [(change(k, dtype.key_type), change(v, dtype.item_type)) for k, v in value]
    if pa.types.is_list(dtype):
        return [change(element, dtype.value_type) for element in value]
    if pa.types.is_struct(dtype):
        return {f.name: change(value[f.name], f.type) for f in dtype}
    return value
