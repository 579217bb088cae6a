"""Aggregates below joins equal Spark: the corpus of the rule, and random queries, under statistics
that make it fire."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stagecoach.planner import plan_query, plan_until
from stagecoach.planner.options import PlannerOptions
from tests.differential.corpus_files import queries
from tests.differential.edge_tables import EdgeTables
from tests.differential.few_values import few_values
from tests.differential.query_check import ask_spark, graph_differences
from tests.differential.query_grammar import QueryGrammar
from tests.differential.test_corpus import FailingOver
from tests.differential.wide_plans import CORES, WIDE, read_by_all_cores
from tests.share import share

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

OPTIONS = {
    "single": PlannerOptions(single_task_bytes=1 << 60, broadcast_bytes=0),
    "shuffle-3": PlannerOptions(force_distribution=True, num_partitions=3, broadcast_bytes=0),
    "broadcast-2": PlannerOptions(force_distribution=True, num_partitions=2),
}
SEEDS = range(400, 408)


def test_the_corpus_equals_spark(oracle: SparkSession, tables: EdgeTables) -> None:
    catalog, runner, wrong = few_values(tables.schemas), FailingOver(tables, oracle), []
    for query in share(queries("eager-aggregation"), 3):
        answer = ask_spark(oracle, query.sql)
        for name, options in OPTIONS.items():
            graph = plan_query(query.sql, catalog, options)
            found = graph_differences(graph, runner, answer, native=False, rounded=query.rounded)
            wrong += [f"{query.name} [{name}]: {line}\n    {query.sql}" for line in found]
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong)


def test_the_corpus_in_one_task_equals_spark(oracle: SparkSession, tables: EdgeTables) -> None:
    """Of groups that many tasks would have each, which the rule leaves alone in several stages."""
    catalog = read_by_all_cores(few_values(tables.schemas, distinct=100_000))
    staged = WIDE.updated({"broadcast_bytes": 0, "partition_bytes": 1 << 20})
    options = staged.updated({"max_lost_seconds": 10**6})
    runner, wrong, fired = FailingOver(tables, oracle), [], 0
    for query in queries("eager-aggregation"):
        graph = plan_query(query.sql, catalog, options)
        fires = plan_until(query.sql, catalog, "optimized", options) != plan_until(
            query.sql, catalog, "optimized", staged.updated({"max_lost_seconds": 0})
        )
        if fires:
            fired += 1
            assert [stage.cores for stage in graph.stages] == [CORES], query.name
            answer = ask_spark(oracle, query.sql)
            found = graph_differences(graph, runner, answer, native=False, rounded=query.rounded)
            wrong += [f"{query.name}: {line}\n    {query.sql}" for line in found]
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong)
    assert fired > 10


@pytest.mark.timeout(600)
def test_random_queries_equal_spark(oracle: SparkSession, tables: EdgeTables) -> None:
    catalog, runner, wrong = few_values(tables.schemas), FailingOver(tables, oracle), []
    fired = 0
    for seed in SEEDS:
        sql = QueryGrammar(seed).query()
        plain = plan_query(sql, tables.catalog, OPTIONS["shuffle-3"])
        graph = plan_query(sql, catalog, OPTIONS["shuffle-3"])
        if graph.fallback_reason is not None or "sum" not in str(graph) or graph == plain:
            continue
        fired += 1
        found = graph_differences(graph, runner, ask_spark(oracle, sql), native=False)
        wrong += [f"seed {seed}: {line}\n    {sql}" for line in found]
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong)
    assert fired
