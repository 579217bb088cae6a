"""Every query of the corpus equals Spark, however it is distributed and after a trip through JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stagecoach.infra.errors import QueryError
from stagecoach.planner import StageGraph, plan_query
from stagecoach.planner.errors import SqlError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.serde import dump_graph, load_graph
from stagecoach.planner.plan.stages import Stage
from tests.differential import corpus_files
from tests.differential.corpus_files import FALLBACK, NATIVE, PARTLY, CorpusQuery, queries, subjects
from tests.differential.edge_tables import EdgeTables
from tests.differential.engine_mix import mixed, on_spark
from tests.differential.inprocess import InProcessRunner, StageResult
from tests.differential.query_check import Expected, ask_spark, graph_differences
from tests.share import EVERYTHING, share, some_ways

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPTIONS = {
    "single": PlannerOptions(single_task_bytes=1 << 60),
    "forced-1": PlannerOptions(force_distribution=True, num_partitions=1, broadcast_bytes=0),
    "forced-4": PlannerOptions(force_distribution=True, num_partitions=4, broadcast_bytes=0),
    "broadcast-4": PlannerOptions(force_distribution=True, num_partitions=4),
    "levels-16": PlannerOptions(
        force_distribution=True, num_partitions=16, broadcast_bytes=0, shuffle_ranges=1
    ),
}


class FailingOver(InProcessRunner):
    """As the runtime does: Spark runs what DuckDB raises for, such as values it must not judge."""

    failed_over = False

    def _stage(self, stage: Stage, done: dict[int, StageResult]) -> StageResult:
        try:
            return super()._stage(stage, done)
        except QueryError:
            self.failed_over = True
            return super()._stage(replace(stage, engine="spark"), done)


def engine_of(graph: StageGraph) -> str:
    """Where the stages run, in the words of the corpus."""
    if graph.fallback_reason is not None:
        return FALLBACK
    engines = {stage.engine for stage in graph.stages}
    return NATIVE if engines == {"duckdb"} else PARTLY


def wrong_of(
    query: CorpusQuery, tables: EdgeTables, runner: FailingOver, expected: Expected
) -> dict[str, list[str]]:
    """Everything that is wrong with one query, by the way to plan it; equal plans run once."""
    wrong: dict[str, list[str]] = {}
    seen = set()
    for name, options in some_ways(query.sql, OPTIONS).items():
        try:
            graph = plan_query(query.sql, tables.catalog, options)
        except SqlError as error:
            if expected.rows is not None:
                wrong[name] = [f"only the planner refuses: {error}"]
            continue
        stored = dump_graph(graph)
        if stored not in seen:
            seen.add(stored)
            wrong[name] = _wrong_of_graph(query, graph, stored, runner, expected)
    return wrong


def _wrong_of_graph(
    query: CorpusQuery, graph: StageGraph, stored: str, runner: FailingOver, expected: Expected
) -> list[str]:
    reloaded = load_graph(stored)
    wrong = [] if reloaded == graph else ["JSON does not give the plan back"]
    runner.failed_over = False
    wrong += graph_differences(reloaded, runner, expected, native=False, rounded=query.rounded)
    engine = PARTLY if runner.failed_over and expected.rows is not None else engine_of(graph)
    if engine != query.engine:
        reasons = [graph.fallback_reason, *(s.engine_reason for s in graph.stages)]
        wrong.append(f"runs on {engine}, not {query.engine}: {reasons}")
    return wrong


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("subject", subjects())
def test_corpus_equals_spark(oracle: SparkSession, tables: EdgeTables, subject: str) -> None:
    runner, wrong = FailingOver(tables, oracle), []
    for query in share(queries(subject), 5):
        expected = ask_spark(oracle, query.sql)
        for name, found in wrong_of(query, tables, runner, expected).items():
            wrong += [f"{query.name} [{name}]: {line}\n    {query.sql}" for line in found]
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("engines", [on_spark, mixed])
@pytest.mark.parametrize("subject", subjects())
def test_corpus_equals_spark_on_other_engines(
    oracle: SparkSession, tables: EdgeTables, subject: str, engines: Callable[..., StageGraph]
) -> None:
    """Stages on Spark, and beside those of DuckDB, as where DuckDB fails for the data of a stage."""
    runner, wrong, staged = FailingOver(tables, oracle), [], 0
    for query in share(queries(subject), 30):
        expected = ask_spark(oracle, query.sql)
        for name in ("single", "forced-4") if engines is on_spark else ("forced-4",):
            try:
                graph = plan_query(query.sql, tables.catalog, OPTIONS[name])
            except SqlError:
                break  # told by the test above
            if graph.fallback_reason is None:
                staged += 1
                graph = engines(graph) if engines is on_spark else engines(graph, query.name)
                found = graph_differences(
                    graph, runner, expected, native=False, rounded=query.rounded
                )
                wrong += [f"{query.name} [{name}]: {line}\n    {query.sql}" for line in found]
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong)
    assert staged or not EVERYTHING


def test_the_corpus_is_large_and_mostly_native() -> None:
    found = Counter(query.engine for s in subjects() for query in queries(s))
    assert found.total() >= 300
    assert found[NATIVE] >= 0.85 * found.total(), dict(found)


def test_titles_name_one_thing_each() -> None:
    titles = Counter(
        f"{s}: {q.title}" for s in corpus_files.subjects() for q in corpus_files.queries(s)
    )
    assert [t for t, n in titles.items() if n > 1] == []
