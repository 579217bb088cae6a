"""Plain Spark's answers to many queries, and how ours differ from them."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from stagecoach.planner.options import PlannerOptions
from tests.differential.edge_tables import EdgeTables
from tests.differential.inprocess import InProcessRunner
from tests.differential.query_check import Expected, ask_spark, differences
from tests.share import some_ways

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ANSWER_SECONDS = 120.0


def plain_session(spark: SparkSession, tables: EdgeTables) -> SparkSession:
    """Plain Spark over tables, with views of its own."""
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "true")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    # A query of hundreds of expressions runs once: compiling it costs more than running it.
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    for name, paths in tables.files.items():
        session.read.parquet(*paths).createOrReplaceTempView(f"`{name}`")
    return session


def ask_spark_all(spark: SparkSession, queries: list[str]) -> dict[str, Expected]:
    """The answers; several queries at a time, because Spark plans longer than it runs.

    Raises:
        TimeoutError: Spark gave no answer. (Its `toArrow` was once seen waiting for ever for the
            thread that sends the rows.)
    """
    pool = ThreadPoolExecutor(max_workers=4)
    try:
        asked = {sql: pool.submit(ask_spark, spark, sql) for sql in queries}
        return {sql: answer.result(_ANSWER_SECONDS) for sql, answer in asked.items()}
    finally:
        # Not waited for: a thread that hangs would keep the test from failing.
        pool.shutdown(wait=False, cancel_futures=True)


def all_differences(
    answers: Mapping[str, Expected],
    tables: EdgeTables,
    runner: InProcessRunner,
    options: Mapping[str, PlannerOptions],
) -> list[str]:
    """What is wrong with queries, each planned with some of the options; every one is looked at."""
    wrong = []
    for sql, expected in answers.items():
        for name, chosen in some_ways(sql, options).items():
            try:
                found = differences(sql, tables.catalog, runner, expected, chosen)
            except Exception as error:  # noqa: BLE001  # report all, not the first
                found = [f"{type(error).__name__}: {str(error)[:300]}"]
            wrong += [f"{sql} [{name}]: {line}" for line in found]
    return wrong
