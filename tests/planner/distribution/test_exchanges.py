"""No plan has an exchange or a sort that could be left out.

What an operator delivers is worked out here anew, from the physical plan alone, so that a fault of
`distribute` is not repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pytest

from stagecoach.planner.errors import StagecoachError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.expressions import ColumnRef
from stagecoach.planner.plan.logical import NamedExpression
from stagecoach.planner.plan.physical import (
    AggregateExec,
    ExchangeExec,
    FilterExec,
    HashJoinExec,
    LimitExec,
    OneRowExec,
    PhysicalPlan,
    ProjectionExec,
    ScanExec,
    SortExec,
    SortPreservingMergeExec,
    UnionExec,
)
from stagecoach.planner.planning import plan_query, plan_until
from stagecoach.planner.tree import walk
from tests.planner.catalogs import SALES
from tests.planner.optimizer.test_rules_keep_rows import QUERIES
from tests.planner.tpch import DEFAULT, FORCED, NAMES, query_text, sf10_catalog

Keys = tuple[frozenset[int], ...]
"""The columns that rows are hashed by; of each all that are equal to it."""


@dataclass(frozen=True)
class Spread:
    """How rows lie: all in one task, by key hash in so many partitions, or anyhow."""

    single: bool = False
    keys: Keys = ()
    count: int = 0


def spread(plan: PhysicalPlan) -> Spread:
    match plan:
        case ExchangeExec():
            if plan.kind == "shuffle" and plan.keys:
                return Spread(
                    keys=tuple(frozenset({k}) for k in plan.keys), count=plan.num_partitions
                )
            return Spread(single=plan.kind != "shuffle")
        case OneRowExec():
            return Spread(single=True)
        case ScanExec():
            return Spread(single=plan.read == "all")
        case UnionExec():
            return Spread(single=all(spread(i).single for i in plan.inputs))
        case ProjectionExec():
            return _renamed(spread(plan.child), plan.items)
        case AggregateExec():
            return _renamed(spread(plan.child), plan.groups)
        case HashJoinExec():
            return _joined(plan)
    return spread(plan.children[0]) if len(plan.children) == 1 else Spread()


def _renamed(below: Spread, items: Iterable[NamedExpression]) -> Spread:
    names: dict[int, set[int]] = {}
    for column, expr in items:
        if isinstance(expr, ColumnRef):
            names.setdefault(expr.id, set()).add(column.id)
    keys = tuple(frozenset().union(*(names.get(i, set()) for i in key)) for key in below.keys)
    return Spread(below.single, keys, below.count) if all(keys) else Spread(below.single)


def _joined(plan: HashJoinExec) -> Spread:
    left = spread(plan.left)
    if plan.kind == "full" and not left.single:
        return Spread()
    if plan.kind != "inner":
        return left
    equal = [
        (a.id, b.id)
        for a, b in zip(plan.left_keys, plan.right_keys, strict=True)
        if isinstance(a, ColumnRef) and isinstance(b, ColumnRef)
    ]
    keys = tuple(key | {b for a, b in equal if a in key} for key in left.keys)
    return Spread(left.single, keys, left.count)


def superfluous(plan: PhysicalPlan) -> Iterator[str]:
    """Each exchange and sort that does nothing, in words."""
    for node in walk(plan):
        if isinstance(node, ExchangeExec) and node.kind == "gather" and spread(node.child).single:
            yield "a gather of one task's rows"
        if isinstance(node, AggregateExec) and isinstance(node.child, ExchangeExec):
            yield from _of_aggregate(node, node.child)
        if isinstance(node, HashJoinExec):
            yield from _of_join(node)
        if isinstance(node, SortExec | SortPreservingMergeExec):
            below = node.child
            while isinstance(below, FilterExec | LimitExec):
                below = below.child
            if isinstance(below, SortExec | SortPreservingMergeExec) and below.keys == node.keys:
                yield "a sort of sorted rows"


def _of_aggregate(node: AggregateExec, exchange: ExchangeExec) -> Iterator[str]:
    """What a final aggregate's own exchange brings together may be together already."""
    below: PhysicalPlan = exchange.child
    names = {e.id for _, e in node.groups if isinstance(e, ColumnRef)}
    if isinstance(below, AggregateExec) and below.mode == "partial":
        names = {e.id for c, e in below.groups if c.id in names and isinstance(e, ColumnRef)}
        below = below.child
    found = spread(below)
    if exchange.kind == "shuffle" and found.keys and all(key & names for key in found.keys):
        yield f"the shuffle of an aggregate by {sorted(names)}"
    if exchange.kind == "shuffle" and found.single:
        yield "the shuffle of an aggregate in one task"


def _of_join(node: HashJoinExec) -> Iterator[str]:
    sides = ((node.left, node.left_keys), (node.right, node.right_keys))
    moved = [
        (side.child, {k.id for k in keys if isinstance(k, ColumnRef)})
        for side, keys in sides
        if isinstance(side, ExchangeExec) and side.kind == "shuffle"
    ]
    if not node.broadcast and len(moved) == 2:
        for below, keys in moved:
            found = spread(below)
            if found.keys and all(key & keys for key in found.keys):
                yield f"the shuffle of a join side by {sorted(keys)}"
    right = node.right
    broadcast = isinstance(right, ExchangeExec) and right.kind == "broadcast"
    if broadcast and spread(node.left).single and spread(right.children[0]).single:
        yield "the broadcast from one task to the same one"


