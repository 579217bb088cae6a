"""Random queries: whatever is staged equals Spark, however it is distributed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from planner import plan_query
from tests.differential.edge_tables import EdgeTables
from tests.differential.inprocess import InProcessRunner
from tests.differential.query_check import ALL_OPTIONS, ask_spark, differences
from tests.differential.random_queries import QueryMaker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SEEDS = 200
CHOSEN = ("single", "broadcast", "shuffle-3")


@pytest.mark.parametrize("first", range(0, SEEDS, 50))
def test_random_queries_equal_spark(
    oracle: SparkSession, tables: EdgeTables, runner: InProcessRunner, first: int
) -> None:
    wrong, staged = [], 0
    for seed in range(first, first + 50):
        sql = QueryMaker(seed).query()
        expected = ask_spark(oracle, sql)
        for name in CHOSEN:
            try:
                found = differences(sql, tables.catalog, runner, expected, ALL_OPTIONS[name], native=False)  # fmt: skip
                if name == "single" and expected.rows is not None:
                    staged += plan_query(sql, tables.catalog).fallback_reason is None
            except Exception as error:  # noqa: BLE001  # report all, not the first
                found = [f"{type(error).__name__}: {str(error)[:300]}"]
            wrong += [f"seed {seed} [{name}]: {line}\n    {sql}" for line in found]
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong)
    assert staged > 25, "most queries must be staged, or this proves little"
