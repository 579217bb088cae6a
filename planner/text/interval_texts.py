"""Day-time intervals as Spark casts them to strings.

Arrow carries them as durations, which do not know their fields; the Spark type does.
"""

from __future__ import annotations

import datetime
from typing import Any

from stagecoach.planner.types import DataType, interval_fields

_MICROS = {"day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}
_MICROSECOND = datetime.timedelta(microseconds=1)


def day_time_text(dtype: DataType, amount: int) -> str:
    """The text of an interval.

    >>> from stagecoach.planner.types import DAY_TIME_INTERVAL
    >>> day_time_text(DAY_TIME_INTERVAL, -93_784_500_000)
    "INTERVAL '-1 02:03:04.5' DAY TO SECOND"

    Args:
        dtype: A day-time interval type.
        amount: Microseconds.
    """
    first, last = interval_fields(dtype)
    names = list(_MICROS)
    rest, text = abs(amount), "-" if amount < 0 else ""
    for name in names[names.index(first) : names.index(last) + 1]:
        number, rest = divmod(rest, _MICROS[name])
        if name != first:
            text += " " if name == "hour" else ":"
        text += str(number) if name == "day" else f"{number:02}"
    if last == "second" and rest:
        text += f".{rest:06}".rstrip("0")
    unit = first if first == last else f"{first} to {last}"
    return f"INTERVAL '{text}' {unit.upper()}"


def has_day_time(dtype: DataType) -> bool:
    """Whether values of a type are or contain day-time intervals."""
    return dtype.is_day_time or any(has_day_time(member.dtype) for member in dtype.fields)


def with_interval_texts(value: Any, dtype: DataType) -> Any:
    """A Python value with its durations replaced by texts.

    Args:
        value: Of this type, as Arrow gives it: a list of pairs for a map.
        dtype: Its Spark type.
    """
    if value is None:
        return None
    if dtype.is_day_time:
        return day_time_text(dtype, value // _MICROSECOND)
    inner = [member.dtype for member in dtype.fields]
    match dtype.kind:
        case "array":
            return [with_interval_texts(element, inner[0]) for element in value]
        case "map":
            return [
                (with_interval_texts(k, inner[0]), with_interval_texts(v, inner[1]))
                for k, v in value
            ]
        case "struct":
            names = (member.name for member in dtype.fields)
            return {n: with_interval_texts(value[n], t) for n, t in zip(names, inner, strict=True)}
    return value
