"""The queries of the campaign, and their rows by DuckDB alone, without any code of ours.

Rows are texts, so that they travel as JSON; decimals are compared by value.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import sqlglot

from stagecoach.tpch import TABLES

_QUERIES = Path(__file__).parents[2] / "pipelines" / "queries"
_STAGED = ("q03", "q05", "q10", "q18", "q21")

# Only Spark has the function, so Spark runs that stage; the condition is true for every row.
_ON_SPARK = (
    "length(aes_encrypt({column}, '0123456789abcdef', 'CBC', 'DEFAULT', '0123456789abcdef')) <> 7"
)
_MIXED = """
SELECT o_orderpriority, count(*) AS n, sum(l_extendedprice) AS s
FROM lineitem JOIN orders ON l_orderkey = o_orderkey
WHERE {condition}
GROUP BY o_orderpriority ORDER BY o_orderpriority
"""

Rows = list[list[str | None]]


def queries() -> dict[str, str]:
    """Texts by name: TPC-H on DuckDB, and one whose first stage runs on Spark."""
    found = {name: (_QUERIES / f"{name}.sql").read_text(encoding="utf-8") for name in _STAGED}
    return {**found, "mixed": _MIXED.format(condition=_ON_SPARK.format(column="l_shipmode"))}


def expected_rows(tables: Path) -> dict[str, Rows]:
    """The rows of each query over the tables in a folder."""
    connection = duckdb.connect()
    for table in TABLES:
        files = f"{tables}/{table}/*.parquet"
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{files}')")
    texts = {**queries(), "mixed": _MIXED.format(condition="true")}
    found = {}
    for name, sql in texts.items():
        (text,) = sqlglot.transpile(sql, read="spark", write="duckdb")
        found[name] = rows_as_text(connection.execute(text).fetchall())
    return found


def rows_as_text(rows: Iterable[Sequence[Any]]) -> Rows:
    """Rows as JSON holds them."""
    return [[_text(value) for value in row] for row in rows]


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    if isinstance(value, datetime.date):
        return value.isoformat()
    return str(value)
