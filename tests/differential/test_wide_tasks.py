"""Queries of the corpus in one task of several cores equal Spark."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.distribution import reduce_builds
from stagecoach.planner.errors import SqlError
from stagecoach.planner.plan.physical import AggregateExec, HashJoinExec, PhysicalPlan
from stagecoach.planner.plan.repeated import repeated_parts
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from stagecoach.planner.tree import walk
from tests.differential.corpus_files import NATIVE, queries, subjects
from tests.differential.edge_tables import EdgeTables
from tests.differential.query_check import ask_spark, graph_differences
from tests.differential.test_corpus import FailingOver
from tests.differential.wide_plans import CORES, WIDE, all_worth_it, read_by_all_cores, with_bounds
from tests.share import share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KEYS = ("i", "l", "s", "gd", "gf", "d52", "d384", "ts", "dt", "b")
SMALL = "(SELECT a.{key} AS k, a.id, b.h FROM g a JOIN g b ON a.id = b.id WHERE a.id % 3 = 0) t"
KINDS = (
    "SELECT t.id, t.k FROM {small} WHERE NOT EXISTS (SELECT 1 FROM g u WHERE u.{key} {eq} t.k)",
    "SELECT t.id, t.k FROM {small} WHERE EXISTS (SELECT 1 FROM g u WHERE u.{key} {eq} t.k "
    "AND u.id <> t.id)",
    "SELECT t.id, u.id AS other FROM {small} LEFT JOIN g u ON u.{key} {eq} t.k AND u.id > t.id",
    "SELECT t.id FROM {small} WHERE NOT EXISTS (SELECT 1 FROM g u WHERE u.{key} {eq} t.k AND "
    "u.id <> t.id) OR NOT EXISTS (SELECT 1 FROM g v WHERE v.h = t.h AND v.{key} {eq} t.k)",
)
IN = (
    "SELECT t.id, t.k FROM {small} WHERE t.k NOT IN (SELECT u.{key} FROM g u WHERE u.id % 2 = 0)",
    "SELECT t.id, t.k FROM {small} WHERE t.k IN (SELECT u.{key} FROM g u WHERE u.id % 2 = 0)",
)


@pytest.fixture
def catalog(tables: EdgeTables) -> Iterator[MappingCatalog]:
    """Tables of which everything is planned as one task, with all that such a task may gain."""
    with all_worth_it():
        yield read_by_all_cores(tables.catalog)


@pytest.mark.parametrize("key", KEYS)
def test_reduced_build_sides_equal_spark(
    key: str, oracle: SparkSession, tables: EdgeTables, catalog: MappingCatalog
) -> None:
    runner, wrong = FailingOver(tables, oracle), []
    texts = [kind.format(small=SMALL, key="{key}", eq=eq) for kind in KINDS for eq in ("=", "<=>")]
    texts += [kind.format(small=SMALL, key="{key}") for kind in IN]
    reduced = 0
    for text in texts:
        sql = text.format(key=key)
        graph = plan_query(sql, catalog, WIDE)
        assert [stage.cores for stage in graph.stages] == [CORES], sql
        reduced += any(repeated_parts(stage.fragment) for stage in graph.stages)
        wrong += _differences(sql, graph, runner, oracle)
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong)
    assert reduced >= 6


OUTER = "SELECT a.id, a.{key}, c.h FROM g a JOIN {other} c ON a.{key} = c.{key} WHERE c.id % 3 = 0"
CORRELATED = (
    OUTER + " AND a.id > (SELECT min(u.id) FROM g u WHERE u.{key} = c.{key})",
    OUTER + " AND a.id = (SELECT max(u.id) FROM g u WHERE u.{key} = c.{key}) AND a.i > 0",
    OUTER + " AND a.d52 >= (SELECT min(u.d52) FROM g u WHERE u.{key} = a.{key} AND u.id <> 4)",
    OUTER + " AND a.id > (SELECT count(u.d384) FROM g u WHERE u.{key} = c.{key} AND u.h = c.h)",
    OUTER.replace("c.id % 3 = 0", "c.id < 0")
    + " AND a.id > (SELECT min(u.id) FROM g u WHERE u.{key} = c.{key})",
    "SELECT c.id, sum(a.d52) FROM g a JOIN {other} c ON a.{key} = c.{key} AND a.h = c.h WHERE "
    "c.id < 9 AND a.d52 <> (SELECT avg(u.d52) FROM g u WHERE u.{key} = c.{key} AND u.h = c.h) "
    "GROUP BY c.id",
)
OTHERS = ("g", "(SELECT * FROM g UNION ALL SELECT * FROM g WHERE id < 5)")


@pytest.mark.parametrize("key", ["i", "s", "gd", "d384", "ts"])
def test_rows_shared_with_a_subquery_equal_spark(
    key: str,
    oracle: SparkSession,
    tables: EdgeTables,
    catalog: MappingCatalog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A build side that is reduced is not the same in the subquery and in the outer query.
    monkeypatch.setattr(reduce_builds, "_SAVED_SECONDS", float("inf"))
    runner, wrong, shared = FailingOver(tables, oracle), [], 0
    for text, other in itertools.product(CORRELATED, OTHERS):
        sql = text.format(key=key, other=other)
        graph = plan_query(sql, catalog, WIDE)
        shared += any(_has_shared_semi_join(stage.fragment) for stage in graph.stages)
        wrong += _differences(sql, graph, runner, oracle)
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong)
    assert shared >= 4


def _has_shared_semi_join(fragment: PhysicalPlan) -> bool:
    parts = repeated_parts(fragment)
    return any(isinstance(part, HashJoinExec) and part.kind == "semi" for part in parts)


def test_wide_tasks_equal_spark(
    oracle: SparkSession, tables: EdgeTables, catalog: MappingCatalog
) -> None:
    runner, wrong, wide, shared, ranged = FailingOver(tables, oracle), [], 0, 0, 0
    found = [query for subject in subjects() for query in queries(subject)]
    for query in share((query for query in found if query.engine == NATIVE), 8):
        try:
            graph = plan_query(query.sql, with_bounds(catalog), WIDE)
        except SqlError:  # the test of the corpus looks at whether it may be refused
            continue
        if any(stage.cores > 1 for stage in graph.stages):
            wide += 1
            shared += any(repeated_parts(stage.fragment) for stage in graph.stages)
            ranged += takes_ranges(graph)
            expected = ask_spark(oracle, query.sql)
            lines = graph_differences(graph, runner, expected, native=False, rounded=query.rounded)
            wrong += [f"{query.name}: {line}\n    {query.sql}" for line in lines]
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong)
    assert wide > 10
    assert shared
    assert ranged


RANGED = (
    "SELECT {key} AS k, count(*) AS n, sum(d52) AS s, max(gf) AS m, min(s) AS t FROM g GROUP BY 1",
    "SELECT s, {key}, sum(i), count(DISTINCT gd) FROM g GROUP BY ALL HAVING count(*) > 1",
    "SELECT k, n FROM (SELECT {key} AS k, i % 3 AS r, count(*) AS n FROM g WHERE i > -5 OR i IS "
    "NULL GROUP BY {key}, i % 3) WHERE k IS NULL OR k <> 3",
    "SELECT DISTINCT {key} FROM g WHERE id < 0",
    "SELECT a.id FROM g a WHERE a.{key} IN (SELECT b.{key} FROM g b GROUP BY 1 HAVING count(*) > "
    "2) OR a.{key} IS NULL",
)


@pytest.mark.parametrize("key", ["i", "l", "h"])
@pytest.mark.parametrize("bounds", [(-3, 9), (2**40, 2**40 + 9), (-(2**63), 2**63 - 1)])
def test_aggregates_by_ranges_equal_spark(
    key: str,
    bounds: tuple[int, int],
    oracle: SparkSession,
    tables: EdgeTables,
    catalog: MappingCatalog,
) -> None:
    """Wherever the ranges end: statistics may be those of other files than a task reads."""
    catalog = with_bounds(catalog, *bounds)
    runner, wrong = FailingOver(tables, oracle), []
    for text in RANGED:
        sql = text.format(key=key)
        graph = plan_query(sql, catalog, WIDE)
        assert takes_ranges(graph), sql
        wrong += _differences(sql, graph, runner, oracle)
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong)


def _differences(
    sql: str, graph: StageGraph, runner: FailingOver, oracle: SparkSession
) -> list[str]:
    found = graph_differences(graph, runner, ask_spark(oracle, sql), native=False)
    return [f"{line}\n    {sql}" for line in found]


def takes_ranges(graph: StageGraph) -> bool:
    nodes = [node for stage in graph.stages for node in walk(stage.fragment)]
    return any(isinstance(node, AggregateExec) and node.range_ends for node in nodes)
