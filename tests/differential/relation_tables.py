"""Small tables for the relational forms: NULLs, duplicates, no rows, nested columns, odd names.

They are Parquet files of two parts each, so that a scan has several tasks, never written by Spark;
the catalog has what the planner knows of them.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.differential.edge_tables import EdgeTables

Rows = list[tuple[Any, ...]]

T_SCHEMA = pa.schema(
    [("id", pa.int32()), ("a", pa.int32()), ("b", pa.string()), ("c", pa.decimal128(10, 2)), ("d", pa.float64()), ("v", pa.int64()), ("day", pa.date32())]
)  # fmt: skip
ONE, TWO = Decimal("1.00"), Decimal("2.50")
EPOCH, LEAP = dt.date(1970, 1, 1), dt.date(2024, 2, 29)
T: Rows = [
    (1, 1, "x", ONE, 0.0, 10, EPOCH), (2, 1, "x", ONE, -0.0, 20, EPOCH), (3, 1, "y", None, math.nan, 30, LEAP),
    (4, 2, "x", TWO, 1.5, None, LEAP), (5, 2, None, TWO, None, 50, None), (6, None, "x", ONE, 0.0, 60, EPOCH),
    (7, None, None, None, None, None, None), (8, None, None, None, None, 80, None), (9, 3, "", TWO, math.inf, -5, LEAP),
    (10, 3, "ß", ONE, math.nan, 7, EPOCH), (11, 1, "x", ONE, 0.0, 10, EPOCH), (12, 4, "Z z", TWO, -1.5, 0, LEAP),
]  # fmt: skip
U: Rows = [
    (1, 1, "x", ONE, 0.0, 10, EPOCH), (2, 1, "x", ONE, 0.0, 11, EPOCH), (21, 2, "x", TWO, 1.5, None, LEAP),
    (22, None, None, None, None, None, None), (23, None, "x", ONE, -0.0, 60, EPOCH), (24, 5, "q", None, 9.0, 1, None),
    (25, 3, "", TWO, -math.inf, -5, LEAP), (26, 2, None, TWO, math.nan, 50, None),
]  # fmt: skip
PAIR = pa.struct([("p", pa.int32()), ("q", pa.string())])
N_SCHEMA = pa.schema(
    [("id", pa.int32()), ("k", pa.int32()), ("xs", pa.list_(pa.int32())), ("ys", pa.list_(pa.string())), ("m", pa.map_(pa.string(), pa.int32())),
     ("ps", pa.list_(PAIR)), ("st", PAIR), ("nested", pa.list_(pa.list_(pa.int32()))), ("s", pa.string())]
)  # fmt: skip
N: Rows = [
    (1, 1, [1, 2, 2], ["a", None, "b"], [("u", 1), ("v", None)], [{"p": 1, "q": "a"}, {"p": None, "q": None}], {"p": 7, "q": "in"}, [[1], [], None, [2, 3]], "one"),
    (2, 1, [], [], [], [], {"p": None, "q": "x"}, [], "two"),
    (3, 2, None, None, None, None, None, None, None),
    (4, None, [None], ["z"], [("w", 5)], [None, {"p": 3, "q": "c"}], {"p": 1, "q": None}, [[None]], ""),
    (5, 2, [5, None, 7], ["é", ""], [("", 0), ("u", -1)], [{"p": 2, "q": "b"}], {"p": 9, "q": "Z"}, [None], "five"),
]  # fmt: skip
ODD_SCHEMA = pa.schema([("Mixed Case", pa.int32()), ("dot.ted", pa.string()), ("ключ", pa.int32()), ("Upper", pa.int32()), ("select", pa.int32())])  # fmt: skip
ODD: Rows = [(1, "a", 10, 5, 0), (2, "b", None, 6, 1), (None, "a", 30, 7, 1)]
SALES_SCHEMA = pa.schema([("year", pa.int32()), ("quarter", pa.int32()), ("region", pa.string()), ("amount", pa.decimal128(8, 2)), ("units", pa.int32()), ("online", pa.bool_()), ("paid", pa.bool_())])  # fmt: skip
SALES: Rows = [
    (2023, 1, "east", Decimal("10.00"), 1, True, False), (2023, 1, "east", Decimal("5.50"), 2, True, True), (2023, 2, "east", None, 3, None, True), (2023, 2, "west", Decimal("7.00"), None, False, None),
    (2024, 1, "west", Decimal("1.25"), 4, True, False), (2024, 3, None, Decimal("2.00"), 5, None, None), (2024, 4, "east", Decimal("3.00"), 6, False, False), (None, 1, "west", Decimal("4.00"), 7, True, True),
    (2024, None, "east", Decimal("9.99"), 8, False, True), (2023, 4, "", Decimal("0.01"), 9, True, False),
]  # fmt: skip
WIDE_SCHEMA = pa.schema([("id", pa.int32()), ("q1", pa.int32()), ("q2", pa.int64()), ("q3", pa.int32()), ("n1", pa.string()), ("n2", pa.string())])  # fmt: skip
WIDE: Rows = [(1, 10, 20, None, "a", None), (2, None, None, None, None, None), (3, 7, 7, 7, "b", "c"), (1, 10, 21, 0, "", "d")]  # fmt: skip

TABLES: dict[str, tuple[pa.Schema, Rows]] = {
    "t": (T_SCHEMA, T), "u": (T_SCHEMA, U), "none": (T_SCHEMA, []), "n": (N_SCHEMA, N), "odd names": (ODD_SCHEMA, ODD),
    "sales": (SALES_SCHEMA, SALES), "wide": (WIDE_SCHEMA, WIDE),
}  # fmt: skip


def write_relation_tables(folder: Path, names: Mapping[str, str] | None = None) -> EdgeTables:
    """All tables of this module, two files each; `none` has no rows.

    Args:
        folder: Where they go, a folder a table.
        names: Other names for some of them.
    """
    found = {(names or {}).get(name, name): table for name, table in TABLES.items()}
    files = {}
    for name, (schema, rows) in found.items():
        records = [dict(zip(schema.names, row, strict=True)) for row in rows]
        files[name] = write_halves(folder, name, schema, records)
    return EdgeTables(folder, files, {name: schema for name, (schema, _) in found.items()})


def write_halves(
    folder: Path, name: str, schema: pa.Schema, rows: list[dict[str, Any]]
) -> tuple[str, ...]:
    """A table as two files, the second of which may be empty; their paths."""
    half = (len(rows) + 1) // 2
    paths = []
    for number, part in enumerate((rows[:half], rows[half:])):
        path = folder / name / f"part-{number}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        table = pa.Table.from_pylist(part, schema=schema)
        pq.write_table(table, path, coerce_timestamps="us", store_schema=False)
        paths.append(str(path))
    return tuple(paths)
