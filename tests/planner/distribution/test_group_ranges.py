"""Which aggregates of a task take one range of a key after the other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagecoach.planner.catalog import ColumnStats, MappingCatalog, TableInfo
from stagecoach.planner.engines.registry import SPARK
from stagecoach.planner.explain.display import render_graph
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.physical import AggregateExec
from stagecoach.planner.plan.serde import dump_graph, load_graph
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from stagecoach.planner.render.fragment import render_fragment
from stagecoach.planner.tree import walk
from tests.planner.catalogs import table

GROUPS = 8_000_000
SORTED = ColumnStats(1, GROUPS, 0, GROUPS, 8.0, overlap=0.001)
SUM = "SELECT order_id, sum(price) AS total FROM lines GROUP BY order_id"


def lines(
    stats: ColumnStats = SORTED, kind: str = "bigint", num_rows: int = 20_000_000
) -> TableInfo:
    """A table of which one column has these statistics."""
    info = table("lines", f"order_id {kind}; line int; price decimal(12,2)", num_rows)
    assert info.stats is not None
    columns = {**info.stats.columns, "order_id": stats}
    return replace(info, stats=replace(info.stats, columns=columns), by_cores=True, is_local=True)


def plan(sql: str, info: TableInfo) -> StageGraph:
    small = replace(table("small", "id bigint", 100), by_cores=True, is_local=True)
    options = PlannerOptions().updated({"max_lost_seconds": 10})
    return plan_query(sql, MappingCatalog([info, small]), options)


def ranged(graph: StageGraph) -> list[AggregateExec]:
    nodes = [node for stage in graph.stages for node in walk(stage.fragment)]
    return [node for node in nodes if isinstance(node, AggregateExec) and node.range_ends]


def test_many_groups_of_a_sorted_key_are_taken_by_ranges() -> None:
    graph = plan(SUM, lines())
    (aggregate,) = ranged(graph)
    assert [end.value for end in aggregate.range_ends] == [1 + GROUPS * i // 8 for i in range(1, 8)]
    assert load_graph(dump_graph(graph)) == graph
    assert "ranges=8 of order_id" in render_graph(graph)
    (stage,) = graph.stages
    assert render_fragment(stage, "duckdb", {}).count("UNION ALL") == 7
    assert "UNION" not in render_fragment(stage, SPARK, {})


@pytest.mark.parametrize(
    "sql",
    [
        f"{SUM} HAVING sum(price) > 300",
        "SELECT line, order_id, count(*) FROM lines GROUP BY line, order_id",
        "SELECT k, max(p) FROM (SELECT order_id AS k, price * 2 AS p FROM lines WHERE line > 1) "
        "GROUP BY k",
        "SELECT id FROM small WHERE id IN (SELECT order_id FROM lines GROUP BY 1 HAVING "
        "count(*) > 3)",
        "SELECT DISTINCT order_id FROM lines",
    ],
)
def test_what_is_between_scan_and_aggregate_may_compute_or_leave_out_rows(sql: str) -> None:
    assert len(ranged(plan(sql, lines()))) == 1


@pytest.mark.parametrize(
    ("stats", "kind"),
    [
        (replace(SORTED, overlap=1.0), "bigint"),  # any row group has any key
        (replace(SORTED, distinct_count=3_000_000), "bigint"),  # few groups
        (replace(SORTED, min_value=None), "bigint"),
        (replace(SORTED, min_value="a", max_value="z"), "string"),
        (replace(SORTED, min_value=0.0, max_value=8e6), "double"),
    ],
)
def test_one_range_where_more_would_gain_nothing(stats: ColumnStats, kind: str) -> None:
    assert not ranged(plan(SUM, lines(stats, kind)))


def test_one_range_of_a_table_on_an_object_store() -> None:
    remote = replace(lines(), is_local=False)
    options = PlannerOptions().updated({"max_lost_seconds": 40})
    graph = plan_query(SUM, MappingCatalog([remote]), options)
    assert len(graph.stages) == 1
    assert not ranged(graph)


@pytest.mark.parametrize(
    "sql",
    [
        # Each range would join again.
        "SELECT order_id, count(*) FROM lines JOIN small ON line = id GROUP BY order_id",
        "SELECT order_id + 1, count(*) FROM lines GROUP BY order_id + 1",
        "SELECT count(DISTINCT order_id) FROM lines",
    ],
)
def test_one_range_where_the_rows_are_not_those_of_a_scan(sql: str) -> None:
    graph = plan(sql, lines())
    assert not ranged(graph)
    assert len(graph.stages) == 1


def test_a_task_takes_less_time_for_ranges() -> None:
    many = replace(SORTED, max_value=30_000_000, distinct_count=30_000_000)
    stages = []
    for stats in (many, replace(many, overlap=1.0)):
        catalog = MappingCatalog([lines(stats, num_rows=80_000_000)])
        stages.append(len(plan_query(SUM, catalog, PlannerOptions()).stages))
    assert stages == [1, 2]
