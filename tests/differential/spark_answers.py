"""Spark's answers to many queries: in, queries; out, what plain Spark says of each."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tests.differential.query_check import Expected, ask_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ask_spark_all(spark: SparkSession, queries: list[str]) -> dict[str, Expected]:
    """The answers; several queries at a time, because Spark plans longer than it runs."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        answers = pool.map(lambda sql: ask_spark(spark, sql), queries)
        return dict(zip(queries, answers, strict=True))
