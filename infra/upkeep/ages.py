"""Parses ages as people write them, such as `7d`."""

from __future__ import annotations

import datetime
import re

from stagecoach.infra.errors import ConfigError

_AGE = re.compile(r"(\d+)\s*([smhdw])")
_AGE_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_age(text: str) -> datetime.timedelta:
    """Return the age that a text such as `12h` or `7d` says.

    Raises:
        ConfigError: It is none.
    """
    match = _AGE.fullmatch(text.strip().lower())
    if match is None:
        raise ConfigError(
            f"'{text}' is not a valid age; give a number and s, m, h, d or w, such as 7d"
        )
    try:
        return datetime.timedelta(**{_AGE_UNITS[match[2]]: int(match[1])})
    except OverflowError:
        raise ConfigError(f"the age '{text}' is too long") from None
