"""Tables of a shop for queries as people write them, in Parquet files of two parts.

Customers, orders with lines, products, a log of events, employees, and readings of sensors: with
NULLs, duplicates and gaps, from a fixed seed.
"""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.differential.edge_tables import EdgeTables
from tests.differential.relation_tables import write_halves

MONEY = pa.decimal128(10, 2)
SCHEMAS = {
    "customers": pa.schema([("id", pa.int32()), ("name", pa.string()), ("city", pa.string()), ("country", pa.string()), ("signed_up", pa.date32()), ("tier", pa.string()), ("referrer", pa.int32())]),
    "orders": pa.schema([("id", pa.int64()), ("customer", pa.int32()), ("placed", pa.timestamp("us", "UTC")), ("status", pa.string()), ("total", MONEY), ("coupon", pa.string())]),
    "lines": pa.schema([("order_id", pa.int64()), ("line", pa.int16()), ("product", pa.int32()), ("quantity", pa.int32()), ("price", MONEY), ("discount", pa.float64())]),
    "products": pa.schema([("id", pa.int32()), ("name", pa.string()), ("category", pa.string()), ("price", MONEY), ("tags", pa.list_(pa.string()))]),
    "events": pa.schema([("id", pa.int64()), ("person", pa.int32()), ("moment", pa.timestamp("us", "UTC")), ("kind", pa.string()), ("page", pa.string()), ("ms", pa.int32())]),
    "employees": pa.schema([("id", pa.int32()), ("manager", pa.int32()), ("name", pa.string()), ("department", pa.string()), ("salary", MONEY), ("hired", pa.date32())]),
    "readings": pa.schema([("sensor", pa.string()), ("taken", pa.timestamp("us")), ("degrees", pa.float64()), ("state", pa.string())]),
}  # fmt: skip
START = dt.datetime(2022, 12, 20, 23, 30, tzinfo=dt.UTC)


def write_shop_tables(folder: Path) -> EdgeTables:
    """All tables of this module, two files each."""
    rng = random.Random(20260301)
    rows = {
        "customers": [_customer(rng, n) for n in range(1, 41)],
        "products": [_product(rng, n) for n in range(1, 16)],
        "orders": [_order(rng, n) for n in range(1, 141)],
        "events": _events(rng),
        "employees": [_employee(rng, n) for n in range(1, 26)],
        "readings": _readings(rng),
    }
    rows["lines"] = [row for n in range(1, 145) for row in _lines(rng, n)]
    files = {
        name: write_halves(folder, name, schema, rows[name]) for name, schema in SCHEMAS.items()
    }
    return EdgeTables(folder, files, dict(SCHEMAS))


def _money(rng: random.Random, top: int) -> Decimal:
    return Decimal(rng.randint(0, top * 100)).scaleb(-2)


def _customer(rng: random.Random, number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": rng.choice(["Ada", "Bo", "Çelik", "Dörte", "Eve", "李雷", "o'Neil"]),
        "city": rng.choice(["Berlin", "Łódź", "Lyon", "Porto", None, ""]),
        "country": rng.choice(["DE", "PL", "FR", "PT", None]),
        "signed_up": dt.date(2022, 11, 1) + dt.timedelta(rng.randint(0, 400)),
        "tier": rng.choice(["gold", "silver", "basic", None]),
        "referrer": rng.choice([None, None, rng.randint(1, number)]),
    }


def _product(rng: random.Random, number: int) -> dict[str, Any]:
    tags = [None, [], ["new"], ["sale", "new"], ["sale", None], ["eco", "sale", "eco"]]
    return {
        "id": number,
        "name": f"{rng.choice(['Red', 'Blue', 'Old'])} {rng.choice(['lamp', 'chair', 'desk'])} {number}",
        "category": rng.choice(["light", "seat", "table", None]),
        "price": _money(rng, 200),
        "tags": rng.choice(tags),
    }  # fmt: skip


def _order(rng: random.Random, number: int) -> dict[str, Any]:
    placed = START + dt.timedelta(hours=rng.randint(0, 24 * 800), seconds=rng.randint(0, 3599))
    return {
        "id": number,
        "customer": rng.choice([None, 99, *([rng.randint(1, 30)] * 20)]),
        "placed": rng.choice([placed] * 15 + [None]),
        "status": rng.choice(["paid", "paid", "paid", "open", "returned", None]),
        "total": rng.choice([_money(rng, 500), _money(rng, 500), Decimal("20.00"), None]),
        "coupon": rng.choice([None, None, "", "X10", "x10"]),
    }


def _lines(rng: random.Random, order: int) -> list[dict[str, Any]]:
    return [
        {
            "order_id": order,
            "line": line,
            "product": rng.choice([rng.randint(1, 14), rng.randint(1, 14), None, 77]),
            "quantity": rng.choice([1, 1, 2, 5, 0, None]),
            "price": _money(rng, 90),
            "discount": rng.choice([0.0, 0.0, 0.1, 0.25, None]),
        }
        for line in range(1, rng.choice([1, 2, 3, 4]) + 1)
    ]


def _events(rng: random.Random) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for person in [*range(1, 21), None]:
        moment = START + dt.timedelta(minutes=rng.randint(0, 60 * 24 * 20))
        for _ in range(rng.randint(3, 22)):
            step = rng.choice([0, 5, 30, 600, 1799, 1800, 4000, 90000])
            moment += dt.timedelta(seconds=step, microseconds=rng.choice([0, 0, 250000]))
            row = {"id": len(rows) + 1, "person": person, "moment": moment}
            row["kind"] = rng.choice(["view", "view", "view", "cart", "buy", "search", None])
            row["page"] = rng.choice(["/", "/a", "/a/b", "/b?q=1", None])
            row["ms"] = rng.choice([None, 0, rng.randint(1, 5000)])
            rows.append(row)
    return rows


def _employee(rng: random.Random, number: int) -> dict[str, Any]:
    return {
        "id": number,
        "manager": None if number == 1 else rng.randint(1, number - 1),
        "name": f"{rng.choice(['Kim', 'Lou', 'Max', 'Noa'])} {number % 7}",
        "department": rng.choice(["ops", "dev", "dev", "law", None]),
        "salary": rng.choice([Decimal("4000.00"), Decimal("5200.50"), _money(rng, 9000), None]),
        "hired": dt.date(2019, 2, 28) + dt.timedelta(rng.randint(0, 2000)),
    }


def _readings(rng: random.Random) -> list[dict[str, Any]]:
    rows = []
    for sensor in ("north", "south", "cellar", "broken"):
        taken = dt.datetime(2024, 2, 28, 20)
        for _ in range(35):
            taken += dt.timedelta(minutes=rng.choice([10, 10, 10, 20, 90]))
            degrees = None if sensor == "broken" else rng.choice([None, 20.5, -0.0, 0.25 * rng.randint(-40, 120)])  # fmt: skip
            state = rng.choice(["ok", "ok", "hot", None])
            rows.append({"sensor": sensor, "taken": taken, "degrees": degrees, "state": state})
    return rows
