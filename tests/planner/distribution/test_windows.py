"""Windows in plans: what shares an operator or an exchange, what moves, what a task drops first."""

from __future__ import annotations

import pytest

from stagecoach.planner import plan_query
from stagecoach.planner.errors import AnalysisError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.expressions import WindowCall
from stagecoach.planner.plan.logical import Filter, LogicalPlan, Project, Scan, Window
from stagecoach.planner.plan.physical import ExchangeExec, FilterExec, PhysicalPlan, WindowExec
from stagecoach.planner.plan.serde import dump_graph, load_graph
from stagecoach.planner.planning import plan_until
from stagecoach.planner.render.fragment import render_fragment
from stagecoach.planner.tree import walk
from tests.planner.catalogs import SALES

SHUFFLED = PlannerOptions(broadcast_bytes=0, num_partitions=4)
_FIRST = "SELECT * FROM (SELECT id, status, {rank} OVER (PARTITION BY status ORDER BY total) AS r{more} FROM orders) WHERE {filter}"  # fmt: skip


def optimized(sql: str) -> list[LogicalPlan]:
    """The operators of the optimised plan, parents first."""
    plan = plan_until(sql, SALES, "optimized", SHUFFLED)
    assert isinstance(plan, LogicalPlan)
    return list(walk(plan))


def physical(sql: str) -> list[PhysicalPlan]:
    """The operators of the physical plan, parents first."""
    plan = plan_until(sql, SALES, "physical", SHUFFLED)
    assert isinstance(plan, PhysicalPlan)
    return list(walk(plan))


def exchanges(sql: str) -> list[str]:
    """The exchanges, from the result to the tables: kind and names of the keys."""
    found = []
    for node in physical(sql):
        if isinstance(node, ExchangeExec):
            names = {c.id: c.name for c in node.columns}
            found.append(f"{node.kind}({', '.join(names[k] for k in node.keys)})")
    return found


def test_calls_of_the_same_keys_share_an_operator() -> None:
    nodes = optimized(
        "SELECT id, sum(total) OVER (PARTITION BY status, day) AS a, "
        "rank() OVER (PARTITION BY day, status ORDER BY id) AS b, count(*) OVER () AS c FROM orders"
    )
    windows = [n for n in nodes if isinstance(n, Window)]
    assert [len(w.calls) for w in windows] == [1, 2]
    assert not windows[0].partition  # the one over all rows is on top


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ("sum(total) OVER (PARTITION BY status) AS a", ["shuffle(status)"]),
        ("sum(total) OVER () AS a", ["gather()"]),
        ("sum(total) OVER (PARTITION BY status, day) AS a, count(*) OVER (PARTITION BY day) AS b", ["shuffle(day)"]),
        ("count(*) OVER (PARTITION BY day) AS b, sum(total) OVER (PARTITION BY status) AS a", ["shuffle(status)", "shuffle(day)"]),
        ("count(*) OVER () AS b, sum(total) OVER (PARTITION BY status) AS a", ["gather()", "shuffle(status)"]),
        ("count(*) OVER (PARTITION BY customer, status) AS a, count(*) OVER (PARTITION BY customer, day) AS b, count(*) OVER (PARTITION BY customer) AS c", ["shuffle(customer)"]),
        ("count(*) OVER (PARTITION BY customer % 10) AS a", ["shuffle(key)"]),
        ("sum(sum(total) OVER (PARTITION BY status)) OVER (PARTITION BY status, day) AS a", ["shuffle(status)"]),
        ("max(total) OVER (PARTITION BY customer) AS a, avg(total) OVER (PARTITION BY customer, day) AS b", ["shuffle(customer)"]),
    ],
)  # fmt: skip
def test_windows_share_exchanges(items: str, expected: list[str]) -> None:
    assert exchanges(f"SELECT id, {items} FROM orders") == expected


