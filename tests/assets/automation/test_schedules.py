"""Schedules: what a tick asks for."""

import datetime
import zoneinfo

import dagster as dg
import pytest

from stagecoach.assets.automation.schedules import build_schedule
from stagecoach.assets.project.front_matter import parse_front_matter
from stagecoach.assets.project.queries import Query


@dg.op
def nothing() -> None:
    pass


@dg.job(name="run_sales")
def a_job() -> None:
    nothing()


def schedule(front_matter: str) -> dg.ScheduleDefinition | None:
    sql = f"/*\n{front_matter}\n*/ SELECT 1 AS x"
    query = Query(name="sales", sql=sql, front_matter=parse_front_matter(sql))
    return build_schedule(query, a_job)  # type: ignore[arg-type]


def keys(made: dg.ScheduleDefinition, moment: datetime.datetime) -> list[str | None]:
    context = dg.build_schedule_context(scheduled_execution_time=moment)
    found = made(context)
    return [r.partition_key for r in found] if isinstance(found, list) else []


UTC = datetime.UTC


def test_without_the_key_there_is_none() -> None:
    assert schedule("description: x") is None


def test_cron_zone_and_words() -> None:
    made = schedule('description: Sales\nschedule: {cron: "0 6 * * *", timezone: Europe/Berlin}')
    assert made is not None
    assert (made.name, made.cron_schedule) == ("run_sales_schedule", "0 6 * * *")
    assert made.execution_timezone == "Europe/Berlin"
    assert made.default_status is dg.DefaultScheduleStatus.RUNNING
    assert made.description == "Sales (0 6 * * *, Europe/Berlin)"
    assert keys(made, datetime.datetime(2024, 5, 1, tzinfo=UTC)) == [None]


@pytest.mark.parametrize(
    ("partitions", "moment", "expected"),
    [
        ("daily, start: 2024-01-01", datetime.datetime(2024, 1, 3, 6, tzinfo=UTC), ["2024-01-02"]),
        ("monthly, start: 2024-01-01", datetime.datetime(2024, 3, 1, tzinfo=UTC), ["2024-02-01"]),
        (
            "hourly, start: 2024-01-01",
            datetime.datetime(2024, 1, 1, 5, 30, tzinfo=UTC),
            ["2024-01-01-04:00"],
        ),
        ("daily, start: 2024-01-01", datetime.datetime(2024, 1, 1, 23, tzinfo=UTC), []),
        (
            "daily, start: 2024-01-01, timezone: Asia/Tokyo",
            datetime.datetime(2024, 1, 2, 1, tzinfo=zoneinfo.ZoneInfo("Asia/Tokyo")),
            ["2024-01-01"],
        ),
    ],
)
def test_a_window_that_is_over(
    partitions: str, moment: datetime.datetime, expected: list[str]
) -> None:
    made = schedule(f'schedule: "@daily"\npartitions: {{by: {partitions}, column: x}}')
    assert made is not None
    assert keys(made, moment) == expected


def test_a_list_of_keys_runs_for_each() -> None:
    made = schedule('schedule: "@daily"\npartitions: {by: static, keys: [eu, us], column: x}')
    assert made is not None
    assert keys(made, datetime.datetime(2024, 5, 1, tzinfo=UTC)) == ["eu", "us"]
