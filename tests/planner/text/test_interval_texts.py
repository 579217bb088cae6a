"""Intervals as texts; that Spark writes the same is tested in tests/stagecoach/api/test_session.py."""

from __future__ import annotations

import datetime

import pytest

from stagecoach.planner.text.interval_texts import (
    day_time_text,
    has_day_time,
    with_interval_texts,
)
from stagecoach.planner.types import INT, STRING, Field, array_of, interval_of, map_of, struct_of

SECOND = 1_000_000
HOURS = interval_of("hour", "hour")


@pytest.mark.parametrize(
    ("first", "last", "amount", "text"),
    [
        ("day", "second", 93_784 * SECOND + 500_000, "'1 02:03:04.5' DAY TO SECOND"),
        ("day", "second", -60 * SECOND, "'-0 00:01:00' DAY TO SECOND"),
        ("day", "second", 0, "'0 00:00:00' DAY TO SECOND"),
        ("day", "day", 29 * 86_400 * SECOND, "'29' DAY"),
        ("day", "hour", 93_600 * SECOND, "'1 02' DAY TO HOUR"),
        ("hour", "hour", 3 * 3_600 * SECOND, "'03' HOUR"),
        ("hour", "second", 100 * 3_600 * SECOND + 1, "'100:00:00.000001' HOUR TO SECOND"),
        ("minute", "minute", -300 * SECOND, "'-05' MINUTE"),
        ("second", "second", 2 * SECOND, "'02' SECOND"),
        ("second", "second", 75 * SECOND + 250_000, "'75.25' SECOND"),
    ],
)
def test_texts_are_those_of_spark(first: str, last: str, amount: int, text: str) -> None:
    assert day_time_text(interval_of(first, last), amount) == f"INTERVAL {text}"


def test_intervals_inside_of_other_values() -> None:
    dtype = struct_of(
        (
            Field("a", array_of(HOURS)),
            Field("m", map_of(STRING, HOURS)),
            Field("n", INT),
        )
    )
    hour = datetime.timedelta(hours=1)
    assert has_day_time(dtype)
    assert not has_day_time(array_of(INT))
    assert with_interval_texts({"a": [hour, None], "m": [("k", hour)], "n": 1}, dtype) == {
        "a": ["INTERVAL '01' HOUR", None],
        "m": [("k", "INTERVAL '01' HOUR")],
        "n": 1,
    }
    assert with_interval_texts(None, dtype) is None
