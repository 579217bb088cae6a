"""Which values of a column a query reads: what partitions of an upstream table it needs."""

from __future__ import annotations

import datetime

import pytest

from stagecoach.planner import plan_query
from stagecoach.planner.catalog import MappingCatalog, TableInfo
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import ParameterSpec, StageGraph
from stagecoach.planner.pruning.time_range import TimeRange, reads_key_only, time_range
from stagecoach.planner.types import DATE, INT, STRING, TIMESTAMP, Field

COLUMNS = (Field("d", DATE), Field("ts", TIMESTAMP), Field("r", STRING), Field("x", INT))
CATALOG = MappingCatalog([TableInfo("t", COLUMNS), TableInfo("u", COLUMNS)])
START, END = datetime.datetime(2024, 3, 31), datetime.datetime(2024, 4, 1)
VALUES = {"s": START, "e": END}
DAY = datetime.timedelta(days=1)


def plan(sql: str, **options: object) -> StageGraph:
    parameters = (
        ParameterSpec("s", DATE),
        ParameterSpec("e", DATE),
        ParameterSpec("k", STRING),
    )
    return plan_query(sql, CATALOG, PlannerOptions(**options), name="q", parameters=parameters)


@pytest.mark.parametrize(
    ("where", "column", "low", "high"),
    [
        ("d >= :s AND d < :e", "d", START, END),
        (":s <= d AND :e > d", "d", START, END),
        ("d = :s", "d", START, END),
        ("d BETWEEN :s AND :s", "d", START, END),
        ("d > :s AND d <= :e", "d", END, END + DAY),
        ("d >= :s - INTERVAL 7 DAYS AND d < :e", "d", START - 7 * DAY, END),
        ("d BETWEEN date_sub(:s, 6) AND :s", "d", START - 6 * DAY, END),
        ("d >= add_months(:s, -1) AND d < :e", "d", datetime.datetime(2024, 2, 29), END),
        ("d >= trunc(:s, 'month') AND d < :e", "d", datetime.datetime(2024, 3, 1), END),
        ("d >= date_trunc('year', :s) AND d < :e", "d", datetime.datetime(2024, 1, 1), END),
        ("date(ts) = :s", "TS", START, END),
        ("ts >= :s AND ts < :e", "ts", START, END),
        (
            "ts >= :s AND ts < :e + INTERVAL 1 HOUR",
            "ts",
            START,
            END + datetime.timedelta(hours=1),
        ),
        (
            "ts >= :s - INTERVAL 1 MONTH AND ts < TIMESTAMP '2024-05-01 00:00:00'",
            "ts",
            datetime.datetime(2024, 2, 29),
            datetime.datetime(2024, 5, 1),
        ),
        ("d >= :s", "d", START, None),
        ("d < :e", "d", None, END),
        ("x > 3", "d", None, None),
        ("d >= :s OR x = 1", "d", None, None),
        ("d + 1 >= :s", "d", None, None),
        ("ts >= :s", "d", None, None),
        ("d >= least(:s, :e)", "d", None, None),
    ],
)
def test_bounds_of_one_scan(
    where: str, column: str, low: datetime.datetime | None, high: datetime.datetime | None
) -> None:
    graph = plan(f"SELECT sum(x) AS total FROM t WHERE {where}")
    assert graph.fallback_reason is None
    assert time_range(graph, "T", column, VALUES) == TimeRange(low, high)


def test_all_scans_count() -> None:
    sql = """
    SELECT a.x, b.total
    FROM t a JOIN (SELECT x, count(*) AS total FROM t WHERE d >= :s - INTERVAL 2 DAYS AND d < :e
                   GROUP BY x) b ON a.x = b.x
    WHERE a.d = :s
    """
    graph = plan(sql, force_distribution=True)
    assert time_range(graph, "t", "d", VALUES) == TimeRange(START - 2 * DAY, END)
    unfiltered = plan(f"{sql} AND EXISTS (SELECT 1 FROM t c WHERE c.x = a.x)")
    assert time_range(unfiltered, "t", "d", VALUES) == TimeRange()


def test_another_table_or_an_unknown_parameter_says_nothing() -> None:
    graph = plan("SELECT t.x FROM t JOIN u ON t.x = u.x WHERE u.d = :s")
    assert time_range(graph, "t", "d", VALUES) == TimeRange()
    assert time_range(graph, "u", "d", {}) == TimeRange()
    assert time_range(graph, "u", "d", VALUES) == TimeRange(START, END)


def test_a_query_that_spark_runs_whole_reads_everything() -> None:
    graph = plan("SELECT * FROM t TABLESAMPLE (10 ROWS) WHERE d = :s")
    assert graph.fallback_reason is not None
    assert time_range(graph, "t", "d", VALUES) == TimeRange()


def test_literals_of_the_session_zone_are_wall_clock_times() -> None:
    graph = plan(
        "SELECT x FROM t WHERE ts >= TIMESTAMP '2024-07-01 00:00:00'", time_zone="Europe/Berlin"
    )
    assert time_range(graph, "t", "ts", {}) == TimeRange(datetime.datetime(2024, 7, 1), None)


@pytest.mark.parametrize(
    ("where", "alike"),
    [("r = :k", True), (":k = r AND x = 1", True), ("r <> :k", False), ("r = 'a'", False)],
)
def test_a_filter_by_the_key(where: str, alike: bool) -> None:
    assert reads_key_only(plan(f"SELECT x FROM t WHERE {where}"), "t", "r", "k") is alike


def test_a_key_filter_must_be_on_every_scan() -> None:
    graph = plan("SELECT x FROM t WHERE r = :k UNION ALL SELECT x FROM t")
    assert not reads_key_only(graph, "t", "r", "k")
