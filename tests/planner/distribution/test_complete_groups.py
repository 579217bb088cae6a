"""Which partial aggregates drop complete groups, and by which predicate."""

from __future__ import annotations

from typing import Any

import pytest

from stagecoach.planner.catalog import ColumnStats, MappingCatalog, TableInfo, TableStats
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.early_filters import complete_key, early_filter
from stagecoach.planner.plan.physical import AggregateExec
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from stagecoach.planner.render.fragment import render_fragment
from stagecoach.planner.types import BIGINT, DOUBLE, INT, STRING, Field

ROWS = 60_000_000


def stats(distinct: int) -> ColumnStats:
    return ColumnStats(0, distinct, 0, distinct, 8.0)


def table(name: str, rows: int = ROWS) -> TableInfo:
    columns = {"k": BIGINT, "j": INT, "t": STRING, "v": BIGINT, "x": DOUBLE}
    distinct = {"k": rows // 4, "j": 1000, "t": rows // 4, "v": 1000, "x": 1000}
    return TableInfo(
        name,
        tuple(Field(column, dtype) for column, dtype in columns.items()),
        TableStats(rows, rows * 30, 1, {c: stats(n) for c, n in distinct.items()}),
    )


def plan(sql: str, **options: Any) -> StageGraph:
    catalog = MappingCatalog([table("f"), table("few", 1000)])
    return plan_query(sql, catalog, PlannerOptions(**options), name="q")


def dropping(graph: StageGraph) -> list[tuple[str, str]]:
    """The predicates of stages that drop groups, and the columns of their scans."""
    found = []
    for stage in graph.stages:
        if (early := early_filter(stage.fragment)) is not None:
            key = complete_key(stage.fragment)
            assert key is not None
            assert isinstance(early.child, AggregateExec)
            assert early.child.mode == "partial"
            sql = render_fragment(stage, "duckdb", {})
            found.append((sql.split(" WHERE ")[-1], key[0].source[key[1]]))
    return found


def test_a_filter_above_groups_is_applied_to_complete_ones_in_the_tasks() -> None:
    sql = "SELECT k, sum(v) AS s, count(*) AS n FROM f GROUP BY k HAVING sum(v) > 300 AND s < n"
    ((predicate, column),) = dropping(plan(sql))
    assert column == "k"
    assert "300" in predicate
    assert "getvariable('complete_above')" in predicate
    ((_, column),) = dropping(plan("SELECT j, k FROM f GROUP BY j, k HAVING max(x) = 3"))
    assert column == "k"  # which has the most values


def test_a_key_is_found_below_filters_projections_and_broadcast_joins() -> None:
    sql = """SELECT y, min(v) AS m FROM (SELECT k AS y, v + 1 AS v, j FROM f WHERE x > 0) g
        JOIN (SELECT j AS i FROM few WHERE v > 990) h ON g.j = h.i GROUP BY y HAVING min(v) = 3"""
    ((_, column),) = dropping(plan(sql))
    assert column == "k"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k, sum(v) AS s FROM f GROUP BY k",
        "SELECT k, sum(v) AS s FROM few GROUP BY k HAVING sum(v) > 300",
        "SELECT j, sum(v) AS s FROM f GROUP BY j HAVING sum(v) > 300",
        "SELECT t, sum(v) AS s FROM f GROUP BY t HAVING sum(v) > 300",
        "SELECT k + 1, sum(v) AS s FROM f GROUP BY k + 1 HAVING sum(v) > 300",
        "SELECT k, sum(v) AS s FROM f GROUP BY k HAVING sum(v) + 1 > 300",
        "SELECT k, avg(v) AS s FROM f GROUP BY k HAVING avg(v) > 300",
        "SELECT k, count(DISTINCT v) AS s FROM f GROUP BY k HAVING count(DISTINCT v) > 300",
    ],
    ids=["no filter", "little", "few groups", "text", "computed", "arithmetic", "avg", "distinct"],
)
def test_nothing_is_dropped(sql: str) -> None:
    assert dropping(plan(sql)) == []


def test_nothing_is_dropped_that_a_later_run_takes_over_or_another_reader_needs() -> None:
    groups = "SELECT k, sum(v) AS s FROM f GROUP BY k"
    assert dropping(plan(f"{groups} HAVING sum(v) > 300", incremental=True)) == []
    both = f"SELECT k FROM ({groups}) WHERE s > 300 UNION ALL SELECT k FROM ({groups}) WHERE s < 9"
    assert dropping(plan(both)) == []
