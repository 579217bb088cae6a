"""Write a project of 100 queries with 1,000 stages, for pictures of a UI that is full.

Names and descriptions are as long as those of real projects. A run of one of `FAILING` fails, each
for another reason, and a run of `WAITING` goes on until a file is removed.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

NUM_QUERIES, NUM_STAGES = 100, 1000
LOCATION = "company"
FAILING = ("tax_by_country", "orders_by_customer", "freight_by_carrier")
WAITING = "forecast_by_product"
PARTITIONED = "turnover_by_day"
GOOD = ("revenue_by_region", "returns_by_category", PARTITIONED)

_NUM_ORDERS = 400
_NUM_FILES = 4
# What people measure, with its SQL, and by what.
_MEASURES = {
    "revenue": ("Revenue after discounts", "sum(l.price * l.quantity)"),
    "units": ("Units sold", "sum(l.quantity)"),
    "margin": ("Margin over purchase prices", "sum((l.price - p.cost) * l.quantity)"),
    "basket_size": ("Mean number of lines in an order", "count(*) / count(DISTINCT o.order_id)"),
    "returns": ("Share of lines that came back", "count(r.reason) / count(*)"),
}
_DIMENSIONS = {
    "region": ("region of the customer", "c.region"),
    "country": ("country of the customer", "c.country"),
    "segment": ("segment of the customer", "c.segment"),
    "category": ("category of the product", "p.category"),
    "brand": ("brand of the product", "p.brand"),
    "channel": ("channel of the order", "o.channel"),
    "city": ("city of the shop", "s.city"),
    "manager": ("manager of the shop", "s.manager"),
    "weekday": ("day of the week", "dayofweek(o.day)"),
    "month": ("month", "trunc(o.day, 'MM')"),
    "loyalty_level_at_the_time_of_the_order": ("level of loyalty", "c.loyalty"),
    "supplier": ("supplier of the product", "p.supplier"),
    "colour": ("colour of the product", "p.colour"),
    "size_of_shop": ("size of the shop", "s.size"),
    "carrier": ("carrier of the order", "o.carrier"),
    "payment_method": ("method of payment", "o.payment"),
    "campaign": ("campaign of the order", "o.campaign"),
    "return_reason": ("reason of the return", "r.reason"),
    "customer_and_product_category": ("customer and category", "concat(c.name, p.category)"),
}
_AUTOMATED = {
    "revenue": 'schedule: "0 6 * * *"\n',
    "returns": "automation: on_upstream_change\n",
}
_COLUMNS = {
    "customers": ("name", "region", "country", "segment", "loyalty"),
    "products": ("category", "brand", "supplier", "colour", "weight"),
    "shops": ("city", "manager", "size"),
}
_CATALOG = """tables:
  orders: {location: data/orders}
  order_lines: {location: data/order_lines}
  customers: {location: data/customers}
  products: {location: data/products}
  shops: {location: data/shops}
  returned_lines: {location: data/returned_lines}
functions:
  forecast:
    python: company_functions:forecast
    arguments: [BIGINT]
    returns: BIGINT
    deterministic: true
  freight:
    python: company_functions:freight
    arguments: [STRING, BIGINT]
    returns: DOUBLE
    deterministic: true
"""
_FUNCTIONS = '''"""Functions of the project."""

import time
from pathlib import Path

WAIT = Path({wait!r})


def forecast(product):
    """Wait for the model, which is there when the file is gone."""
    while WAIT.exists():
        time.sleep(0.2)
    return product * 2


def freight(carrier, quantity):
    """What a carrier charges."""
    if carrier == "carrier 3":
        raise ValueError(f"no tariff for carrier {{carrier!r}} and {{quantity}} pieces")
    return quantity * 0.75
'''
_MODULE = """from pathlib import Path

from stagecoach.assets import build_definitions
from stagecoach.planner.options import PlannerOptions

HERE = Path(__file__).parent
defs = build_definitions(
    queries=HERE / "queries",
    catalog=HERE / "catalog.yaml",
    schedules_run=False,
    # Small data would be one stage on one task; these plans are as for large data.
    options=PlannerOptions(broadcast_bytes=0, force_distribution=True, num_partitions=4),
)
"""
_WORKSPACE = f"""load_from:
  - python_file:
      relative_path: definitions.py
      location_name: {LOCATION}
