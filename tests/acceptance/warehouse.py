"""A project of queries that Dagster operates: its data, its files, and Spark's answer for each day.

bought, branches ─▶ daily ─▶ turnover ─▶ weekly     days, one backfill
        goals ────────────────────────▶ weekly     what does not depend on the day
payments ─▶ paid                                   a day with a fault
branches ─▶ feed ─▶ follow                         automation
branches ─▶ checked ─▶ below                       a check that fails
branches ─▶ often                                  every minute
branches ─▶ endless                                until it is cancelled

No table is called as one of the tutorial's: both projects are in one Dagster.
"""

from __future__ import annotations

import datetime
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from tests.share import EVERYTHING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCATION = "warehouse_location"
SCHEDULE = "run_often_schedule"
SENSOR = "stagecoach_on_upstream_change"
BACKFILLED = ("daily", "turnover", "weekly")
FIRST = datetime.date(2024, 1, 1)
DAYS = [FIRST + datetime.timedelta(days=number) for number in range(30 if EVERYTHING else 14)]
BAD_DAY, LOST_DAY = DAYS[9], DAYS[12]
REGIONS = ("north", "south", "east", "west")
NUM_SHOPS = 40

_WINDOWS = "partitions: {by: daily, start: 2024-01-01, end: 2024-01-31, column: day}"
QUERIES = {
    "daily": f"""/*
description: Orders by day and region
{_WINDOWS}
backfill: run_per_partition
*/
SELECT o.day, s.region, count(*) AS orders, sum(o.amount) AS amount
FROM bought o JOIN branches s ON o.shop = s.shop
WHERE o.day >= :partition_start AND o.day < :partition_end
GROUP BY o.day, s.region
""",
    "turnover": f"""/*
description: Revenue by day and region, with its share of the day
{_WINDOWS}
backfill: single_run
checks:
  - unique: [day, region]
*/
SELECT day, region, amount, sum(amount) OVER (PARTITION BY day) AS of_day
FROM daily WHERE day >= :partition_start AND day < :partition_end
""",
    "weekly": f"""/*
description: Seven days against the goal of each region
{_WINDOWS}
backfill: single_run
*/
SELECT w.day, w.region, w.week, g.goal
FROM (
  SELECT day, region,
    sum(amount) OVER (
      PARTITION BY region ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW
    ) AS week
  FROM turnover WHERE day > :partition_start - INTERVAL 7 DAYS AND day < :partition_end
) w JOIN goals g ON w.region = g.region
WHERE w.day >= :partition_start
""",
    "paid": f"""/*
description: What was paid, as text in the source
{_WINDOWS}
*/
SELECT day, count(*) AS payments, sum(CAST(amount AS BIGINT)) AS paid
FROM payments WHERE day >= :partition_start AND day < :partition_end GROUP BY day
""",
    "feed": "SELECT region, count(*) AS shops FROM branches GROUP BY region",
    "follow": """/*
automation: on_upstream_change
*/
SELECT count(*) AS regions, sum(shops) AS shops FROM feed
""",
    "checked": """/*
checks:
  - row_count: {min: 1000}
  - not_null: [region]
    severity: warn
*/
SELECT region, max(shop) AS last_shop FROM branches GROUP BY region
""",
    "below": "SELECT max(last_shop) AS last_shop FROM checked",
    "often": """/*
schedule: "* * * * *"
*/
SELECT min(shop) AS first_shop, max(shop) AS last_shop FROM branches
""",
    "endless": """
SELECT count(*) AS n FROM branches a CROSS JOIN branches b CROSS JOIN branches c
CROSS JOIN branches d CROSS JOIN branches e CROSS JOIN branches f CROSS JOIN branches g
WHERE (a.shop * b.shop + c.shop * d.shop * e.shop + f.shop * g.shop) % 7 = 3
""",
}
CATALOG = """tables:
  bought: {location: data/bought}
  branches: {location: data/branches}
  goals: {location: data/goals}
  payments: {location: data/payments}
"""
# Small data would be one stage on one task; these plans are as for large data.
MODULE = """from pathlib import Path

import dagster as dg

from stagecoach.assets import build_definitions
from stagecoach.planner.options import PlannerOptions

HERE = Path(__file__).parent


@dg.run_failure_sensor(default_status=dg.DefaultSensorStatus.RUNNING)
def alert(context: dg.RunFailureSensorContext) -> None:
    failed = [event.step_key for event in context.get_step_failure_events()]
    with open(HERE / "alerts.txt", "a", encoding="utf-8") as file:
        file.write(f"{context.dagster_run.run_id} {failed}\\n")


defs = dg.Definitions.merge(
    build_definitions(
        queries=HERE / "queries",
        catalog=HERE / "catalog.yaml",
        options=PlannerOptions(force_distribution=True, num_partitions=2, broadcast_bytes=0),
        schedules_run=False,
    ),
    dg.Definitions(sensors=[alert]),
)
"""
INSTANCE = """telemetry: {enabled: false}
nux: {enabled: false}
concurrency:
  runs: {max_concurrent_runs: 2}
run_coordinator:
  module: dagster._core.run_coordinator
  class: QueuedRunCoordinator
  config: {dequeue_interval_seconds: 1}
run_launcher: {module: stagecoach.run_launcher, class: WarmRunLauncher}
"""
# Plain Spark's SQL for all days at once; each name is that of a published table.
SPARK_SQL = {
    "daily": """SELECT o.day, s.region, count(*) AS orders, sum(o.amount) AS amount
        FROM bought o JOIN branches s ON o.shop = s.shop GROUP BY o.day, s.region""",
    "turnover": """SELECT day, region, amount, sum(amount) OVER (PARTITION BY day) AS of_day
        FROM daily""",
    "weekly": """SELECT w.day, w.region, w.week, g.goal
        FROM (SELECT day, region, sum(amount) OVER (PARTITION BY region ORDER BY day
              ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS week FROM turnover) w
        JOIN goals g ON w.region = g.region""",
    "paid": """SELECT day, count(*) AS payments, sum(CAST(amount AS BIGINT)) AS paid
        FROM payments GROUP BY day""",
    "feed": QUERIES["feed"],
    "follow": "SELECT count(*) AS regions, sum(shops) AS shops FROM feed",
    "often": "SELECT min(shop) AS first_shop, max(shop) AS last_shop FROM branches",
}


