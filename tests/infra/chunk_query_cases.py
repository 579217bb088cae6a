"""Random deduplicated tables, written by the table's own code, and random queries over them.

A seed gives a table in a folder and a query that our planner and Spark both accept.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.formats.deduplicated.compaction import compact
from stagecoach.infra.formats.deduplicated.table_format import chunk_table

COLUMNS: dict[str, pa.DataType] = {
    "k": pa.int64(),
    "tag": pa.string(),
    "ratio": pa.float64(),
    "time": pa.timestamp("us", tz="UTC"),
    "f": pa.int64(),
    "price": pa.decimal128(9, 2),
    "version": pa.int32(),
    "deleted": pa.bool_(),
}
_KEYS = (["k", "time"], ["tag", "k", "time"], ["k", "ratio", "time"], ["k"], ["ratio"], ["tag"])
_HOUR = 3_600_000_000
_START = 1_700_000_000_000_000
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class QueryCase:
    """A table with the rows of its appends, and a query.

    Args:
        seed: What the case is made of.
        declaration: Lines of the catalog file.
        appends: Rows of each append, oldest first.
        sorted_: Whether each append writes sorted Parquet, each key once.
        compacts: After which append the table is compacted; none for None.
        columns: Columns that the query gives.
        predicate: Its WHERE clause.
    """

    seed: int
    declaration: dict[str, Any]
    appends: tuple[Rows, ...]
    sorted_: tuple[bool, ...]
    compacts: int | None
    columns: tuple[str, ...]
    predicate: str

    @property
    def names(self) -> tuple[str, ...]:
        """Columns of the table: those that an append has."""
        return tuple(c for c in COLUMNS if any(c in row for rows in self.appends for row in rows))

    def query(self, table: str) -> str:
        """The query over our table."""
        return f"SELECT {', '.join(self.columns)} FROM {table} WHERE {self.predicate}"

    def window_query(self, table: str) -> str:
        """The same over a table of all rows, which numbers writes and positions."""
        version = self.declaration.get("version_column")
        order = f"{version} DESC NULLS LAST, " if version else ""
        key = ", ".join(self.declaration["primary_key"])
        marker = self.declaration.get("delete_column")
        shown = f"NOT ({marker} <=> true) AND " if marker else ""
        return (
            f"SELECT {', '.join(self.columns)} FROM (SELECT *, row_number() OVER (PARTITION BY "
            f"{key} ORDER BY {order}write_ DESC, position_ DESC) AS n_ FROM {table}) "
            f"WHERE n_ = 1 AND {shown}({self.predicate})"
        )

    def all_rows(self) -> Rows:
        """Every row with the number of its write and its position."""
        return [
            {**row, "write_": write, "position_": position}
            for write, rows in enumerate(self.appends)
            for position, row in enumerate(rows)
        ]

    def write(self, folder: Path) -> FileCatalog:
        """Write the table `m` and give its catalog."""
        folder.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"    {k}: {v}\n" for k, v in self.declaration.items() if v)
        text = f"tables:\n  m:\n    kind: deduplicated\n    location: m\n{lines}"
        (folder / "catalog.yaml").write_text(text)
        catalog = load_catalog(folder / "catalog.yaml")
        table = chunk_table(catalog, "m")
        for number, (rows, sort) in enumerate(zip(self.appends, self.sorted_, strict=True)):
            names = [c for c in COLUMNS if any(c in row for row in rows)]
            schema = pa.schema([(c, COLUMNS[c]) for c in names])
            table.append([pa.Table.from_pylist(rows, schema=schema)], sort=sort)
            if number == self.compacts:
                compact(table)
        return load_catalog(folder / "catalog.yaml")


def query_case(seed: int) -> QueryCase:
    """The case of a seed."""
    rng = random.Random(seed)
    declaration: dict[str, Any] = {
        "primary_key": rng.choice(_KEYS),
        "time_column": rng.choice(["time", "time", None]),
        "version_column": rng.choice([None, None, "version"]),
        "delete_column": rng.choice([None, "deleted"]),
    }
    groups = [c for c in ("k", "tag") if c in declaration["primary_key"]]
    if groups and rng.random() < 0.3:
        declaration["partition_by"] = [rng.choice(groups)]
    needed = {
        *declaration["primary_key"],
        *(v for k, v in declaration.items() if k.endswith("_column") and v),
    }
    optional = [c for c in COLUMNS if c not in needed]
    absent = set(rng.sample(optional, rng.randint(0, min(2, len(optional)))))
    appends = []
    for number in range(rng.randint(1, 6)):
        missing = absent if number < 2 else set()  # added columns: older chunks have none
        appends.append(_rows(rng, [c for c in COLUMNS if c not in missing]))
    case = QueryCase(
        seed=seed,
        declaration=declaration,
        appends=tuple(appends),
        sorted_=tuple(rng.random() < 0.5 for _ in appends),
        compacts=rng.choice([None, None, None, rng.randrange(len(appends))]),
        columns=(),
        predicate="true",
    )
    names = case.names
    columns = tuple(rng.sample(names, rng.randint(1, len(names))))
    parts = [_predicate(rng, names, 2) for _ in range(rng.randint(0, 3))]
    return QueryCase(
        **{**vars(case), "columns": columns, "predicate": " AND ".join(parts) or "true"}
    )


def _rows(rng: random.Random, names: list[str]) -> Rows:
    start, width = rng.randint(0, 40), rng.choice([0, 2, 6, 40])
    rows = []
    for _ in range(rng.randint(1, 12)):
        values: dict[str, Any] = {
            "k": rng.choice([None, 0, 1, 2, -1]),
            "tag": rng.choice([None, "a", "b", "é", ""]),
            "ratio": rng.choice([None, 0.0, -0.0, 1.5, math.nan, math.inf]),
            "time": _START + _HOUR * (start + rng.randint(0, width)),
            "f": rng.choice([None, 0, 1, 5, 9]),
            "price": rng.choice([None, "0.00", "-1.25", "99.99"]),
            "version": rng.choice([None, 1, 2, 3]),
            "deleted": rng.choice([None, False, False, True]),
        }
        if values["price"] is not None:
            values["price"] = pa.scalar(values["price"]).cast(pa.decimal128(9, 2)).as_py()
        rows.append({c: values[c] for c in names})
    return rows


def _predicate(rng: random.Random, names: tuple[str, ...], depth: int) -> str:
    if depth and rng.random() < 0.4:
        left, right = (_predicate(rng, names, depth - 1) for _ in range(2))
        return rng.choice([f"({left} OR {right})", f"({left} AND {right})", f"NOT ({left})"])
    name = rng.choice(names)
    if rng.random() < 0.15:
        return f"{name} IS {rng.choice(['', 'NOT '])}NULL"
    compare = rng.choice(["=", "<", "<=", ">", ">=", "<>", "<=>"])
    hour = rng.randint(0, 50)
    moment = f"timestamp_micros({_START + _HOUR * hour})"
    text = f"TIMESTAMP '2023-11-{14 + hour // 24:02d} {hour % 24:02d}:13:20+00:00'"
    match name:
        case "time":
            return rng.choice([f"time {compare} {text}", f"time >= {text}", f"time < {moment}"])
        case "tag":
            return rng.choice([f"tag {compare} 'a'", "upper(tag) = 'B'", "tag IN ('a', 'é')"])
        case "deleted":
            return "deleted"
        case "ratio":
            value = rng.choice(["0.0D", "-0.0D", "1.0D", "double('NaN')"])
            return rng.choice([f"ratio {compare} {value}", "cast(ratio AS string) = '-0.0'"])
        case "price":
            return f"price {compare} 1.5"
    return rng.choice(
        [f"{name} {compare} {rng.randint(-1, 6)}", f"abs({name}) = 1", f"{name} IN (0, 2, NULL)"]
    )
