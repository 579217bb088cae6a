"""Random queries: whatever is staged equals Spark, however it is distributed.

A longer run: `STAGECOACH_RANDOM_QUERIES=2000 pytest tests/differential/test_random_queries.py`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stagecoach.planner import plan_query
from stagecoach.planner.options import PlannerOptions
from tests.differential.edge_tables import EdgeTables
from tests.differential.engine_mix import mixed
from tests.differential.inprocess import InProcessRunner
from tests.differential.query_check import ask_spark, differences, graph_differences
from tests.differential.query_grammar import QueryGrammar
from tests.share import in_test_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

COUNT = int(os.environ.get("STAGECOACH_RANDOM_QUERIES", "10"))
BATCH = 10
OPTIONS = {
    "single": PlannerOptions(single_task_bytes=1 << 60),
    "broadcast-2": PlannerOptions(force_distribution=True, num_partitions=2),
    "shuffle-3": PlannerOptions(force_distribution=True, num_partitions=3, broadcast_bytes=0),
}
# Spark fails on these itself, with an internal error.
SPARK_BREAKS = {61, 961}


@in_test_all  # of this kind, CI runs those of test_random_campaign.py
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_random_queries_equal_spark(
    oracle: SparkSession, tables: EdgeTables, runner: InProcessRunner, first: int
) -> None:
    wrong, staged = [], 0
    for seed in range(first, first + BATCH):
        if seed in SPARK_BREAKS:
            continue
        sql = QueryGrammar(seed).query()
        expected = ask_spark(oracle, sql)
        graph = plan_query(sql, tables.catalog, OPTIONS["shuffle-3"])
        staged += graph.fallback_reason is None
        if graph.fallback_reason is None and expected.rows is not None:
            found = graph_differences(mixed(graph, seed), runner, expected, native=False)
            wrong += [f"seed {seed} [mixed engines]: {line}\n    {sql}" for line in found]
        for name, options in OPTIONS.items():
            try:
                found = differences(sql, tables.catalog, runner, expected, options, native=False)
            except Exception as error:  # noqa: BLE001  # report all, not the first
                found = [f"{type(error).__name__}: {str(error)[:300]}"]
            wrong += [f"seed {seed} [{name}]: {line}\n    {sql}" for line in found]
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong)
    assert staged > 0.9 * BATCH - 1, "most queries must be staged, or this proves little"
