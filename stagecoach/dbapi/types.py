"""Types of columns and of parameters, as PEP 249 names them."""

from __future__ import annotations

import datetime
from decimal import Decimal


class TypeGroup:
    """Equals the type code of every column whose Spark type is one of these.

    Args:
        kinds: Names of Spark types, without arguments.
    """

    def __init__(self, *kinds: str) -> None:
        self._kinds = frozenset(kinds)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TypeGroup):
            return self._kinds == other._kinds
        return isinstance(other, str) and other.partition("(")[0] in self._kinds

    def __hash__(self) -> int:
        return hash(self._kinds)


STRING = TypeGroup("string")
BINARY = TypeGroup("binary")
NUMBER = TypeGroup("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
DATETIME = TypeGroup("date", "timestamp", "timestamp_ntz")
ROWID = TypeGroup()

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes

Value = str | int | float | bool | Decimal | datetime.date | datetime.datetime | None
"""What a parameter may be."""


def DateFromTicks(ticks: float) -> datetime.date:
    """The day of a time, seconds since 1970, in the machine's time zone."""
    return datetime.date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> datetime.time:
    """The time of day of a time, seconds since 1970, in the machine's time zone."""
    return datetime.datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """A time, seconds since 1970, with the machine's time zone."""
    return datetime.datetime.fromtimestamp(ticks).astimezone()
