"""Time zones as DuckDB knows them."""

from __future__ import annotations

import datetime
import zoneinfo

import duckdb
import pytest

from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.planning import plan_query
from stagecoach.planner.text.time_zones import duckdb_zone

MOMENT = datetime.datetime(2024, 7, 1, 12, tzinfo=datetime.UTC)


@pytest.mark.parametrize("hours", range(-12, 15))
@pytest.mark.parametrize("form", ["{sign}{hours:02}:00", "UTC{sign}{hours}", "GMT{sign}{hours:02}"])
def test_whole_hours_are_what_duckdb_takes_them_for(hours: int, form: str) -> None:
    zone = form.format(sign="-" if hours < 0 else "+", hours=abs(hours))
    found = duckdb_zone(zone)
    connection = duckdb.connect()
    connection.execute(f"SET TimeZone = '{found}'")
    (local,) = connection.execute(f"SELECT TIMESTAMPTZ '{MOMENT}'::TIMESTAMP").fetchone() or ()
    assert local == MOMENT.replace(tzinfo=None) + datetime.timedelta(hours=hours)


@pytest.mark.parametrize("zone", ["+05:30", "-13:00", "+18:00", "+01:00:30", "UTC+05:45"])
def test_other_offsets_are_left_to_spark(zone: str) -> None:
    assert duckdb_zone(zone) is None
    graph = plan_query("SELECT 1 AS a", MappingCatalog([]), PlannerOptions(time_zone=zone))
    assert [stage.engine for stage in graph.stages] == ["spark"]


def test_names_stay_as_they_are() -> None:
    names = ["Europe/Berlin", "UTC", "EST", "PST"]
    assert list(map(duckdb_zone, names)) == names
    assert duckdb_zone("Z") == "UTC"
    assert all(duckdb_zone(name) for name in zoneinfo.available_timezones())
