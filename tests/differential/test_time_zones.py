"""Dates, timestamps and intervals in session time zones, around the changes of their clocks."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stagecoach.planner import plan_query
from stagecoach.planner.option_values import SHORT_ZONES
from stagecoach.planner.text.time_zones import zone_info, zone_reason
from tests.differential.cases_times import MOMENTS
from tests.differential.edge_tables import EdgeTables
from tests.differential.inprocess import InProcessRunner
from tests.differential.moments import write_moments
from tests.differential.query_check import ALL_OPTIONS, ask_spark, differences
from tests.differential.test_functions import BATCH, OPTIONS, Proof, report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
def test_moments_are_equal_in_zones(oracle: SparkSession, tmp_path: Path, zone: str) -> None:
    tables = write_moments(tmp_path)
    session = oracle.newSession()
    for name in ("ansi.enabled", "codegen.wholeStage", "codegen.factoryMode"):
        session.conf.set(f"spark.sql.{name}", oracle.conf.get(f"spark.sql.{name}"))
    session.conf.set("spark.sql.session.timeZone", zone)
    session.read.parquet(*tables.files["e"]).createOrReplaceTempView("e")
    # All cases in one zone, parts of them in the others: Spark takes seconds for each batch.
    expressions = {"Europe/Berlin": MOMENTS, "America/New_York": MOMENTS[::2]}.get(
        zone, MOMENTS[::4]
    )
    proof = Proof(tables, session, zone)
    cases = [proof.plan(expr) for expr in expressions]
    wrong = [f"{c.expr}: is not native: {c.refusal}" for c in cases if not c.is_native]
    for start in range(0, len(cases), BATCH):
        wrong += proof.compare([c for c in cases[start : start + BATCH] if c.is_native])
    assert not wrong, report(wrong)


OFFSETS = (
    "Z",
    "UT",
    "+02:00",
    "-2:30",
    "+05:45",
    "UTC+1",
    "GMT-03:30",
    "UT+11",
    "+18:00",
    "+010203",
)
REGIONS = ("UTC", "GMT", "Europe/Berlin", "America/St_Johns", "Asia/Kolkata", "EST5EDT")


def test_python_has_the_zones_of_spark(oracle: SparkSession) -> None:
    """Partitions of files, times of today and what is printed are in them."""
    wrong = []
    for zone in (*SHORT_ZONES, *OFFSETS, *REGIONS):
        for month in (1, 7):
            moment = datetime.datetime(2024, month, 1, 12, tzinfo=datetime.UTC)
            sql = (
                f"SELECT from_utc_timestamp(TIMESTAMP_NTZ'{moment:%Y-%m-%d %H:%M}', '{zone}') AS t"
            )
            text = oracle.sql(f"SELECT CAST(t AS STRING) AS t FROM ({sql})").collect()[0].t
            local = f"{moment.astimezone(zone_info(zone)):%Y-%m-%d %H:%M:%S}"
            wrong += [] if text == local else [(zone, month, text, local)]
    assert not wrong


@pytest.mark.parametrize("function", ["to_date", "try_to_date"])
def test_a_day_that_a_zone_skips_is_read_as_the_next(
    oracle: SparkSession, tmp_path: Path, function: str
) -> None:
    zone = "Pacific/Apia"
    session = oracle.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    tables = write_moments(tmp_path, 2)
    session.read.parquet(*tables.files["e"]).createOrReplaceTempView("e")
    proof = Proof(tables, session, zone)
    cases = [
        proof.plan(f"{function}('2011-12-{day}{clock}', 'yyyy-MM-dd{pattern}')")
        for day in (29, 30, 31)
        for clock, pattern in (("", ""), (" 23:59", " HH:mm"))
    ]
    wrong = proof.compare(cases) if all(case.is_native for case in cases) else ["not native"]
    assert not wrong, report(wrong)


@pytest.mark.parametrize("zone", ["Asia/Tehran", "PST", "+02:00", "America/Vancouver"])
def test_zones_of_other_rules_are_refused(tmp_path: Path, zone: str) -> None:
    catalog = write_moments(tmp_path, 2).catalog
    options = OPTIONS.updated({"time_zone": zone})
    for expr in ("hour(ts)", "CAST(tn AS TIMESTAMP)", "ts + INTERVAL 1 DAY", "current_timezone()"):
        stage = plan_query(f"SELECT {expr} AS v FROM e", catalog, options).head
        assert stage.engine == "spark"
        assert stage.engine_reason == zone_reason(zone)
    for expr in ("year(dt)", "hour(tn)", "ts = tu", "unix_micros(ts)", "dt - du"):
        assert plan_query(f"SELECT {expr} AS v FROM e", catalog, options).head.engine == "duckdb"


INTERVALS = [
    "SELECT max(dt) - min(dt) AS days FROM g",
    "SELECT g, sum(dt - DATE'2000-01-01') AS s, avg(ts - TIMESTAMP'2000-01-01 00:00:00') AS a, max(ts - tn) AS m, min(dt - gt) AS l, count(DISTINCT dt - gt) AS n FROM g GROUP BY g",
    "SELECT dt - gt AS days, count(*) AS n FROM g GROUP BY dt - gt",
    "SELECT g, CAST(CAST(sum(make_ym_interval(0, h)) AS INTERVAL MONTH) AS INT) AS s, CAST(CAST(avg(make_ym_interval(0, h)) AS INTERVAL MONTH) AS INT) AS a FROM g GROUP BY g",
    "SELECT a.id, b.v FROM (SELECT id, dt - gt AS x FROM g) a JOIN (SELECT v, v * INTERVAL 1 DAY AS y FROM x) b ON a.x = b.y",
    "SELECT id, dt - gt AS x FROM g WHERE dt - gt > INTERVAL 1 DAY ORDER BY x DESC, id LIMIT 7",
]  # fmt: skip


@pytest.mark.parametrize("sql", INTERVALS)
def test_intervals_travel_between_stages(
    oracle: SparkSession, tables: EdgeTables, runner: InProcessRunner, sql: str
) -> None:
    expected = ask_spark(oracle, sql)
    for name, options in ALL_OPTIONS.items():
        # Months travel in no exchange, so the query may be handed over whole.
        native = "make_ym_interval" not in sql or name == "single"
        found = differences(sql, tables.catalog, runner, expected, options, native=native)
        assert not found, f"{name}: {found}"
