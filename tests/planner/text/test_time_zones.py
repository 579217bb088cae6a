"""Time zones as DuckDB knows them."""

from __future__ import annotations

import datetime
import zoneinfo

import duckdb
import pytest

from stagecoach.infra.formats.partitions import canonical_value
from stagecoach.infra.pruning.predicates import timed
from stagecoach.infra.runtime.records.parameters import clock_value
from stagecoach.infra.runtime.stages.todays_times import today
from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.expressions import Cast, Literal
from stagecoach.planner.plan.stages import ParameterSpec
from stagecoach.planner.planning import plan_query
from stagecoach.planner.text.moments import moment_text
from stagecoach.planner.text.time_zones import duckdb_zone
from stagecoach.planner.types import DATE, STRING, TIMESTAMP

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


@pytest.mark.parametrize("zone", ["+02:00", "UTC+2", "GMT+02:00", "Africa/Cairo", "ART"])
def test_what_a_run_reads_in_the_zone_of_the_session(zone: str) -> None:
    noon = datetime.datetime(2026, 1, 31, 22, 30, tzinfo=datetime.UTC)
    day = ParameterSpec("current_date", DATE)
    assert clock_value(day, noon, zone).value == "2026-02-01"
    assert canonical_value("2026-02-01 00:30:00", TIMESTAMP, zone) == f"{noon:%F %T}.000000+00:00"
    moment = datetime.datetime(2026, 2, 1, 0, 30)
    assert moment_text(moment, zone) == f"{noon:%F %T}.000000"
    text = Cast(TIMESTAMP, Literal(STRING, "2026-02-01 00:30:00"))
    assert timed(text, zone) == Literal(TIMESTAMP, f"{noon:%F %T}.000000")
    assert len(today(zone)) == len("2026-02-01")