def write_project(folder: Path) -> None:
    """All files of the project, with its data, and beside it the folder of Dagster's state."""
    _write_data(folder / "data")
    (folder / "queries").mkdir()
    for name, text in QUERIES.items():
        (folder / "queries" / f"{name}.sql").write_text(text, encoding="utf-8")
    (folder / "catalog.yaml").write_text(CATALOG, encoding="utf-8")
    (folder / "warehouse_location.py").write_text(MODULE, encoding="utf-8")
    home = folder.parent / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text(INSTANCE, encoding="utf-8")


def write_payments(folder: Path, day: datetime.date, *, bad: bool = False) -> None:
    """The payments of a day, one of which is no number if they are bad."""
    amounts = [str(100 * day.day + number) for number in range(20)]
    if bad:
        amounts[7] = "7,00"
    table = pa.table({"day": [day] * len(amounts), "amount": amounts})
    pq.write_table(table, folder / "data" / "payments" / f"{day}.parquet")


def spark_answers(spark: SparkSession, folder: Path) -> dict[str, pa.Table]:
    """What plain Spark says of all days, by the name of the table."""
    session = spark
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.ansi.enabled", "true")
    for path in sorted((folder / "data").iterdir()):
        session.read.parquet(str(path)).createOrReplaceTempView(path.name)
    answers: dict[str, pa.Table] = {}
    for name, sql in SPARK_SQL.items():
        frame = session.sql(sql)
        frame.createOrReplaceTempView(name)
        answers[name] = frame.toArrow()
    return answers


def _write_data(folder: Path) -> None:
    dice = random.Random(20240101)
    for name in ("bought", "branches", "goals", "payments"):
        (folder / name).mkdir(parents=True)
    for day in DAYS:
        size = dice.randrange(150, 250)
        orders = {
            "order": pa.array(range(size), pa.int64()),
            "day": [day] * size,
            "shop": pa.array([dice.randrange(NUM_SHOPS) for _ in range(size)], pa.int32()),
            "amount": pa.array([dice.randrange(-50, 100_000) for _ in range(size)], pa.int64()),
        }
        pq.write_table(pa.table(orders), folder / "bought" / f"{day}.parquet")
        write_payments(folder.parent, day, bad=day == BAD_DAY)
    numbers = pa.array(range(NUM_SHOPS), pa.int32())
    regions = [dice.choice(REGIONS) for _ in range(NUM_SHOPS)]
    shops = pa.table({"shop": numbers, "region": regions})
    pq.write_table(shops, folder / "branches" / "1.parquet")
    goals = pa.table({"region": REGIONS, "goal": pa.array(range(len(REGIONS)), pa.int64())})
    pq.write_table(goals, folder / "goals" / "1.parquet")
