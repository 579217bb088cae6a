"""The table `e`, as Parquet: moments around the changes of clocks.

Instants and local times lie within hours of the changes of Berlin, New York and Lord Howe Island
(half an hour), of the end of local mean time, and on the edges of calendars. The other columns have
the names of the edge table, so that the same expressions run over both.
"""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.differential.edge_tables import UTC, EdgeTables

_EDGES = [
    dt.datetime(1, 1, 2, 5, 6, 7, 8), dt.datetime(1582, 10, 4, 23, 59, 59, 999999), dt.datetime(1582, 10, 15), dt.datetime(1883, 11, 18, 16, 59),
    dt.datetime(1893, 3, 31, 23, 10), dt.datetime(1900, 1, 1), dt.datetime(1916, 4, 30, 22, 30), dt.datetime(1945, 5, 24, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(1970, 1, 1), dt.datetime(2000, 2, 29, 12, 0, 0, 1), dt.datetime(9998, 12, 31, 23, 59, 59, 999999),
]  # fmt: skip
_CHANGES = [
    dt.datetime(2024, 3, 10, 7), dt.datetime(2024, 11, 3, 6), dt.datetime(2024, 3, 31, 1), dt.datetime(2024, 10, 27, 1),
    dt.datetime(2023, 3, 26, 1), dt.datetime(2024, 4, 6, 15), dt.datetime(2024, 10, 5, 15, 30),
]  # fmt: skip
_MINUTES = (-1500, -1440, -90, -61, -60, -45, -30, -1, 0, 1, 30, 59, 60, 61, 90, 1440, 1500)
_LOCAL_HOURS = (0, 1, 1.5, 2, 2.5, 3, 4, 23)
_TEXTS = [
    "2024-02-29", "2024-2-9", " 2024-02-29 ", "2023-02-29", "2024", "0000-01-01", "10000-01-01", "-0001-01-01", "abc", "", "infinity",
    "2024-02-29 10:11:12", "20240229", "2024-02-29T10:11", "2024-02-29 10:11:12.123456", "2024-02-29 24:00:00", "2024-02-29 10:11:12Z",
    "2024-02-29 10:11:12+02:00", "2024-02-29 10:11:12 Europe/Berlin", "12:30", "2024-11-03 01:30:00", "2024-03-10 02:30:00", "2024-10-27 02:30:00",
    "2024-03-31 02:30:00", "+12024-01-01", "2024-02-29 25:00:00",
]  # fmt: skip

SCHEMA = pa.schema(
    [
        ("id", pa.int32()), ("ts", pa.timestamp("us", "UTC")), ("tu", pa.timestamp("us", "UTC")), ("tn", pa.timestamp("us")), ("dt", pa.date32()), ("du", pa.date32()),
        ("n", pa.int32()), ("k", pa.int32()), ("i", pa.int32()), ("si", pa.int16()), ("l", pa.int64()), ("d", pa.float64()), ("d52", pa.decimal128(5, 2)),
        ("d152", pa.decimal128(15, 2)), ("s", pa.string()), ("b", pa.bool_()),
    ]
)  # fmt: skip


def write_moments(folder: Path, count: int = 400) -> EdgeTables:
    """The table `e` of moments in one file."""
    path = folder / "e" / "part-0.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(_rows(count), schema=SCHEMA)
    pq.write_table(table, path, store_schema=False)
    return EdgeTables(folder, {"e": (str(path),)}, {"e": SCHEMA})


def _rows(count: int) -> list[dict[str, Any]]:
    rng = random.Random(20241027)
    near = [c + dt.timedelta(minutes=m) for c in _CHANGES for m in _MINUTES]
    instants = [*_EDGES, *near, *(m + dt.timedelta(microseconds=rng.choice([1, 999999])) for m in near)]  # fmt: skip
    local = instants + [
        dt.datetime(c.year, c.month, c.day) + dt.timedelta(days=d, hours=h, microseconds=u)
        for c in _CHANGES
        for d in (0, 1)
        for h in _LOCAL_HOURS
        for u in (0, 1)
    ]
    dates = [m.date() for m in instants] + [dt.date(2024, 2, 29), dt.date(9999, 12, 31)]
    rows: list[dict[str, Any]] = [{"id": 0}]
    for number in range(1, count):
        ts = instants[number % len(instants)]
        tu = rng.choice(instants)
        if rng.random() < 0.4 and 1000 < ts.year < 9000:
            tu = ts + dt.timedelta(days=rng.randint(-400, 400), seconds=rng.randint(-9000, 9000))
        row = {
            "ts": ts.replace(tzinfo=UTC), "tu": tu.replace(tzinfo=UTC), "tn": local[(number * 7) % len(local)],
            "dt": rng.choice(dates), "du": rng.choice(dates), "n": rng.choice([0, 1, -1, 2, 12, 13, 24, 25, 26, -25, 48, -400]),
            "k": rng.choice([0, 1, 2, 3, 5, 7, 10, 60]), "i": rng.choice([0, 1, -1, 1711846800, 1729990800, 1710054000]), "si": rng.randint(-999, 999),
            "l": rng.choice([0, -1, 1729990799, -62135596800, 10**12]), "d": rng.choice([0.0, 0.5, -1.5, 2.5, 1e-7]),
            "d52": Decimal(rng.choice(["0.00", "1.50", "59.99", "60.00", "-1.00", "60.01"])), "d152": Decimal(rng.choice(["0.00", "1729990799.25", "-0.01"])),
            "s": _TEXTS[number % len(_TEXTS)], "b": rng.choice([True, False]),
        }  # fmt: skip
        rows.append({"id": number} | {k: v for k, v in row.items() if rng.random() > 0.04})
    return rows
