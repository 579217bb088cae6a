"""Convert dates and timestamps between text, instants and wall-clock times.

A moment is a wall-clock time without a zone: of UTC in a canonical text, of the session everywhere
else.
"""

from __future__ import annotations

import calendar
import datetime
from typing import TypeVar

from stagecoach.planner.text.time_zones import zone_info

Day = TypeVar("Day", bound=datetime.date)


def plus_months(day: Day, months: int) -> Day:
    """The same day so many months later, or the last one of a month that has no such day.

    Args:
        day: A date, or a moment, whose time of day stays.
        months: How many; less than 0 for earlier.

    Raises:
        ValueError, OverflowError: The result is outside of the years 1 to 9999.

    Source: Spark's `add_months`.
    """
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    last = calendar.monthrange(year, month + 1)[1]
    return day.replace(year=year, month=month + 1, day=min(day.day, last))


def wall_clock(text: str) -> datetime.datetime:
    """The moment that an ISO text without a zone names; a date is its midnight.

    Raises:
        ValueError: The text is not a moment, or names a zone.
    """
    moment = datetime.datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        raise ValueError("names a zone")
    return moment


def wall_clock_text(moment: datetime.datetime) -> str:
    """The canonical text of a moment, with microseconds; a zone of its own is left out."""
    return moment.replace(tzinfo=None).isoformat(" ", "microseconds")


def moment_text(moment: datetime.datetime, time_zone: str) -> str:
    """The canonical text of a timestamp: UTC, with microseconds.

    Args:
        moment: The timestamp.
        time_zone: Its zone, if it has none of its own.

    Raises:
        OverflowError: In UTC it is outside of the years 1 to 9999.
    """
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone_info(time_zone))
    return wall_clock_text(moment.astimezone(datetime.UTC))


def session_moment(text: str, zone: datetime.tzinfo) -> datetime.datetime:
    """The wall-clock time at which a timestamp is in the session's zone: `moment_text` back.

    Args:
        text: Its canonical text, which is in UTC.
        zone: The session's zone.

    Raises:
        ValueError: The text is not a moment, or names a zone.
        OverflowError: In the session's zone it is outside of the years 1 to 9999.
    """
    return wall_clock(text).replace(tzinfo=datetime.UTC).astimezone(zone).replace(tzinfo=None)