def test_a_window_uses_the_partitioning_of_a_join_and_gives_it_on() -> None:
    joined = "SELECT o.id, count(*) OVER (PARTITION BY o.id) AS n FROM orders o JOIN lines l ON o.id = l.order_id"  # fmt: skip
    assert not any(isinstance(n.child, WindowExec) for n in physical(joined) if isinstance(n, ExchangeExec))  # fmt: skip
    assert sorted(e for e in exchanges(joined) if e.startswith("shuffle")) == ["shuffle(id)", "shuffle(order_id)"]  # fmt: skip
    grouped = "SELECT status, max(n) FROM (SELECT status, count(*) OVER (PARTITION BY status) AS n FROM orders) GROUP BY status"  # fmt: skip
    assert exchanges(grouped) == ["shuffle(status)"]


def test_a_window_whose_keys_are_not_hashed_is_one_task() -> None:
    sql = "SELECT a.id, count(*) OVER (PARTITION BY o.tags) AS n FROM orders a JOIN odd o ON a.id = length(o.tags[0])"  # fmt: skip
    assert exchanges(sql)[0] == "gather()"


@pytest.mark.parametrize(
    ("rank", "filter_", "kept"),
    [
        ("rank()", "r <= 3", 3), ("row_number()", "r = 1", 1), ("dense_rank()", "r < 4", 3), ("rank()", "2 >= r", 2), ("rank()", "r <= 5 AND id > 7", 5),
        ("rank()", "r <= 1000", 1000),
    ],
)  # fmt: skip
def test_each_task_drops_rows_beyond_a_rank(rank: str, filter_: str, kept: int) -> None:
    nodes = physical(_FIRST.format(rank=rank, filter=filter_, more=""))
    (below,) = [n.child for n in nodes if isinstance(n, ExchangeExec)]
    (limit,) = [n for n in walk(below) if isinstance(n, FilterExec)]
    assert isinstance(limit.child, WindowExec)
    assert str(kept) in str(limit.predicate)
    assert [c.name for c in below.columns] == ["id", "total", "status"]


@pytest.mark.parametrize(
    ("rank", "filter_", "more"),
    [
        ("rank()", "r > 3", ""), ("rank()", "r <= 3 OR id = 1", ""), ("percent_rank()", "r <= 1", ""), ("rank()", "r <= 1001", ""), ("rank()", "r <= id", ""),
        ("rank()", "r <= 3", ", sum(total) OVER (PARTITION BY status) AS s"), ("rank()", "r <= 3", ", rank() OVER (PARTITION BY status ORDER BY id) AS s"),
        ("cume_dist()", "r <= 1", ""), ("rank()", "r <> 1", ""),
    ],
)  # fmt: skip
def test_no_row_is_dropped_that_another_call_may_see(rank: str, filter_: str, more: str) -> None:
    nodes = physical(_FIRST.format(rank=rank, filter=filter_, more=more))
    (below,) = [n.child for n in nodes if isinstance(n, ExchangeExec)]
    assert not any(isinstance(n, WindowExec) for n in walk(below))


def test_conditions_on_partition_keys_move_below_a_window() -> None:
    inner = "SELECT id, status, total, sum(total) OVER (PARTITION BY status) AS s FROM orders"
    nodes = optimized(f"SELECT * FROM ({inner}) WHERE status = 'open' AND total > 5")
    above = [type(n).__name__ for n in nodes]
    assert above.index("Filter") < above.index("Window")
    below = nodes[above.index("Window") + 1]
    assert isinstance(below, Filter)
    assert [c.name for c in nodes[-1].columns if c.id in below.predicate.column_ids] == ["status"]


@pytest.mark.parametrize("key", ["price", "line + 1"])
def test_conditions_on_other_keys_stay(key: str) -> None:
    inner = f"SELECT {key} AS k, count(*) OVER (PARTITION BY {key}) AS n FROM lines"
    names = [type(n).__name__ for n in optimized(f"SELECT * FROM ({inner}) WHERE k > 2")]
    assert names.index("Filter") < names.index("Window")


