"""Is this Spark's answer? In, two Arrow tables and the query; out, an assertion that says where not.

Names, types and values are compared exactly. Where the query asks for an order, rows come in it;
rows that tie in all sort keys may come in any order, and where a LIMIT cuts through a tie group, any
of its rows may be kept.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from stagecoach.planner.types import from_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Answer:
    """What plain Spark says.

    Args:
        table: Names, types and rows; without the LIMIT of the query.
        limit: The LIMIT, or None.
        keys: Positions of the sort keys among the columns; empty without ORDER BY.
    """

    table: pa.Table
    limit: int | None
    keys: tuple[int, ...]


class Oracle:
    """Plain Spark SQL over the same tables; each query is run once.

    Args:
        spark: A session with a view for each table.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    @functools.cache  # noqa: B019 - one oracle a test process
    def answer(self, sql: str) -> Answer:
        """Spark's answer to a query whose sort keys, if any, are among its columns."""
        tree = sqlglot.parse_one(sql, dialect="spark")
        limit = tree.args.get("limit")
        unlimited = tree.copy()
        unlimited.set("limit", None)
        text = sql if limit is None else unlimited.sql(dialect="spark")
        table = self.spark.sql(text).toArrow()
        if limit is None:
            return Answer(table, None, _keys(tree, table.schema.names))
        # Names and types are those of the query as it stands.
        real = self.spark.sql(sql).toArrow()
        rows = int(limit.expression.this)
        assert real.schema == table.schema
        assert real.num_rows == min(rows, table.num_rows)
        return Answer(table, rows, _keys(tree, table.schema.names))


def spark_answer(spark: SparkSession, sql: str, *, keys: Sequence[int] = ()) -> Answer:
    """Spark's answer to any query, its sort keys named by position."""
    return Answer(to_arrow(spark, sql), None, tuple(keys))


def to_arrow(spark: SparkSession, sql: str) -> pa.Table:
    """Spark's result with its own names, which may be the same twice."""
    frame = spark.sql(sql)
    numbered = frame.toDF(*(f"c{i}" for i in range(len(frame.columns)))).toArrow()
    return numbered.rename_columns(frame.columns)


def assert_same(found: pa.Table, answer: Answer) -> None:
    """Fail unless `found` is what Spark may answer."""
    expected = answer.table
    assert found.schema.names == expected.schema.names
    assert [_type_text(t) for t in found.schema.types] == [
        _type_text(t) for t in expected.schema.types
    ]
    wanted = expected.num_rows if answer.limit is None else min(answer.limit, expected.num_rows)
    assert found.num_rows == wanted
    ours, theirs = rows_of(found), rows_of(expected)
    for start, end in _tie_groups(theirs, answer.keys):
        if start >= wanted:
            break
        group, allowed = Counter(ours[start : min(end, wanted)]), Counter(theirs[start:end])
        extra = group - allowed
        assert not extra, f"rows {start} to {end}: {extra} is not in Spark's {allowed}"


def _type_text(dtype: pa.DataType) -> str:
    """The type; of a nested one without what Arrow calls its parts and which may be null."""
    return str(from_arrow(dtype)) if pa.types.is_nested(dtype) else str(dtype)


def rows_of(table: pa.Table) -> list[Row]:
    """Rows as tuples that can be counted; nested values, maps and NaN as text."""
    columns = [[_plain(v) for v in column.to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return repr(value)  # NaN equals itself, -0.0 is not 0.0
    return repr(value) if isinstance(value, list | dict) else value


def _tie_groups(rows: Sequence[Row], keys: Sequence[int]) -> Iterator[tuple[int, int]]:
    start = 0
    for end in range(1, len(rows) + 1):
        if end == len(rows) or any(rows[end][k] != rows[start][k] for k in keys):
            yield start, end
            start = end


def _keys(tree: exp.Expression, names: Sequence[str]) -> tuple[int, ...]:
    order = tree.args.get("order")
    columns = [ordered.this.name for ordered in order.expressions] if order else []
    return tuple(names.index(name) for name in columns)
