"""What is known of time zones by name: which never change their clocks, and which DuckDB knows."""

from __future__ import annotations

import datetime
import zoneinfo

from stagecoach.planner.option_values import OFFSET, SHORT_ZONES

UTC_NAMES = frozenset(("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z"))
"""Zones in which no clock is ever changed, so that a day always has 24 hours."""

# Zones whose rules differ between the Java and the ICU of the engines' releases (measured on a
# grid of 1849 to 2148), and their links.
_UNLIKE_ZONES = frozenset(
    (
        "Africa/Casablanca",
        "Africa/El_Aaiun",
        "America/Edmonton",
        "America/Ensenada",
        "America/Inuvik",
        "America/Rainy_River",
        "America/Santa_Isabel",
        "America/Tijuana",
        "America/Vancouver",
        "America/Winnipeg",
        "America/Yellowknife",
        "Asia/Tehran",
        "Canada/Central",
        "Canada/Mountain",
        "Canada/Pacific",
        "Europe/Chisinau",
        "Europe/Dublin",
        "Europe/Tiraspol",
        "Mexico/BajaNorte",
        "America/Coyhaique",
        "America/Ciudad_Juarez",
    )
)


def zone_reason(zone: str) -> str | None:
    """Why DuckDB must not compute with local times of a zone, or None."""
    if zone in ("UTC", "Etc/UTC"):
        return None
    region, slash, city = zone.partition("/")
    if not slash or not region.isalpha() or not city or zone in _UNLIKE_ZONES:
        return f"the rules of time zone '{zone}' are not proven"
    return None


def duckdb_zone(zone: str) -> str | None:
    """The name that DuckDB knows a zone by; None for an offset that it does not know."""
    if zone in ("Z", "UT"):
        return "UTC"
    offset = OFFSET.fullmatch(zone)
    if offset is None:
        return zone
    sign, hours, minutes, seconds = offset.groups(default="00")
    most = 14 if sign == "+" else 12
    if (minutes, seconds) != ("00", "00") or int(hours) > most:
        return None
    # Names of this kind count the other way round: POSIX says how far UTC is ahead.
    return f"Etc/GMT{'-' if sign == '+' else '+'}{int(hours)}" if int(hours) else "UTC"


def zone_info(zone: str) -> datetime.tzinfo:
    """Python's form of a session's time zone.

    Args:
        zone: A region, an offset such as `+02:00`, or one of Java's short names.

    Raises:
        zoneinfo.ZoneInfoNotFoundError: The name is not a known time zone.
    """
    zone = SHORT_ZONES.get(zone, zone)
    offset = OFFSET.fullmatch(zone)
    if offset is None:
        return zoneinfo.ZoneInfo("UTC" if zone in ("Z", "UT") else zone)
    sign, hours, minutes, seconds = offset.groups(default="00")
    ahead = datetime.timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds))
    return datetime.timezone(ahead if sign == "+" else -ahead)
