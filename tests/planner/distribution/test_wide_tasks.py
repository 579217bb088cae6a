"""Which parts of a query one task computes on several cores."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.distribution import wide_tasks
from stagecoach.planner.distribution.work import work_seconds
from stagecoach.planner.explain.display import render_graph
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.physical import AggregateExec, HashJoinExec, ScanExec, SortExec
from stagecoach.planner.plan.serde import dump_graph, load_graph
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from stagecoach.planner.render.fragment import render_fragment
from stagecoach.planner.tree import walk
from tests.planner.catalogs import table

# Work of one core: 2 to 4 s for an aggregate over `lines`, 20 s over `events`.
LINES = "order_id bigint; line int; price decimal(12,2); weight double; note string"
CATALOG = MappingCatalog(
    [
        replace(
            table("lines", LINES, 40_000_000, distinct={"order_id": 1_000_000}),
            by_cores=True,
            is_local=True,
        ),
        replace(
            table("events", LINES, 200_000_000, distinct={"order_id": 900}),
            by_cores=True,
            is_local=True,
        ),
        replace(
            table("orders", "id bigint; customer bigint; day date"), by_cores=True, is_local=True
        ),
        table("remote", LINES, 40_000_000, distinct={"order_id": 1_000_000}),
    ]
)
SUM = "SELECT order_id, sum(price) AS total FROM lines GROUP BY order_id"


def plan(sql: str, **options: int | bool | str) -> StageGraph:
    return plan_query(sql, CATALOG, PlannerOptions().updated(options))


def is_one_wide_stage(graph: StageGraph) -> bool:
    return [stage.cores for stage in graph.stages] == [2]


@pytest.mark.parametrize(
    "sql",
    [
        SUM,
        f"{SUM} ORDER BY total DESC LIMIT 10",
        "SELECT customer, count(*) FROM lines JOIN orders ON order_id = id GROUP BY customer",
        "SELECT count(DISTINCT note), min(weight), avg(price), sum(line) FROM lines",
        "SELECT day FROM orders WHERE EXISTS (SELECT 1 FROM lines WHERE order_id = id) ORDER BY 1",
    ],
)
def test_what_a_task_finishes_soon_is_one_stage(sql: str) -> None:
    assert is_one_wide_stage(plan(sql))


@pytest.mark.parametrize(
    ("sql", "options"),
    [
        # More than may be lost.
        (SUM.replace("lines", "events"), {}),
        (SUM, {"max_lost_seconds": 0}),
        # One core, or none that the planner knows to share.
        (SUM, {"task_cores": 1}),
        (SUM.replace("lines", "remote"), {}),
        # Asked for.
        (SUM, {"force_distribution": True}),
        (SUM.replace("lines", "(SELECT /*+ REPARTITION(4) */ * FROM lines)"), {}),
    ],
)
def test_other_queries_keep_their_stages(sql: str, options: dict[str, int | bool]) -> None:
    graph = plan(sql, **options)
    assert len(graph.stages) > 1
    assert {stage.cores for stage in graph.stages} == {1}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT order_id, sum(weight) FROM lines GROUP BY order_id",
        "SELECT order_id, avg(line) FROM lines GROUP BY order_id",
        "SELECT order_id, collect_list(line) FROM lines GROUP BY order_id",
        "SELECT order_id, first(note) FROM lines GROUP BY order_id",
        "SELECT order_id, row_number() OVER (PARTITION BY line ORDER BY price) FROM lines",
        "SELECT order_id, count(*) FROM (SELECT * FROM lines LIMIT 5000000) GROUP BY order_id",
        "SELECT order_id, sin(sum(price)) FROM lines GROUP BY order_id",
    ],
)
def test_what_depends_on_the_order_of_rows_has_one_core(sql: str) -> None:
    graph = plan(sql)
    assert len(graph.stages) > 1
    assert {stage.cores for stage in graph.stages} == {1}


COUNTS = "SELECT id, count(line) FROM orders LEFT JOIN lines ON order_id = id GROUP BY id"


@pytest.mark.parametrize(
    ("options", "aggregates"),
    [({}, 1), ({"max_lost_seconds": 0}, 0), ({"task_cores": 1}, 0)],
)
def test_a_task_that_has_all_rows_of_a_group_aggregates_them_before_a_join(
    options: dict[str, int], aggregates: int
) -> None:
    """Of several tasks each would have nearly all orders, and send a group for each."""
    stages = plan(COUNTS, **options).stages
    joins = (n for s in stages for n in walk(s.fragment) if isinstance(n, HashJoinExec))
    below = [node for join in joins for node in walk(join) if isinstance(node, AggregateExec)]
    assert len(below) == aggregates


def test_a_part_of_a_large_query_is_a_wide_stage_of_its_own() -> None:
    graph = plan(f"SELECT e.note, t.total FROM events e JOIN ({SUM}) t ON e.order_id = t.order_id")
    wide = [stage for stage in graph.stages if stage.cores == 2]
    assert [stage.tables for stage in wide] == [("lines",)]
    assert wide[0] is not graph.head
    assert all(leaf.read == "all" for leaf in wide[0].leaves if isinstance(leaf, ScanExec))


def test_both_sides_of_a_join_are_stages_if_together_they_take_too_long() -> None:
    other = "SELECT order_id, max(price) AS most FROM lines WHERE note <> 'x' GROUP BY order_id"
    graph = plan(
        f"SELECT t.total, u.most FROM ({SUM}) t JOIN ({other}) u ON t.order_id = u.order_id",
        max_lost_seconds=1,
        broadcast_bytes=0,
    )
    assert len(graph.stages) > 2


def test_what_stands_in_a_query_twice_is_computed_once() -> None:
    sql = f"WITH t AS ({SUM}) SELECT * FROM t WHERE total = (SELECT max(total) FROM t)"
    graph = plan(sql)
    assert is_one_wide_stage(graph)
    scans = {leaf for leaf in graph.head.leaves if isinstance(leaf, ScanExec)}
    assert len(scans) == 1
    text = render_fragment(graph.head, "duckdb", {})
    assert text.startswith("WITH part_0 AS MATERIALIZED (")
    assert text.count("part_0") == 3
    assert text.count("sum(") == 1
    assert render_graph(graph).count("computed=once for all places") == 2
    # Spark would compute it for each place all the same.
    assert "WITH" not in render_fragment(graph.head, "spark", {})


def test_places_that_need_other_columns_share_what_is_computed_once() -> None:
    sql = (
        "WITH t AS (SELECT order_id, sum(price) AS a, max(line) AS b, min(note) AS c FROM lines "
        "GROUP BY order_id) SELECT x.a, y.b FROM t x JOIN t y ON x.b = y.order_id"
    )
    graph = plan(sql)
    assert is_one_wide_stage(graph)
    text = render_fragment(graph.head, "duckdb", {})
    assert (text.count("sum("), text.count("max("), text.count("min(")) == (1, 1, 0)


def test_what_other_stages_compute_too_stays_a_stage() -> None:
    # One place is below a window function, which one core computes.
    sql = (
        f"WITH t AS ({SUM}) SELECT * FROM t WHERE total = (SELECT max(total) FROM t) "
        "UNION ALL SELECT order_id, lag(total) OVER (ORDER BY order_id) FROM t"
    )
    graph = plan(sql)
    scans = [leaf for stage in graph.stages for leaf in stage.leaves if isinstance(leaf, ScanExec)]
    assert len(scans) == 1


def test_rows_that_cost_more_to_keep_than_to_compute_are_computed_for_each_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wide_tasks, "MOST_STATE_BYTES", float("inf"))
    many = "SELECT a.line, b.note FROM lines a JOIN lines b ON a.order_id = b.order_id"
    sql = f"WITH t AS ({many}) SELECT max(x.note) FROM t x JOIN t y ON x.line = y.line"
    graph = plan(sql, max_lost_seconds=1_000_000)
    assert is_one_wide_stage(graph)
    assert "MATERIALIZED" not in render_fragment(graph.head, "duckdb", {})


def test_explain_tells_the_cores_and_the_estimate() -> None:
    shown = render_graph(plan(SUM))
    assert re.search(r"-- 2 cores: an estimated [01]\.\d s without exchanges", shown), shown


def test_cores_are_stored_and_no_part_of_what_is_computed() -> None:
    graph = plan(SUM)
    stored = load_graph(dump_graph(graph))
    assert is_one_wide_stage(stored)
    narrow = replace(graph.head, cores=1)
    assert narrow.plan_hash == graph.head.plan_hash


def test_work_grows_with_what_operators_read() -> None:
    scan = ScanExec("t", (), ())
    rows = {scan: (1e6, 1e9), SortExec(scan, ()): (1e6, 1e9), SortExec(scan, (), 5): (5.0, 1.0)}
    alone, sorted_, top = (work_seconds([node], rows.__getitem__) for node in rows)
    assert alone == pytest.approx(0.34)
    assert sorted_ == pytest.approx(0.12)
    assert top == 0.0


def test_a_task_holds_no_more_rows_than_fit_into_memory() -> None:
    """They would take less time than may be lost, were they held."""
    wide = "id bigint, " + ", ".join(f"c{number} string" for number in range(40))
    for rows, fits in ((1_000_000, True), (4_000_000, False)):
        info = table("docs", wide.replace(",", ";"), rows)
        catalog = MappingCatalog([replace(info, by_cores=True, is_local=True)])
        sql = "SELECT * FROM docs ORDER BY id"
        graph = plan_query(sql, catalog, PlannerOptions(max_lost_seconds=20))
        assert is_one_wide_stage(graph) == fits, rows


def test_a_task_over_remote_files_has_what_one_core_computes() -> None:
    """It may run on a cluster, where a task often has one core."""
    lines = table("lines", LINES, 40_000_000, distinct={"order_id": 1_000_000})
    sql = "SELECT count(*) AS n, max(price) AS p FROM lines"
    sizes = []
    for rows in (4_000_000, 20_000_000, 60_000_000, 200_000_000):
        stages = {}
        for is_local in (True, False):
            assert lines.stats is not None
            stats = replace(lines.stats, num_rows=rows, num_bytes=rows * 50)
            info = replace(lines, stats=stats, by_cores=True, is_local=is_local)
            graph = plan_query(sql, MappingCatalog([info]), name="q")
            stages[is_local] = len(graph.stages)
        sizes.append((stages[True], stages[False]))
    assert sizes[0] == (1, 1)
    assert any(local < remote for local, remote in sizes)
    assert all(local <= remote for local, remote in sizes)