@pytest.mark.parametrize("name", NAMES)
def test_no_exchange_of_tpch_could_be_left_out(name: str) -> None:
    for options in (DEFAULT, FORCED):
        plan = plan_until(query_text(name), sf10_catalog(), "physical", options)
        assert isinstance(plan, PhysicalPlan)
        assert not list(superfluous(plan))


def test_no_exchange_of_other_queries_could_be_left_out() -> None:
    small = PlannerOptions(force_distribution=True, broadcast_bytes=1 << 16, num_partitions=4)
    for sql in QUERIES:
        for options in (FORCED, small):
            try:
                plan = plan_until(sql, SALES, "physical", options)
            except StagecoachError:
                continue  # one Spark stage has no exchange at all
            assert isinstance(plan, PhysicalPlan)
            assert not list(superfluous(plan)), sql


def test_the_check_finds_what_is_superfluous() -> None:
    sql = "SELECT customer, count(*) AS n FROM orders GROUP BY customer"
    plan = plan_until(sql, SALES, "physical", FORCED)
    assert isinstance(plan, PhysicalPlan)
    final = next(n for n in walk(plan) if isinstance(n, AggregateExec) and n.mode == "final")
    exchange = final.child
    assert isinstance(exchange, ExchangeExec)
    again = ExchangeExec(exchange, "shuffle", exchange.keys, exchange.num_partitions)
    assert list(superfluous(final.with_children((again,))))
    assert list(superfluous(ExchangeExec(ExchangeExec(plan, "gather"), "gather")))


def test_no_tpch_plan_multiplies_relations() -> None:
    """Every join of a TPC-H plan has a key, but those with a row of one aggregate."""
    for name in NAMES:
        plan = plan_until(query_text(name), sf10_catalog(), "physical", DEFAULT)
        assert isinstance(plan, PhysicalPlan)
        for node in walk(plan):
            if isinstance(node, HashJoinExec) and not node.left_keys:
                below = next(n for n in walk(node.right) if isinstance(n, AggregateExec))
                assert not below.groups, name


# ---------------------------------------------------------------- one exchange for several uses


def scans_of(sql: str, table: str, options: PlannerOptions = FORCED) -> int:
    """How many stages read a table."""
    return sum(table in stage.tables for stage in plan_query(sql, SALES, options).stages)


def shuffle_keys(sql: str) -> list[list[str]]:
    stages = plan_query(sql, SALES, FORCED).stages
    outputs = [(s, s.output) for s in stages if s.output.kind == "shuffle"]
    return [[s.schema[k].name for k in output.keys] for s, output in outputs]


def test_uses_of_a_cte_that_read_different_columns_share_its_exchange() -> None:
    cte = "WITH t AS (SELECT customer, sum(total) AS spent, max(day) AS last FROM orders WHERE status = 'open' GROUP BY customer) "
    sql = cte + "SELECT a.spent, b.last FROM t AS a JOIN t AS b ON a.customer = b.customer"
    assert scans_of(sql, "orders") == 1


def test_uses_of_a_cte_under_different_filters_do_not() -> None:
    cte = "WITH t AS (SELECT customer, sum(total) AS spent FROM orders GROUP BY customer) "
    sql = (
        cte
        + "SELECT a.spent FROM t AS a JOIN t AS b ON a.customer = b.customer WHERE a.spent > 5 AND b.spent < 3"
    )
    assert scans_of(sql, "orders") == 1
    other = (
        cte
        + "SELECT customer FROM t WHERE customer < 9 UNION ALL SELECT customer FROM t WHERE customer > 90"
    )
    assert scans_of(other, "orders") == 2


def test_exchanges_by_different_keys_are_not_shared() -> None:
    sql = "SELECT a.id, b.total FROM orders AS a JOIN orders AS b ON a.customer = b.id"
    assert scans_of(sql, "orders") == 2


def test_one_exchange_serves_an_aggregate_of_an_aggregate() -> None:
    sql = "SELECT customer, count(*) FROM (SELECT customer, day, count(*) AS n FROM orders GROUP BY customer, day) GROUP BY customer"
    assert shuffle_keys(sql) == [["customer"]]


def test_one_exchange_serves_a_join_and_the_groups_above_it() -> None:
    sql = """
        SELECT l.order_id, count(*) FROM lines AS l
        JOIN (SELECT order_id, product, min(price) AS m FROM lines GROUP BY order_id, product) AS x
        ON l.order_id = x.order_id AND l.product = x.product GROUP BY l.order_id
    """
    assert shuffle_keys(sql) == [["order_id"], ["order_id"]]


def test_few_values_are_no_reason_to_hash_by_fewer_keys() -> None:
    sql = "SELECT line, count(*) FROM (SELECT line, product, count(*) AS n FROM lines GROUP BY line, product) GROUP BY line"
    assert shuffle_keys(sql)[0] == ["line", "product"]


def test_a_key_list_reaches_the_anti_join_of_query_21() -> None:
    graph = plan_query(query_text("q21"), sf10_catalog(), DEFAULT)
    lists = [s for s in graph.stages if s.output.kind == "broadcast" and len(s.schema) == 1]
    (keys,) = [s for s in lists if len(graph.consumers(s.stage_id)) == 2]
    assert keys.schema[0].name == "l_orderkey"
