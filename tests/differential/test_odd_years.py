"""Dates and moments of years beyond 1 to 9999, and of offsets with seconds: as texts and from texts."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.differential.edge_tables import EdgeTables
from tests.differential.spark_answers import plain_session
from tests.differential.test_functions import Proof, report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCHEMA = pa.schema([("id", pa.int32()), ("ts", pa.timestamp("us", "UTC")), ("tn", pa.timestamp("us")), ("dt", pa.date32()), ("du", pa.date32()), ("s", pa.string()), ("t", pa.string())])  # fmt: skip
YEAR_MICROS, YEAR_DAYS, DAY = 31_556_952_000_000, 365.2425, 86_400_000_000
YEARS = [-290_000, -10_001, -9999, -101, -4, -1, 0, 1, 4, 99, 9998, 9999, 10_000, 10_001, 290_000]
ROWS = 3000
PATTERNS = ["yyyy-MM-dd", "y", "yy/M/d", "yyyy-MM-dd HH:mm:ss.SSSSSS", "EEEE D, MMM", "QQQ a h"]
EXPRESSIONS = [
    "CAST(ts AS STRING)", "CAST(tn AS STRING)", "CAST(dt AS STRING)", "CAST(du AS STRING)", "concat(dt, '|', tn)",
    "CAST(array(ts, NULL) AS STRING)", "CAST(struct(dt, tn) AS STRING)", "to_json(struct(ts, tn, dt, du))",
    "to_json(map('a', ts))", "to_csv(struct(ts, tn, dt))",
    *(f"date_format({c}, '{p}')" for c in ("ts", "tn", "dt") for p in PATTERNS),
]  # fmt: skip


def micros(rng: random.Random) -> int:
    """A moment near the beginning of an odd year, or in the time of local mean time."""
    if rng.random() < 0.3:
        return rng.randrange(-200 * YEAR_MICROS, 10 * YEAR_MICROS)
    start = (rng.choice(YEARS) - 1970) * YEAR_MICROS
    return start + rng.choice([0, rng.randrange(-DAY, DAY), rng.randrange(-YEAR_MICROS, YEAR_MICROS)])  # fmt: skip


def text(rng: random.Random) -> str:
    """A text that is a date in most of its parts."""
    year = str(rng.choice([0, 1, 2024, 9999, 10_000, 5_881_580, rng.randrange(10_000_000)]))
    parts = [
        rng.choice(["", "", "", "+", "-", " ", "\t-", "\u00a0"]) + year.zfill(rng.randint(3, 8)),
        rng.choice(["1", "02", "12", "7", "13", "011", ""]),
        rng.choice(["1", "29", "30", "31", "32", "7", "007", "x", "-1"]),
    ]
    tail = rng.choice(["", "", "", " ", "T", " x", "T10:11", "\n", " a\nb", "Z", "\x7f", "-"])
    return rng.choice(["-", "-", "-", "-", "/"]).join(parts[: rng.randint(1, 3)]) + tail


def moment_text(rng: random.Random) -> str:
    """A text that is a moment in most of its parts."""
    if rng.random() < 0.2:
        return text(rng)
    day = rng.choice(["2024-02-29", "2024-2-9", "+10000-01-01", "-0001-12-31", "0000-1-1", "2023-02-29", "294247-01-10", "-290308-12-21", "2024-11-03", "999999-01-01", ""])  # fmt: skip
    clock = rng.choice(["10:11:12", "1:2:3", "10", "10:11", "23:59:60", "24:00:00", "04:00:54", "10:11:012", "01:30:00", "10:11:"])  # fmt: skip
    fraction = rng.choice(["", "", ".", ".5", ".123456", ".1234567", ".0000", ".775806", ".1.2"])
    zone = rng.choice(["", "", "", "Z", "+01:00", "-8:30", "+18:00", "-18:01", "+1:2", " +02:00", "z", "?", " ", "\n"])  # fmt: skip
    return day + rng.choice([" ", "T", "  "]) + clock + fraction + zone


def write_table(folder: Path) -> EdgeTables:
    rng = random.Random(18)

    def column(value: int) -> int | None:
        return None if rng.random() < 0.02 else value

    instants = [column(micros(rng)) for _ in range(ROWS)]
    locals_ = [column(micros(rng)) for _ in range(ROWS)]
    days = [column(micros(rng) // DAY) for _ in range(ROWS)]
    far = [rng.randrange(-(2**31) + 2, 2**31 - 2) for _ in range(ROWS)]
    columns = [
        pa.array(range(ROWS), pa.int32()),
        pa.array(instants, pa.int64()).cast(SCHEMA.field("ts").type),
        pa.array(locals_, pa.int64()).cast(SCHEMA.field("tn").type),
        pa.array(days, pa.int32()).cast(pa.date32()),
        pa.array(far, pa.int32()).cast(pa.date32()),
        pa.array([text(rng) for _ in range(ROWS)]),
        pa.array([moment_text(rng) for _ in range(ROWS)]),
    ]
    path = folder / "e" / "part-0.parquet"
    path.parent.mkdir()
    pq.write_table(pa.Table.from_arrays(columns, schema=SCHEMA), path, store_schema=False)
    return EdgeTables(folder, {"e": (str(path),)}, {"e": SCHEMA})


def proof_in(spark: SparkSession, folder: Path, zone: str) -> Proof:
    tables = write_table(folder)
    session = plain_session(spark, tables)
    session.conf.set("spark.sql.session.timeZone", zone)
    return Proof(tables, session, zone)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Amsterdam", "Africa/Monrovia", "Europe/London"])
def test_texts_of_odd_years_equal_sparks(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    proof = proof_in(spark, tmp_path, zone)
    cases = [proof.plan(expr) for expr in EXPRESSIONS]
    wrong = [f"{c.expr}: is not native: {c.refusal}" for c in cases if not c.is_native]
    wrong += [f"{c.expr}: raises in rows {c.bad_rows[:5]}" for c in cases if c.bad_rows]
    wrong += proof.compare(cases)
    assert not wrong, report(wrong)


@pytest.mark.parametrize(
    ("column", "target", "zone"),
    [
        ("s", "DATE", "UTC"),
        ("t", "TIMESTAMP_NTZ", "UTC"),
        ("t", "TIMESTAMP", "UTC"),
        ("t", "TIMESTAMP", "America/New_York"),
    ],
)
def test_texts_are_read_as_by_spark(
    spark: SparkSession, tmp_path: Path, column: str, target: str, zone: str
) -> None:
    proof = proof_in(spark, tmp_path, zone)
    case, strict = (proof.plan(f"{f}({column} AS {target})") for f in ("TRY_CAST", "CAST"))
    assert case.is_native
    wrong = proof.compare([case, strict])
    assert not wrong, report(wrong)
    assert case.native is not None
    nulls = [i for i, value in enumerate(case.native.is_null().to_pylist()) if value]
    # Only of instants Spark knows more than the worker: times of today, and zones.
    assert target == "TIMESTAMP" or case.bad_rows == []
    assert strict.bad_rows == nulls
    assert ROWS / 10 < len(nulls) < ROWS * 9 / 10
