"""Partitions: Dagster's definitions, what a run binds, and which partitions a reader needs."""

import datetime
import warnings
import zoneinfo

import dagster as dg
import pytest

from stagecoach.assets.project.front_matter import FrontMatter, TimePartitions, parse_front_matter
from stagecoach.assets.project.parameters import declared_parameters
from stagecoach.assets.project.partitions import (
    RunWindow,
    backfill_policy,
    key_windows,
    partition_mapping,
    partitions_definition,
    window_values,
)
from stagecoach.planner import plan_query
from stagecoach.planner.catalog import MappingCatalog, TableInfo
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.types import DATE, INT, STRING, TIMESTAMP, Field

COLUMNS = (Field("day", DATE), Field("at", TIMESTAMP), Field("region", STRING), Field("x", INT))
CATALOG = MappingCatalog([TableInfo("made", COLUMNS)])
DAILY = "{by: daily, start: 2024-01-01, column: day}"
HOURLY = "{by: hourly, start: 2024-01-01, column: at}"
MONTHLY = "{by: monthly, start: 2024-01-01, column: day}"
WEEKLY = "{by: weekly, start: 2024-01-01, column: day}"
STATIC = "{by: static, keys: [eu, us], column: region}"


def front_matter(partitions: str, more: str = "") -> FrontMatter:
    return parse_front_matter(f"/*\npartitions: {partitions}\n{more}\n*/ SELECT 1")


def plan(where: str, partitions: str, **options: object) -> StageGraph:
    parameters = declared_parameters(front_matter(partitions))
    return plan_query(
        f"SELECT count(*) AS n FROM made WHERE {where}",
        CATALOG,
        PlannerOptions(**options),
        name="reader",
        parameters=parameters,
    )


@pytest.mark.parametrize(
    ("partitions", "keys"),
    [
        (DAILY, ["2024-01-01", "2024-01-02"]),
        (HOURLY, ["2024-01-01-00:00", "2024-01-01-01:00"]),
        (MONTHLY, ["2024-01-01", "2024-02-01"]),
        ("{by: weekly, start: 2024-01-03, column: day}", ["2024-01-03", "2024-01-10"]),
        ("{by: weekly, start: 2024-01-07, column: day}", ["2024-01-07", "2024-01-14"]),
        (STATIC, ["eu", "us"]),
    ],
)
def test_definitions_begin_where_the_front_matter_says(partitions: str, keys: list[str]) -> None:
    made = front_matter(partitions).partitions
    assert made is not None
    assert partitions_definition(made).get_partition_keys()[:2] == keys


def test_an_end_and_a_zone_are_kept() -> None:
    made = front_matter(
        "{by: daily, start: 2024-01-01, end: 2024-01-03, timezone: Europe/Berlin, column: day}"
    )
    assert made.partitions is not None
    definition = partitions_definition(made.partitions)
    assert definition.get_partition_keys() == ["2024-01-01", "2024-01-02"]
    assert isinstance(definition, dg.TimeWindowPartitionsDefinition)
    assert definition.timezone == "Europe/Berlin"


def test_policies() -> None:
    assert backfill_policy(parse_front_matter("SELECT 1")) is None
    each = backfill_policy(front_matter(DAILY))
    assert each is not None
    assert each.max_partitions_per_run == 1
    single = backfill_policy(front_matter(DAILY, "backfill: single_run"))
    assert single == dg.BackfillPolicy.single_run()
    some = backfill_policy(front_matter(DAILY, "backfill: {max_partitions_per_run: 7}"))
    assert some == dg.BackfillPolicy.multi_run(7)


def test_a_window_binds_wall_clock_dates_of_its_zone() -> None:
    zone = zoneinfo.ZoneInfo("America/New_York")
    start = datetime.datetime(2024, 3, 10, tzinfo=zone)
    window = RunWindow(
        keys=("2024-03-10",),
        start=start.astimezone(datetime.UTC),
        end=datetime.datetime(2024, 3, 11, tzinfo=zone).astimezone(datetime.UTC),
    )
    daily = front_matter(
        "{by: daily, start: 2024-01-01, timezone: America/New_York, column: day}"
    ).partitions
    assert daily is not None
    assert window_values(window, daily) == {
        "partition_key": "2024-03-10",
        "partition_start": "2024-03-10",
        "partition_end": "2024-03-11",
    }
    exact = front_matter(
        "{by: daily, start: 2024-01-01, timezone: America/New_York, type: timestamp, column: day}"
    ).partitions
    assert exact is not None
    values = window_values(window, exact)
    assert values["partition_start"] == "2024-03-10 00:00:00-05:00"
    assert values["partition_end"] == "2024-03-11 00:00:00-04:00"


