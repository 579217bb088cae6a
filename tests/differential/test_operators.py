"""Joins, set operations, orders, groups and subqueries equal Spark, however they are distributed."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.differential.edge_tables import EdgeTables
from tests.differential.inprocess import InProcessRunner
from tests.differential.operator_cases import FAMILIES
from tests.differential.query_check import ALL_OPTIONS, ask_spark, differences

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize("family", list(FAMILIES))
def test_queries_equal_spark(
    oracle: SparkSession, tables: EdgeTables, runner: InProcessRunner, family: str
) -> None:
    wrong = []
    for sql in FAMILIES[family]:
        expected = ask_spark(oracle, sql)
        for name, options in ALL_OPTIONS.items():
            try:
                found = differences(sql, tables.catalog, runner, expected, options)
            except Exception as error:  # noqa: BLE001  # report all, not the first
                found = [f"{type(error).__name__}: {str(error)[:300]}"]
            wrong += [f"{sql} [{name}]: {line}" for line in found]
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong)
