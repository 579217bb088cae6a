"""Reads and checks the values of options and settings.

A rule says what an option takes, in the terms of the field that holds it. Those of the planner and
those of a run are read by the same rules, so each takes the same units everywhere.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
import os
import re
import zoneinfo
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt])(?:i?b)?", re.IGNORECASE)
_SIZE_UNITS = {"k": 10, "m": 20, "g": 30, "t": 40}
OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?")
"""An offset as a time zone, such as `+02:00`: its sign, hours, minutes and seconds."""

SHORT_ZONES = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "ART": "Africa/Cairo",
    "AGT": "America/Argentina/Buenos_Aires",
    "AST": "America/Anchorage",
    "CST": "America/Chicago",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
    "EST": "-05:00",
    "MST": "-07:00",
    "HST": "-10:00",
}
"""`java.time.ZoneId.SHORT_IDS`. Some of these names mean another zone in the tz database."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Between what a number must lie.

    Args:
        low: The smallest it may be.
        above: Whether it must be larger than `low`.
        high: The largest it may be; None for any.
    """

    low: float = 0
    above: bool = False
    high: float | None = None

    def hold(self, number: float) -> bool:
        """Whether a number lies in between."""
        fits = number > self.low if self.above else number >= self.low
        return fits and (self.high is None or number <= self.high)

    def __str__(self) -> str:
        if self.above:
            return f"above {self.low:g}"
        if self.high is not None:
            return f"from {self.low:g} to {self.high:.0f}"
        return f"from {self.low:g} on"


@dataclass(frozen=True, kw_only=True)
class ValueRule:
    """What an option takes.

    Args:
        type: What its values are.
        is_bytes: Whether it is a number of bytes, which may have a unit.
        is_zone: Whether it is a time zone.
        limits: Of a number.
        choices: The texts that there are; empty for any.
    """

    type: type[bool] | type[int] | type[float] | type[str]
    is_bytes: bool = False
    is_zone: bool = False
    limits: Limits | None = None
    choices: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """What it takes, as an advice."""
        if self.choices:
            return f"use {', '.join(self.choices[:-1])} or {self.choices[-1]}"
        if self.is_zone:
            return "give an IANA name such as UTC or Europe/Berlin, or an offset such as +02:00"
        if self.type in (bool, str):
            return "give true or false" if self.type is bool else "give a text"
        what = "number" if self.type is float else "whole number"
        limits = "" if self.limits is None else f" {self.limits}"
        if self.is_bytes:
            return f"give a number of bytes{limits}, such as 1048576 or 64MB"
        return f"give a {what}{limits}"

    def read(self, value: object) -> Any:
        """The value that a text or plain data stands for.

        Raises:
            ValueError: It stands for none that is allowed.
        """
        try:
            found = self._converted(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(self.allowed) from error
        if not self.fits(found):
            raise ValueError(self.allowed)
        return found

    def fits(self, value: Any) -> bool:
        """Whether a value of the right type is allowed."""
        if self.is_zone:
            return is_time_zone(value)
        if self.choices:
            return value in self.choices
        if isinstance(value, float) and not math.isfinite(value):
            return False
        return self.limits is None or self.limits.hold(value)

    def _converted(self, value: object) -> object:
        if self.type is bool:
            return _to_bool(value)
        if self.type is str:
            return _only(str, os.fspath(value) if isinstance(value, os.PathLike) else value)
        if isinstance(value, str):
            return _to_bytes(value) if self.is_bytes else self.type(value)
        if isinstance(value, bool):
            raise TypeError("a boolean is not a number")
        return float(_only((int, float), value)) if self.type is float else _only(int, value)


def rules_of(
    model: type[Any],
    *,
    limits: Mapping[str, Limits],
    choices: Mapping[str, tuple[str, ...]],
) -> Mapping[str, ValueRule]:
    """The rules of a model's fields, by the types of their defaults and by their names.

    Args:
        model: A dataclass; fields whose default is neither a number nor a text have no rule.
        limits: Of the fields that are numbers.
        choices: Of the fields that take certain texts only.
    """
    kinds = (bool, int, float, str)
    return {
        field.name: ValueRule(
            type=next(kind for kind in kinds if type(field.default) is kind),
            is_bytes=field.name.endswith("_bytes"),
            is_zone=field.name == "time_zone",
            limits=limits.get(field.name),
            choices=choices.get(field.name, ()),
        )
        for field in dataclasses.fields(model)
        if type(field.default) in kinds
    }


def refusal(name: str, value: object, allowed: str, source: str = "") -> str:
    """The words for a value that is not allowed.

    Args:
        name: Of the option.
        value: What was given, without secrets.
        allowed: What may be given.
        source: Where the value came from, if that is known.
    """
    shown = f"'{value}'" if isinstance(value, str) else str(value)
    return f"{name} is {shown}{in_source(source)}; {allowed}"


def there_are(name: str, known: Iterable[str]) -> str:
    """What a message says of an unknown name: the one that was meant, or all there are."""
    names = list(known)
    if close := difflib.get_close_matches(name, names, n=1):
        return f"did you mean {close[0]}?"
    return f"there are {', '.join(names)}"


def in_source(source: str) -> str:
    """Where something came from, in brackets; nothing where that is not known."""
    return f" ({source})" if source else ""


@functools.lru_cache(maxsize=256)
def is_time_zone(name: str) -> bool:
    """Whether Spark has such a time zone: a region, an offset, or one of Java's short names."""
    is_offset = name == "Z" or OFFSET.fullmatch(name) is not None
    return is_offset or name in SHORT_ZONES or is_region(name)


def is_region(name: str) -> bool:
    """Whether Python has a time zone of that name; the list of all takes long to make."""
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _only(types: Any, value: Any) -> Any:
    if not isinstance(value, types):
        raise TypeError(f"{value!r} is of another type")
    return value


def _to_bool(value: object) -> bool:
    if str(value).lower() not in ("true", "false"):
        raise TypeError("neither true nor false")
    return str(value).lower() == "true"


def _to_bytes(text: str) -> int:
    """A number of bytes, also with a unit: `256MB` and `256MiB` are 256 × 2^20."""
    if match := _SIZE.fullmatch(text.strip()):
        return int(float(match[1]) * (1 << _SIZE_UNITS[match[2].lower()]))
    return int(text)