def test_a_range_has_no_key() -> None:
    made = front_matter(STATIC).partitions
    assert made is not None
    assert window_values(RunWindow(keys=("eu", "us")), made) == {}
    assert window_values(RunWindow(keys=("eu",)), made) == {"partition_key": "eu"}


def test_each_key_of_a_range_has_its_window() -> None:
    made = front_matter(DAILY).partitions
    assert isinstance(made, TimePartitions)
    windows = key_windows(made, RunWindow(keys=("2024-01-01", "2024-01-02")))
    assert [(key, str(w.start)[:10], str(w.end)[:10]) for key, w in windows] == [
        ("2024-01-01", "2024-01-01", "2024-01-02"),
        ("2024-01-02", "2024-01-02", "2024-01-03"),
    ]


ALL = dg.AllPartitionMapping()


def offsets(start: int, end: int) -> dg.TimeWindowPartitionMapping:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        return dg.TimeWindowPartitionMapping(
            start_offset=start, end_offset=end, allow_nonexistent_upstream_partitions=True
        )


@pytest.mark.parametrize(
    ("where", "reader", "made", "expected"),
    [
        ("day >= :partition_start AND day < :partition_end", DAILY, DAILY, offsets(0, 0)),
        ("day = :partition_start", DAILY, DAILY, offsets(0, 0)),
        (
            "day >= :partition_start - INTERVAL 6 DAYS AND day < :partition_end",
            DAILY,
            DAILY,
            offsets(-6, 0),
        ),
        ("day = date_sub(:partition_start, 1)", DAILY, DAILY, offsets(-1, -1)),
        ("day >= :partition_start AND day < :partition_end", MONTHLY, DAILY, offsets(0, 0)),
        ("day >= :partition_start AND day < :partition_end", WEEKLY, DAILY, offsets(0, 0)),
        (
            "day >= add_months(:partition_start, -1) AND day < :partition_end",
            MONTHLY,
            MONTHLY,
            offsets(-1, 0),
        ),
        (
            "at >= :partition_start - INTERVAL 2 HOURS AND at < :partition_end",
            HOURLY,
            HOURLY,
            offsets(-2, 0),
        ),
        ("at >= :partition_start AND at < :partition_end", DAILY, HOURLY, offsets(0, 0)),
        # A month is no fixed number of days.
        ("day >= add_months(:partition_start, -1) AND day < :partition_end", MONTHLY, DAILY, ALL),
        ("day < :partition_end", DAILY, DAILY, ALL),
        ("x = 1 AND :partition_start IS NOT NULL", DAILY, DAILY, ALL),
        ("day >= :partition_start OR x = 1", DAILY, DAILY, ALL),
        ("region = :partition_key", STATIC, STATIC, dg.IdentityPartitionMapping()),
        ("region <> :partition_key", STATIC, STATIC, ALL),
        ("region = :partition_key", STATIC, DAILY, ALL),
        ("day = :partition_start", DAILY, STATIC, ALL),
    ],
)
def test_what_a_reader_needs_follows_from_its_sql(
    where: str, reader: str, made: str, expected: dg.PartitionMapping
) -> None:
    graph = plan(where, reader)
    mapping = partition_mapping(
        graph, "made", front_matter(reader).partitions, front_matter(made).partitions
    )
    assert mapping == expected


def test_without_partitions_on_one_side_dagster_decides() -> None:
    graph = plan("day = :partition_start", DAILY)
    assert partition_mapping(graph, "made", None, front_matter(DAILY).partitions) is None
    assert partition_mapping(graph, "made", front_matter(DAILY).partitions, None) is None


def test_moments_of_another_zone_than_the_sessions_are_not_compared() -> None:
    berlin = "{by: hourly, start: 2024-01-01, column: at, timezone: Europe/Berlin}"
    where = "at >= :partition_start AND at < :partition_end"
    both = front_matter(berlin).partitions
    assert partition_mapping(plan(where, berlin), "made", both, both) == ALL
    same = plan(where, berlin, time_zone="Europe/Berlin")
    assert partition_mapping(same, "made", both, both) == offsets(0, 0)


def test_a_table_without_a_partition_column_is_needed_whole() -> None:
    graph = plan("day = :partition_start", DAILY)
    made = front_matter("{by: daily, start: 2024-01-01}", "output: {mode: append}").partitions
    assert partition_mapping(graph, "made", front_matter(DAILY).partitions, made) == ALL
