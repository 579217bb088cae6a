"""What Spark raises for a query, we raise too, and the message names Spark's condition.

`error_queries.sql` has a query for each condition. `error_conditions.csv` lists all conditions of
the installed Spark; `python -m tests.differential.error_conditions` writes it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from stagecoach.infra.engines.spark.arbiter import SparkArbiter
from stagecoach.infra.engines.spark.errors import explain_error
from stagecoach.infra.errors import QueryError, QueryFailedError
from stagecoach.planner.errors import SqlError, StagecoachError
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from tests.differential import error_conditions
from tests.differential.edge_tables import EdgeTables
from tests.differential.error_tables import write_error_tables
from tests.differential.inprocess import InProcessRunner, collect
from tests.differential.query_check import SINGLE
from tests.differential.spark_answers import plain_session
from tests.share import share

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_ERRORS = (PySparkException, Py4JJavaError)
QUERIES = error_conditions.queries()


def test_every_condition_of_spark_is_listed() -> None:
    """The list is that of the installed Spark, and says of each condition what it should."""
    written = error_conditions.FILE.read_text(encoding="utf-8")
    assert written == error_conditions.listed(), "python -m tests.differential.error_conditions"


def test_enough_conditions_have_a_query() -> None:
    assert len({condition for condition, _ in QUERIES}) >= 330
    assert {condition for condition, _ in QUERIES} <= set(error_conditions.of_spark())


class Errors:
    """Conditions of queries, of plain Spark and of ours."""

    def __init__(self, spark: SparkSession, tables: EdgeTables) -> None:
        self.tables = tables
        self.plain = plain_session(spark, tables)
        self.runner = InProcessRunner(tables, self.plain)
        self.running = threading.Lock()  # the views of stages are those of one session
        self.raised: dict[str, PySparkException | Py4JJavaError] = {}
        self.arbiter = SparkArbiter(lambda: spark)

    def of_spark(self, sql: str) -> str:
        """The condition that plain Spark raises; empty if it answers."""
        try:
            collect(self.plain.sql(sql))
        except SPARK_ERRORS as error:
            self.raised[sql] = error
            return condition_of(error)
        return ""

    def ours(self, sql: str) -> StagecoachError | None:
        """Our error, as a run shows it."""
        try:
            graph = plan_query(sql, self.tables.catalog, SINGLE, arbiter=self.arbiter)
        except SqlError as error:
            return error
        if graph.fallback_reason is not None:
            # Spark has run this very text.
            told = self.raised.get(sql)
            return None if told is None else explain_error(told, "query", "stage")
        try:
            with self.running:
                self._run(graph)
        except SPARK_ERRORS as error:
            return explain_error(error, "query", "stage")
        return None

    def _run(self, graph: StageGraph) -> None:
        try:
            self.runner.run(graph)
        except QueryError:
            # As in a run: what DuckDB does not answer, Spark does, or says why not.
            stages = tuple(replace(stage, engine="spark") for stage in graph.stages)
            self.runner.run(replace(graph, stages=stages))


def condition_of(error: PySparkException | Py4JJavaError) -> str:
    """The name of Spark's condition."""
    if isinstance(error, PySparkException):
        return error.getCondition() or type(error).__name__
    cause = error.java_exception
    while cause is not None:
        if "Spark" in cause.getClass().getName() and (name := cause.getCondition()) is not None:
            return str(name)
        cause = cause.getCause()
    return type(error).__name__


def wrong(condition: str, spark: str, error: StagecoachError | None) -> Iterator[str]:
    """What is wrong with a query's errors."""
    if spark != condition:
        yield f"Spark raises {spark or 'nothing'}, not {condition}"
    if error is None:
        yield f"Spark raises {spark}, ours answers"
    elif not isinstance(error, SqlError | QueryFailedError):
        yield f"{spark}: ours is a {type(error).__name__}: {error}"
    elif error.condition != spark or f"[{spark}]" not in str(error):
        yield f"Spark raises {spark}, ours says {error.condition}: {error}"


@pytest.mark.spark
@pytest.mark.slow
def test_our_errors_name_sparks_condition(spark: SparkSession, tmp_path: Path) -> None:
    errors = Errors(spark, write_error_tables(tmp_path))
    queries = share(QUERIES, 8)
    with ThreadPoolExecutor(max_workers=3) as pool:
        theirs = list(pool.map(errors.of_spark, (sql for _, sql in queries)))
        ours = list(pool.map(errors.ours, (sql for _, sql in queries)))
    found = [
        f"{sql}: {line}"
        for (condition, sql), spark_says, we_say in zip(queries, theirs, ours, strict=True)
        for line in wrong(condition, spark_says, we_say)
    ]
    assert not found, f"{len(found)} differences:\n" + "\n".join(found)
