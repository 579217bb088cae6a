"""CTEs that are computed once for all places that name them give Spark's rows, however distributed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stagecoach.planner.analysis.queries import shared_ctes
from stagecoach.planner.planning import plan_query
from tests.differential.edge_tables import EdgeTables
from tests.differential.inprocess import InProcessRunner
from tests.differential.query_check import SHUFFLED, SINGLE
from tests.differential.spark_answers import all_differences, ask_spark_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPTIONS = {"single": SINGLE, "shuffle-1": SHUFFLED[1], "shuffle-3": SHUFFLED[3]}
# `referrer` holds NULLs, and both columns values that others have too.
FIRST = "SELECT id % 7 AS a, referrer % 5 AS b, name AS c FROM customers"
STEPS = (
    "SELECT x.a, y.b, max(x.c) AS c FROM {c} x JOIN {c} y ON x.a = y.b GROUP BY x.a, y.b",
    "SELECT DISTINCT x.a, y.b, x.c FROM {c} x LEFT JOIN {c} y ON x.b = y.a AND x.c = y.c",
    "SELECT DISTINCT x.a, y.b, y.c FROM {c} x FULL JOIN {c} y ON x.a <=> y.b",
    "SELECT a, b, c FROM {c} UNION SELECT b, a, c FROM {c}",
    "SELECT a, b, c FROM {c} UNION ALL SELECT b, a, upper(c) FROM {c}",
    "SELECT a, b, c FROM {c} WHERE b NOT IN (SELECT a FROM {c} WHERE a > 3) OR b IS NULL",
    "SELECT a, b + (SELECT count(DISTINCT a) FROM {c}) AS b, c FROM {c}",
    "SELECT a, b, c FROM {c} x WHERE EXISTS (SELECT 1 FROM {c} y WHERE y.b = x.a AND y.c <> x.c)",
)


def doubled(step: str, levels: int = 3) -> str:
    ctes = [f"c0 AS ({FIRST})"]
    ctes += [f"c{i} AS ({step.format(c=f'c{i - 1}')})" for i in range(1, levels + 1)]
    return f"WITH {', '.join(ctes)} SELECT a, b, c FROM c{levels}"


@pytest.mark.spark
@pytest.mark.slow
def test_shared_ctes_equal_spark(
    oracle: SparkSession,
    tables: EdgeTables,
    runner: InProcessRunner,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shared_ctes, "MAX_RELATIONS", 0)
    monkeypatch.setattr(shared_ctes, "MAX_COPY", 0)
    queries = [doubled(step) for step in STEPS]
    shared = [plan_query(sql, tables.catalog, SHUFFLED[3]) for sql in queries]
    assert all(
        any(stage.output.kind == "shuffle" and not stage.output.keys for stage in graph.stages)
        for graph in shared
    )
    wrong = all_differences(ask_spark_all(oracle, queries), tables, runner, OPTIONS)
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong)
