"""Tables of every type in several Parquet files: small ones, because queries join them."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Mapping, Sequence
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.differential.edge_tables import (
    EDGE_SCHEMA,
    GROUP_SCHEMA,
    JOIN_SCHEMA,
    JSON_SCHEMA,
    NESTED_SCHEMA,
    EdgeTables,
    edge_rows,
    group_rows,
    join_rows,
    json_rows,
    nested_rows,
)

Rows = list[dict[str, Any]]
WIDE_SCHEMA = pa.schema(
    [*EDGE_SCHEMA, *(f for f in NESTED_SCHEMA if f.name not in EDGE_SCHEMA.names)]
)
"""All columns of the edge table and of the nested table; names that both have, have one type."""

SCHEMAS: dict[str, pa.Schema] = {
    "w": WIDE_SCHEMA,
    "e": EDGE_SCHEMA,
    "g": GROUP_SCHEMA,
    "n": NESTED_SCHEMA,
    "jt": JSON_SCHEMA,
    "x": JOIN_SCHEMA,
    "y": JOIN_SCHEMA,
    "z": JOIN_SCHEMA,
}
# Row groups of few rows often have one value beside NULL in their statistics.
_WRITTEN: dict[str, Any] = {
    "row_group_size": 2,
    "coerce_timestamps": "us",
    "store_schema": False,
}
_FIRST_DAY = dt.date(1970, 1, 1)
_DAYS = 20_000
_TAME = 100
_ANY_DIGITS = 60


def all_rows() -> dict[str, list[Rows]]:
    """The rows of each table, by file. `w` has tame values, so that few expressions raise."""
    return {
        "w": [_wide_rows(start, start + 14) for start in (0, 200, 400)],
        "e": [edge_rows(80)],
        "g": [group_rows(0, 30), group_rows(40, 60)],
        "n": [nested_rows(0, 25), nested_rows(500, 515)],
        "jt": [json_rows()],
        "x": [join_rows(1, 20), join_rows(2, 12)],
        "y": [join_rows(3, 14), join_rows(4, 10)],
        "z": [[]],
    }


def write_tables(folder: Path, rows: Mapping[str, Sequence[Rows]]) -> EdgeTables:
    """Write rows as the tables' Parquet files."""
    files = {}
    for name, parts in rows.items():
        paths = []
        for number, part in enumerate(parts):
            path = folder / name / f"part-{number}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            table = pa.Table.from_pylist(part, schema=SCHEMAS[name])
            pq.write_table(table, path, **_WRITTEN)
            paths.append(str(path))
        files[name] = tuple(paths)
    return EdgeTables(folder, files, {name: SCHEMAS[name] for name in rows})


def _wide_rows(start: int, stop: int) -> Rows:
    rng = random.Random(start)
    edges, nested = edge_rows(stop - start), nested_rows(start, stop)
    rows = [
        {name: _tamed(rng, name, value) for name, value in (other | row).items()}
        for row, other in zip(edges, nested, strict=True)
    ]
    for number, row in enumerate(rows):
        row["id"] = start + number
    return rows


def _tamed(rng: random.Random, name: str, value: Any) -> Any:
    """A value of which sums, products and casts are in range; NaN and -0.0 stay."""
    if name in ("i", "j") and value is None and rng.random() < 0.5:
        value = rng.randint(-9, 9)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(math.fmod(value, _TAME))
    if isinstance(value, float):
        return value if math.isnan(value) or abs(value) < 1e6 else 2.5
    if isinstance(value, Decimal):
        with localcontext(prec=_ANY_DIGITS):
            return value % _TAME
    if isinstance(value, dt.datetime):
        days = dt.timedelta(value.toordinal() % _DAYS - value.toordinal())
        return value + days + (_FIRST_DAY - dt.date.min)
    if isinstance(value, dt.date):
        return _FIRST_DAY + dt.timedelta(value.toordinal() % _DAYS)
    if isinstance(value, list):
        return [_tamed(rng, "", member) for member in value]
    if isinstance(value, tuple):
        return tuple(_tamed(rng, "", member) for member in value)
    if isinstance(value, dict):
        return {key: _tamed(rng, "", member) for key, member in value.items()}
    return value
