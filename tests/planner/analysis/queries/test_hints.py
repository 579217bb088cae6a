"""Hints about tasks: which exchanges and markers a query gets, what Spark refuses, what is left out."""

from __future__ import annotations

import logging

import pytest

from stagecoach.planner.errors import AnalysisError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.physical import RepartitionExec, SortExec
from stagecoach.planner.plan.serde import dump_graph, load_graph
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from stagecoach.planner.tree import walk
from tests.planner.catalogs import SALES

SMALL = PlannerOptions(single_task_bytes=1 << 60)


def plan(sql: str, options: PlannerOptions | None = None) -> StageGraph:
    graph = plan_query(sql, SALES, options or PlannerOptions())
    assert load_graph(dump_graph(graph)) == graph
    return graph


def shuffles(graph: StageGraph) -> list[tuple[tuple[int, ...], int]]:
    return [(s.output.keys, s.output.num_partitions) for s in graph.stages[:-1]]


def markers(graph: StageGraph) -> list[tuple[int, int | None, bool]]:
    """Of each hint that is left: its stage, its number, whether fewer will do."""
    return [
        (stage.stage_id, node.count, node.at_most)
        for stage in graph.stages
        for node in walk(stage.fragment)
        if isinstance(node, RepartitionExec)
    ]


def test_rows_are_dealt_out_or_hashed_to_as_many_tasks_as_are_asked_for() -> None:
    for hint, keys in {
        "REPARTITION(5)": (),
        "repartition(5, id)": (1,),
        "REPARTITION(5, status, orders.id)": (0, 1),
        "REPARTITION_BY_RANGE(5, id)": (1,),
        "REPARTITION(5, customer)": (),  # not selected, so there is nothing to hash by
        "REPARTITION(5), COALESCE(2)": (),
        "REPARTITION(5), REPARTITION(3, id)": (),
        "BROADCAST(orders), REPARTITION(5)": (),
    }.items():
        graph = plan(f"SELECT /*+ {hint} */ status, id FROM orders WHERE total > 1")
        assert shuffles(graph) == [(keys, 5)], hint
        assert markers(graph) == [(1, 5, False)], hint
    (keys, count), *rest = shuffles(plan("SELECT /*+ REPARTITION(id) */ status, id FROM orders"))
    assert keys == (1,) and count >= 8 and not rest


def test_a_number_of_tasks_is_kept_for_little_data_and_a_bound_needs_no_exchange() -> None:
    assert shuffles(plan("SELECT /*+ REPARTITION(3) */ id FROM orders", SMALL)) == [((), 3)]
    for sql in ("SELECT /*+ COALESCE(3) */ id FROM orders", "SELECT /*+ REPARTITION(id) */ id FROM orders"):  # fmt: skip
        assert shuffles(plan(sql, SMALL)) == []
    graph = plan("SELECT /*+ COALESCE(3) */ id FROM orders")
    assert shuffles(graph) == [] and markers(graph) == [(0, 3, True)]
    both = plan("SELECT /*+ COALESCE(2), REPARTITION(3) */ id FROM orders")
    assert shuffles(both) == [((), 3)]
    assert markers(both) == [(1, 2, True), (1, 3, False)]
    # Tasks of a union work on one input each, so fewer than inputs need an exchange.
    union = "SELECT id FROM orders UNION ALL SELECT order_id FROM lines"
    assert shuffles(plan(f"SELECT /*+ COALESCE(1) */ * FROM ({union})")) == [((), 1)]


def test_filters_pass_a_hint_and_its_partitions_serve_a_join_and_groups() -> None:
    graph = plan(
        "SELECT o.id, sum(l.price) AS s FROM (SELECT /*+ REPARTITION(6, id) */ id, total FROM orders) o "
        "JOIN lines l ON o.id = l.order_id WHERE o.total > 5 GROUP BY o.id",
        PlannerOptions(broadcast_bytes=0, runtime_filters=False),
    )
    assert [count for _, count in shuffles(graph)] == [6, 6]
    assert "filter" in "".join(stage.title for stage in graph.stages[:-1])
    assert not any(isinstance(n, SortExec) for s in plan(
        "SELECT /*+ REPARTITION(2) */ * FROM (SELECT id FROM orders ORDER BY id)"
    ).stages for n in walk(s.fragment))  # fmt: skip


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT /*+ REBALANCE */ id FROM orders",
        "SELECT /*+ REBALANCE(3, id) */ id FROM orders",
        "SELECT /*+ REPARTITION */ id FROM orders",
        "SELECT /*+ REPARTITION(customer) */ id FROM orders",
        "SELECT /*+ MERGE(orders), SHUFFLE_HASH(orders) */ id FROM orders",
        "SELECT id FROM orders DISTRIBUTE BY id",
    ],
)
def test_what_sizes_decide_anyway_changes_no_plan(sql: str) -> None:
    assert plan(sql).plan_hash == plan("SELECT id FROM orders").plan_hash


def test_hints_in_subqueries_of_expressions_are_left_out() -> None:
    sql = "SELECT id FROM orders WHERE id IN (SELECT {}order_id FROM lines)"
    assert plan(sql.format("/*+ REPARTITION(3) */ ")).plan_hash == plan(sql.format("")).plan_hash


def test_unknown_hints_are_told_of_and_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "stagecoach.planner"):
        found = plan("SELECT /*+ FOO(1), COALESCE(4) */ id FROM orders")
    assert "unrecognized hint: FOO(1)" in caplog.text
    assert markers(found) == [(0, 4, True)]


@pytest.mark.parametrize(
    ("hint", "message"),
    [
        ("REPARTITION(0)", "asks for 0 tasks"),
        ("COALESCE(-1)", "asks for -1 tasks"),
        ("REPARTITION(5, 7)", "takes a number of tasks and columns, not 7"),
        ("REPARTITION(id + 1)", "takes a number of tasks and columns"),
        ("COALESCE", "takes one number"),
        ("COALESCE(3, id)", "takes one number"),
        ("REPARTITION(nowhere)", "'nowhere' not found"),
        ("REBALANCE(nowhere)", "'nowhere' not found"),
        ("REBALANCE(total)", "total, which is not selected"),
    ],
)
def test_what_spark_refuses_is_refused(hint: str, message: str) -> None:
    with pytest.raises(AnalysisError, match=message) as caught:
        plan(f"SELECT /*+ {hint} */ id FROM orders WHERE id > 1")
    assert caught.value.line == 1