"""


def write_project(folder: Path) -> None:
    """All files of the project, with its data."""
    _write_data(folder / "data")
    (folder / "queries").mkdir()
    for name, text in queries():
        (folder / "queries" / f"{name}.sql").write_text(text, encoding="utf-8")
    (folder / "catalog.yaml").write_text(_CATALOG, encoding="utf-8")
    (folder / "waiting").touch()
    functions = _FUNCTIONS.format(wait=str(folder / "waiting"))
    (folder / "company_functions.py").write_text(functions, encoding="utf-8")
    (folder / "definitions.py").write_text(_MODULE, encoding="utf-8")
    (folder / "workspace.yaml").write_text(_WORKSPACE, encoding="utf-8")


def queries() -> Iterator[tuple[str, str]]:
    """Name and text of each query."""
    for measure, (described, sql) in _MEASURES.items():
        for dimension, (by, column) in _DIMENSIONS.items():
            more = _AUTOMATED.get(measure, "")
            yield f"{measure}_by_{dimension}", _query(f"{described} by {by}", sql, column, more)
    yield FAILING[0], _query("Tax by country", "sum(CAST(c.segment AS INT))", "c.country")
    checks = "checks:\n  - row_count: {min: 1000}\n  - not_null: [key]\n"
    yield FAILING[1], _query("Orders by customer", "count(*)", "c.name", checks)
    yield (
        FAILING[2],
        _query("Freight by carrier", "sum(freight(o.carrier, l.quantity))", "o.carrier"),
    )
    yield WAITING, _query("Forecast by product", "sum(forecast(l.product_id))", "p.brand")
    days = "partitions: {by: daily, start: 2024-01-01, end: 2024-01-31, column: key}\n"
    yield PARTITIONED, _query("Turnover by day", "sum(l.price)", "o.day", days)


def _query(description: str, measure: str, column: str, more: str = "") -> str:
    window = (
        "WHERE o.day >= :partition_start AND o.day < :partition_end\n"
        if "partitions" in more
        else ""
    )
    # Three joins and a group are ten stages.
    third = (
        "JOIN shops s ON o.shop_id = s.shop_id"
        if column.startswith("s.")
        else "JOIN customers c ON o.customer_id = c.customer_id"
    )
    return f"""/*
description: {description}. Of all orders that were paid, as finance counts them.
owners: ["team:analytics"]
tags: {{area: sales}}
{more}*/
SELECT {column} AS key, {measure} AS value, count(DISTINCT o.order_id) AS orders_per_key
FROM orders o
JOIN order_lines l ON o.order_id = l.order_id
JOIN products p ON l.product_id = p.product_id
{third}
LEFT JOIN returned_lines r ON l.order_id = r.order_id AND l.product_id = r.product_id
{window}GROUP BY {column}
ORDER BY value DESC
"""


def _write_data(folder: Path) -> None:
    draw = random.Random(11)
    first = datetime.date(2024, 1, 1)
    orders = [
        {
            "order_id": number,
            "day": first + datetime.timedelta(days=number % 31),
            "customer_id": draw.randrange(50),
            "shop_id": draw.randrange(12),
            "channel": draw.choice(["web", "shop", "phone"]),
            "carrier": f"carrier {draw.randrange(5)}",
            "payment": draw.choice(["card", "cash", "invoice"]),
            "campaign": f"campaign {draw.randrange(8)}",
        }
        for number in range(_NUM_ORDERS)
    ]
    lines = [
        {
            "order_id": order["order_id"],
            "product_id": product,
            "quantity": draw.randrange(1, 9),
            "price": draw.randrange(100, 9_000),
        }
        for order in orders
        for product in draw.sample(range(30), 4)
    ]
    returned = [
        {k: line[k] for k in ("order_id", "product_id")} | {"reason": f"reason {i % 4}"}
        for i, line in enumerate(lines)
        if i % 9 == 0
    ]
    tables = {"orders": orders, "order_lines": lines, "returned_lines": returned}
    for (name, columns), count in zip(_COLUMNS.items(), (50, 30, 12), strict=True):
        tables[name] = [
            {f"{name[:-1]}_id": number, "cost": number % 7}
            | {column: f"{column} {number % (5 + i)}" for i, column in enumerate(columns)}
            for number in range(count)
        ]
    for name, rows in tables.items():
        (folder / name).mkdir(parents=True)
        for number in range(_NUM_FILES):
            part = pa.Table.from_pylist(rows[number::_NUM_FILES])
            pq.write_table(part, folder / name / f"part-{number}.parquet")