def test_unread_calls_and_their_columns_are_dropped() -> None:
    inner = "SELECT id, sum(total) OVER (PARTITION BY status) AS a, rank() OVER (PARTITION BY status ORDER BY day) AS b FROM orders"  # fmt: skip
    nodes = optimized(f"SELECT id, b FROM ({inner})")
    (window,) = [n for n in nodes if isinstance(n, Window)]
    assert [call.function for _, call in window.calls] == ["rank"]
    (scan,) = [n for n in nodes if isinstance(n, Scan)]
    assert scan.source == ("id", "status", "day")
    assert not any(isinstance(n, Window) for n in optimized(f"SELECT id FROM ({inner})"))


def test_an_average_is_a_sum_and_a_count() -> None:
    nodes = physical("SELECT avg(total) OVER (PARTITION BY status) AS a, count(total) OVER (PARTITION BY status) AS n FROM orders")  # fmt: skip
    (window,) = [n for n in nodes if isinstance(n, WindowExec)]
    assert sorted(call.function for _, call in window.calls) == ["count", "sum"]


def test_the_default_frame_is_written_out() -> None:
    nodes = optimized("SELECT sum(total) OVER (ORDER BY id) AS a, sum(total) OVER () AS b, lag(id) OVER (ORDER BY id) AS c FROM orders")  # fmt: skip
    calls: list[WindowCall] = [call for n in nodes if isinstance(n, Window) for _, call in n.calls]
    frames = [call.frame and (call.frame.unit, call.frame.end.kind) for call in calls]
    assert frames == [("range", "current"), ("rows", "unbounded_following"), None]


def test_both_engines_get_the_whole_frame() -> None:
    sql = "SELECT sum(total) OVER (PARTITION BY status ORDER BY day DESC RANGE BETWEEN INTERVAL 2 DAYS PRECEDING AND 0 FOLLOWING) AS a FROM orders"  # fmt: skip
    with pytest.raises(AnalysisError, match="the same type"):
        plan_query(sql, SALES)
    graph = plan_query(sql.replace("0 FOLLOWING", "INTERVAL 1 DAY FOLLOWING"), SALES)
    spark, duckdb = (render_fragment(graph.head, engine, {}) for engine in ("spark", "duckdb"))
    assert "DESC NULLS LAST RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING" in spark
    assert "DATE '1970-01-01') DESC NULLS LAST RANGE BETWEEN CAST(2 AS BIGINT) PRECEDING" in duckdb


def test_days_of_a_zone_with_clock_changes_are_not_staged() -> None:
    sql = "SELECT count(*) OVER (ORDER BY moment RANGE {} PRECEDING) AS n FROM odd"
    berlin = PlannerOptions(time_zone="Europe/Berlin")
    assert plan_query(sql.format("INTERVAL 1 DAY"), SALES, berlin).fallback_reason
    assert plan_query(sql.format("INTERVAL 23 HOURS"), SALES, berlin).fallback_reason is None
    assert plan_query(sql.format("INTERVAL 1 DAY"), SALES).fallback_reason is None


def test_a_graph_with_windows_survives_the_file() -> None:
    sql = "SELECT id, rank() OVER (PARTITION BY status ORDER BY total ROWS UNBOUNDED PRECEDING) AS r, sum(total) OVER (ORDER BY id RANGE 5 PRECEDING) AS s FROM orders"  # fmt: skip
    graph = plan_query(sql, SALES, SHUFFLED)
    assert load_graph(dump_graph(graph)) == graph


def test_a_projection_above_a_window_keeps_its_order_of_columns() -> None:
    plan = plan_until("SELECT count(*) OVER (PARTITION BY status, day) AS b, status, count(*) OVER (PARTITION BY day) AS a FROM orders", SALES, "optimized")  # fmt: skip
    assert isinstance(plan, Project)
    assert [c.name for c in plan.columns] == ["b", "status", "a"]
