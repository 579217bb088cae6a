"""Queries of the corpus in one task of several cores equal Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.distribution import wide_tasks
from stagecoach.planner.errors import SqlError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.repeated import repeated_parts
from stagecoach.planner.planning import plan_query
from tests.differential.corpus_files import NATIVE, queries, subjects
from tests.differential.edge_tables import EdgeTables
from tests.differential.query_check import ask_spark, graph_differences
from tests.differential.test_corpus import FailingOver
from tests.share import share

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

OPTIONS = PlannerOptions(single_task_bytes=0, inline_bytes=0, task_cores=4, max_lost_seconds=1000)


def test_wide_tasks_equal_spark(
    oracle: SparkSession, tables: EdgeTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wide_tasks, "MIN_SECONDS", 0.0)
    monkeypatch.setattr(wide_tasks, "_SHARED_SECONDS", float("-inf"))
    names = tables.catalog.table_names()
    infos = [info for name in names if (info := tables.catalog.table(name)) is not None]
    catalog = MappingCatalog([replace(info, by_cores=True, is_local=True) for info in infos])
    runner, wrong, wide, shared = FailingOver(tables, oracle), [], 0, 0
    found = [query for subject in subjects() for query in queries(subject)]
    for query in share((query for query in found if query.engine == NATIVE), 8):
        try:
            graph = plan_query(query.sql, catalog, OPTIONS)
        except SqlError:  # the test of the corpus looks at whether it may be refused
            continue
        if any(stage.cores > 1 for stage in graph.stages):
            wide += 1
            shared += any(repeated_parts(stage.fragment) for stage in graph.stages)
            expected = ask_spark(oracle, query.sql)
            lines = graph_differences(graph, runner, expected, native=False, rounded=query.rounded)
            wrong += [f"{query.name}: {line}\n    {query.sql}" for line in lines]
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong)
    assert wide > 10
    assert shared
