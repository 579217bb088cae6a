"""The SQL of a check: a query for the rows that fail it.

The rows of a partitioned query's own window only are looked at, where a column tells the window.
"""

from collections.abc import Mapping, Sequence

import sqlglot

from stagecoach.assets.project.front_matter import (
    PARTITION_END,
    PARTITION_KEY,
    PARTITION_START,
    Partitions,
    StaticPartitions,
)
from stagecoach.assets.project.front_matter.checks import (
    AcceptedValuesCheck,
    Check,
    FreshnessCheck,
    NoRowsCheck,
    NotNullCheck,
    RowCountCheck,
    UniqueCheck,
)
from stagecoach.planner.syntax.parse import StagecoachSpark
from stagecoach.planner.text.quoting import spark_name, spark_text
from stagecoach.planner.types import DataType, Field

MAX_FAILING_ROWS = 1000
"""Failing rows that are counted; more are told as "at least"."""


def failing_rows_sql(
    check: Check, table: str, columns: Sequence[Field], partitions: Partitions | None = None
) -> str | None:
    """The query for the rows that fail a check.

    Args:
        check: The check.
        table: The published table that the check is about.
        columns: Its columns.
        partitions: Those of the query that makes it.

    Returns:
        SQL; None for a check that is not about rows (freshness).
    """
    rows = _rows_of(table, partitions)
    match check:
        case NotNullCheck(not_null=names):
            missing = " OR ".join(f"{spark_name(name)} IS NULL" for name in names)
            found = f"SELECT * FROM {rows} WHERE {missing}"
        case UniqueCheck(unique=names):
            keys = ", ".join(spark_name(name) for name in names)
            found = (
                f"SELECT {keys}, count(*) AS num_rows FROM {rows} GROUP BY {keys} "
                "HAVING count(*) > 1"
            )
        case AcceptedValuesCheck(accepted_values=accepted):
            name = spark_name(accepted.column)
            dtype = _type_of(columns, accepted.column)
            values = ", ".join(f"CAST({spark_text(t)} AS {dtype})" for t in accepted.texts)
            found = (
                f"SELECT {name}, count(*) AS num_rows FROM {rows} WHERE {name} NOT IN ({values}) "
                f"GROUP BY {name}"
            )
        case RowCountCheck(row_count=bounds):
            outside = [
                f"count(*) {operator} {bound}"
                for operator, bound in (("<", bounds.min), (">", bounds.max))
                if bound is not None
            ]
            found = f"SELECT count(*) AS num_rows FROM {rows} HAVING {' OR '.join(outside)}"
        case NoRowsCheck(no_rows=no_rows):
            # On lines of its own: the author's text may end in a comment.
            found = f"SELECT * FROM (\n{_unended(no_rows.sql)}\n)"
        case FreshnessCheck():
            return None
    return f"{found} LIMIT {MAX_FAILING_ROWS}"


def _unended(sql: str) -> str:
    """The text of a statement without the semicolon that may end it."""
    tokens = sqlglot.tokenize(sql, dialect=StagecoachSpark)
    ended = bool(tokens) and tokens[-1].text == ";"
    return sql[: tokens[-1].start] if ended else sql


def _rows_of(table: str, partitions: Partitions | None) -> str:
    name = ".".join(spark_name(part) for part in table.split("."))
    if partitions is None or partitions.column is None:
        return name
    column = spark_name(partitions.column)
    if isinstance(partitions, StaticPartitions):
        window = f"{column} = :{PARTITION_KEY}"
    else:
        window = f"{column} >= :{PARTITION_START} AND {column} < :{PARTITION_END}"
    return f"(SELECT * FROM {name} WHERE {window})"


def _type_of(columns: Sequence[Field], name: str) -> DataType:
    by_name: Mapping[str, DataType] = {field.name.lower(): field.dtype for field in columns}
    return by_name[name.lower()]
