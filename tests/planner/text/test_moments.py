"""Months and moments: the same day of another month, and timestamps in the session's zone."""

from __future__ import annotations

import datetime
import zoneinfo

import pytest

from stagecoach.planner.text.moments import moment_text, plus_months, session_moment, wall_clock

BERLIN = "Europe/Berlin"


@pytest.mark.parametrize(
    ("day", "months", "result"),
    [
        ("2024-01-31", 1, "2024-02-29"),
        ("2024-03-31", -13, "2023-02-28"),
        ("2024-12-15", 1, "2025-01-15"),
        ("2024-02-29", 48, "2028-02-29"),
        ("2024-02-29", 0, "2024-02-29"),
        ("0001-02-01", -1, "0001-01-01"),
    ],
)
def test_a_month_that_has_no_such_day_has_a_last_one(day: str, months: int, result: str) -> None:
    assert plus_months(datetime.date.fromisoformat(day), months).isoformat() == result
    evening = datetime.datetime.fromisoformat(f"{day} 23:59:59")
    assert plus_months(evening, months) == datetime.datetime.fromisoformat(f"{result} 23:59:59")


@pytest.mark.parametrize("months", [-12 * 2024, 12 * 8000, 1 << 70])
def test_no_month_outside_of_the_calendar(months: int) -> None:
    with pytest.raises((ValueError, OverflowError)):
        plus_months(datetime.date(2024, 1, 1), months)


def test_a_timestamp_is_read_as_it_was_written() -> None:
    noon = datetime.datetime(2024, 7, 1, 12)
    assert moment_text(noon, BERLIN) == "2024-07-01 10:00:00.000000"
    assert session_moment(moment_text(noon, BERLIN), zoneinfo.ZoneInfo(BERLIN)) == noon


def test_a_wall_clock_time_names_no_zone() -> None:
    assert wall_clock("2024-07-01") == datetime.datetime(2024, 7, 1)
    with pytest.raises(ValueError, match="names a zone"):
        wall_clock("2024-07-01T10:00:00Z")
