"""Texts as dates and local times, as Spark reads them, over Arrow columns.

Worker code; `java_functions` registers it. Spark also reads years with a sign or of up to seven
digits, and lets parts be left out, which DuckDB does not. Source: Spark's `SparkDateTimeUtils`.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable

import pyarrow as pa

# Java's `isWhitespace` or `isISOControl` of one byte.
_BLANK = "".join(map(chr, (*range(0x21), 0x7F)))
_JAVA_BLANK = "".join(map(chr, range(0x21)))  # of `String.trim`
_DATE = re.compile(
    r"([+-]?[0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL | re.ASCII
)
_MOMENT = re.compile(
    r"([+-]?[0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T]"
    r"([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*)([^0-9].*)?|([^0-9.].*))?)?)?)?)?)?",
    re.DOTALL | re.ASCII,
)
# A time of today.
_CLOCK = re.compile(r"T|[0-9]{1,2}:", re.ASCII)
_OFFSET = re.compile(r"([+-])([0-9]{1,2}):([0-9]{1,2})", re.ASCII)
# What may be a zone that only Java knows, or an offset in another of its forms.
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9~/._+-]+|[+-].*", re.DOTALL)
_MOST_OFFSET = 18 * 3600
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097  # of the Gregorian calendar
_EPOCH = dt.date(1970, 1, 1).toordinal()
_DAY_SECONDS, _SECOND = 86_400, 1_000_000
_DAYS, _MICROS = 1 << 31, 1 << 63
# DuckDB takes the outermost days and microseconds for infinity, and its calendar begins later.
_MOST_DAYS = _DAYS - 2
_FEWEST_MICROS, _MOST_MICROS = -9_223_372_022_400_000_000, _MICROS - 2


def dates(texts: pa.ChunkedArray) -> pa.Array:
    """The dates that texts say; NULL for those that say none.

    Raises:
        ValueError: Only Spark can hold the date.
    """
    days = [None if text is None else _date(text) for text in texts.to_pylist()]
    return pa.array(days, pa.int32()).cast(pa.date32())


def local_times(texts: pa.ChunkedArray) -> pa.Array:
    """The local times that texts say, whatever their zone; NULL for those that say none.

    Raises:
        ValueError: Only Spark can hold the time, or knows whether there is such a zone.
    """
    return _moments(_local_time, texts, None)


def zoneless_times(texts: pa.ChunkedArray) -> pa.Array:
    """The local times that texts without a zone say, otherwise NULL.

    Raises:
        ValueError: Only Spark can hold the time, or its date is today.
    """
    return _moments(_zoneless_time, texts, None)


def instants(texts: pa.ChunkedArray) -> pa.Array:
    """The instants that texts with an offset say, otherwise NULL.

    Raises:
        ValueError: Only Spark can hold the instant, or knows the zone.
    """
    return _moments(_instant, texts, "UTC")


def _date(text: str) -> int | None:
    found = _DATE.fullmatch(text.strip(_BLANK))
    if found is None:
        return None
    days = _days(*(int(part or 1) for part in found.groups()))
    if days is None or not -_DAYS <= days < _DAYS:
        return None
    if abs(days) > _MOST_DAYS:
        raise ValueError(f"no date of DuckDB: {text}")
    return days


def _days(year: int, month: int, day: int) -> int | None:
    """Days since 1970 of a date of any year; None for a day that does not exist."""
    like = 2000 + year % _CYCLE_YEARS
    try:
        number = dt.date(like, month, day).toordinal() - _EPOCH
    except ValueError:
        return None
    return number + (year - like) // _CYCLE_YEARS * _CYCLE_DAYS


def _moments(
    read: Callable[[str], int | None], texts: pa.ChunkedArray, zone: str | None
) -> pa.Array:
    micros = [None if text is None else read(text) for text in texts.to_pylist()]
    return pa.array(micros, pa.int64()).cast(pa.timestamp("us", zone))


def _local_time(text: str) -> int | None:
    found = _MOMENT.fullmatch(text.strip(_BLANK))
    if found is None or (_zone(found) and _offset_seconds(_zone(found)) is None):
        return None
    return _fitting(_micros(found), text)


def _zoneless_time(text: str) -> int | None:
    found = _MOMENT.fullmatch(text.strip(_BLANK))
    if found is None:
        if _CLOCK.match(text.lstrip(_BLANK)):
            raise ValueError(f"a time of today: {text}")
        return None
    return None if _zone(found) else _fitting(_micros(found), text)


def _instant(text: str) -> int | None:
    found = _MOMENT.fullmatch(text.strip(_BLANK))
    if found is None or not (zone := _zone(found)):
        return None
    local, offset = _micros(found), _offset_seconds(zone)
    return None if local is None or offset is None else _fitting(local - offset * _SECOND, text)


def _zone(found: re.Match[str]) -> str:
    return (found[8] or found[9] or "").strip(_JAVA_BLANK)


def _micros(found: re.Match[str]) -> int | None:
    """Microseconds since 1970 of a local time; None where there is none such."""
    days = _days(*(int(part or 1) for part in found.groups()[:3]))
    hour, minute, second = (int(part or 0) for part in found.groups()[3:6])
    if days is None or hour > 23 or minute > 59 or second > 59:
        return None
    seconds = days * _DAY_SECONDS + hour * 3600 + minute * 60 + second
    return seconds * _SECOND + int((found[7] or "")[:6].ljust(6, "0"))


def _offset_seconds(zone: str) -> int | None:
    """The offset of a zone in seconds; None if the zone is not valid."""
    if zone == "Z":
        return 0
    found = _OFFSET.fullmatch(zone)
    if found is None:
        if _ZONE.fullmatch(zone):
            raise ValueError(f"a zone that Java may know: {zone}")
        return None
    hours, minutes = int(found[2]), int(found[3])
    seconds = hours * 3600 + minutes * 60
    if minutes > 59 or seconds > _MOST_OFFSET:
        return None
    return -seconds if found[1] == "-" else seconds


def _fitting(micros: int | None, text: str) -> int | None:
    """The microseconds if Spark can hold them."""
    if micros is None or not -_MICROS <= micros < _MICROS:
        return None
    if not _FEWEST_MICROS <= micros <= _MOST_MICROS:
        raise ValueError(f"no moment of DuckDB: {text}")
    return micros
