"""One query, planned and run in this process, against plain Spark SQL."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from stagecoach.infra.errors import QueryError
from stagecoach.planner import StageGraph, plan_query
from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.errors import SqlError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.types import Field
from tests.differential.inprocess import (
    InProcessRunner,
    collect,
    multiset,
    rows_of,
    spark_fields,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_ERRORS = (PySparkException, Py4JJavaError)

SINGLE = PlannerOptions(single_task_bytes=1 << 60)
BROADCAST = PlannerOptions(force_distribution=True, num_partitions=3, broadcast_bytes=1 << 60)
SHUFFLED = {
    n: PlannerOptions(force_distribution=True, num_partitions=n, broadcast_bytes=0)
    for n in (1, 3, 7)
}
ALL_OPTIONS = {"single": SINGLE, "broadcast": BROADCAST, **{f"shuffle-{n}": o for n, o in SHUFFLED.items()}}  # fmt: skip


@dataclass(frozen=True)
class Expected:
    """Spark's answer: rows, or that it raises."""

    rows: pa.Table | None
    fields: tuple[Field, ...] = ()
    error: str = ""


def ask_spark(spark: SparkSession, sql: str) -> Expected:
    """Plain Spark's answer to the query."""
    try:
        frame = spark.sql(sql)
        return Expected(collect(frame), spark_fields(frame))
    except SPARK_ERRORS as error:
        return Expected(None, error=str(error).split("\n")[0][:160])


def differences(
    sql: str,
    catalog: MappingCatalog,
    runner: InProcessRunner,
    expected: Expected,
    options: PlannerOptions,
    *,
    native: bool = True,
    rounded: tuple[int, ...] = (),
) -> list[str]:
    """What is wrong with the planned query; an empty list if nothing.

    Args:
        sql: The query.
        catalog: Its tables.
        runner: Runs the stages.
        expected: Spark's answer.
        options: How to plan it.
        native: Whether every stage must run on DuckDB.
        rounded: Columns with sums of floats, which may differ by rounding.
    """
    try:
        graph = plan_query(sql, catalog, options)
    except SqlError as error:
        return [] if expected.rows is None else [f"only the planner refuses: {error}"]
    return graph_differences(graph, runner, expected, native=native, rounded=rounded)


def graph_differences(
    graph: StageGraph,
    runner: InProcessRunner,
    expected: Expected,
    *,
    native: bool = True,
    rounded: tuple[int, ...] = (),
) -> list[str]:
    """What is wrong with a planned query; an empty list if nothing."""
    if graph.fallback_reason is not None:
        return [f"is not staged: {graph.fallback_reason}"] if native else []
    reasons = [s.engine_reason for s in graph.stages if s.engine != "duckdb"]
    wrong = [f"a stage is not native: {reasons[0]}"] if native and reasons else []
    if expected.rows is None:
        try:
            runner.run(graph)
        except (QueryError, *SPARK_ERRORS):
            return wrong
        return [*wrong, f"Spark raises, the plan does not: {expected.error}"]
    if graph.result != expected.fields:
        return [*wrong, f"Spark's columns are {_show(expected.fields)}, ours {_show(graph.result)}"]
    try:
        found = runner.run(graph)
    except (QueryError, *SPARK_ERRORS) as error:
        return [*wrong, f"only the plan raises: {str(error)[:200]}"]
    return [*wrong, *_values(graph, expected.rows, found, rounded)]


def _show(fields: tuple[Field, ...]) -> str:
    return ", ".join(f"{f.name} {f.dtype}" for f in fields)


def _values(
    graph: StageGraph, expected: pa.Table, found: pa.Table, rounded: tuple[int, ...]
) -> list[str]:
    expected = expected.cast(found.schema)
    if rounded:
        found = _snapped(found, expected, rounded)
    if graph.ordered:
        left, right = rows_of(expected), rows_of(found)
        if left == right:
            return []
        if len(left) == len(right):
            row = next(i for i, pair in enumerate(zip(left, right, strict=True)) if pair[0] != pair[1])  # fmt: skip
            return [f"row {row}: Spark {left[row]}, ours {right[row]}"]
        return [f"Spark has {len(left)} rows, ours {len(right)}"]
    left_bag, right_bag = multiset(expected), multiset(found)
    if left_bag == right_bag:
        return []
    missing, extra = list((left_bag - right_bag).items())[:3], list((right_bag - left_bag).items())[:3]  # fmt: skip
    return [f"missing {missing}, not Spark's {extra}"]


def _snapped(found: pa.Table, expected: pa.Table, columns: tuple[int, ...]) -> pa.Table:
    """Our rows, in which floats of the columns that come close to Spark's are Spark's.

    Rows are matched by all other columns, and rows that agree in those by the order of their floats.
    """
    groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for row in sorted(_split(expected, columns), key=repr):
        groups.setdefault(row[0], []).append(row[1])
    values = {position: found.column(position).to_pylist() for position in columns}
    ours = _split(found, columns)
    for index in sorted(range(len(ours)), key=lambda i: repr(ours[i])):
        others, floats = ours[index]
        candidates = groups.get(others, [])
        for number, candidate in enumerate(candidates):
            if all(_close(a, b) for a, b in zip(floats, candidate, strict=True)):
                del candidates[number]
                for position, value in zip(columns, candidate, strict=True):
                    values[position][index] = value
                break
    for position in columns:
        column = pa.array(values[position], found.schema.field(position).type)
        found = found.set_column(position, found.schema.field(position), column)
    return found


def _split(
    table: pa.Table, columns: tuple[int, ...]
) -> list[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Each row as its exact values and its floats."""
    floats = [table.column(position).to_pylist() for position in columns]
    others = [i for i in range(table.num_columns) if i not in columns]
    exact = rows_of(table.select(others)) if others else [()] * table.num_rows
    return list(zip(exact, zip(*floats, strict=True), strict=True))


def _close(ours: float | None, theirs: float | None) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    return (math.isnan(ours) and math.isnan(theirs)) or math.isclose(
        ours, theirs, rel_tol=1e-9, abs_tol=1e-9
    )
