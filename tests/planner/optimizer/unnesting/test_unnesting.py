"""What subqueries become: no D where a plain join does, no reference to an outer query anywhere."""

from __future__ import annotations

import pytest

from stagecoach.planner.errors import UnsupportedSqlError
from stagecoach.planner.optimizer.rules import RULES, optimize
from stagecoach.planner.optimizer.unnesting.empty_groups import empty_value
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.expressions import contains
from stagecoach.planner.plan.logical import Aggregate, Join, LogicalPlan, Scan, Window
from stagecoach.planner.plan.physical import HashJoinExec, PhysicalPlan
from stagecoach.planner.plan.subqueries import SubqueryExpression
from stagecoach.planner.planning import plan_query, plan_until
from stagecoach.planner.tree import walk
from tests.differential.case_files import read_families
from tests.planner.catalogs import SALES
from tests.planner.optimizer.test_optimizer import built

FORCED = PlannerOptions(force_distribution=True, num_partitions=3, broadcast_bytes=0)

WITHOUT_D = [
    "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM lines l WHERE l.order_id = o.id)",
    "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM lines l WHERE l.order_id = o.id AND l.price > o.total)",
    "SELECT id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM lines l WHERE l.price > o.total)",
    "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM lines l JOIN products p ON l.product = p.id WHERE l.order_id = o.id AND p.weight > o.total)",
    "SELECT id FROM orders o WHERE EXISTS (SELECT l.line FROM lines l WHERE l.order_id = o.id GROUP BY l.line HAVING count(*) > 1)",
    "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM lines l WHERE l.order_id = o.id UNION ALL SELECT 1 FROM customers c WHERE c.id = o.customer)",
    "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM lines l LEFT JOIN products p ON p.id = l.product AND p.weight > o.total WHERE l.order_id = o.id AND p.id IS NULL AND l.price = o.total)",
    "SELECT id FROM orders o WHERE total > 5 OR EXISTS (SELECT 1 FROM lines l WHERE l.order_id = o.id)",
    "SELECT id, EXISTS (SELECT 1 FROM lines l WHERE l.order_id = o.id AND l.line = 1) AS e FROM orders o",
    "SELECT id FROM orders o WHERE total > 5 OR customer IN (SELECT c.id FROM customers c)",
    "SELECT id FROM orders o WHERE total > 5 OR customer NOT IN (SELECT l.product FROM lines l WHERE l.order_id = o.id)",
    "SELECT id FROM orders o WHERE customer NOT IN (SELECT l.product FROM lines l WHERE l.order_id = o.id)",
    "SELECT id FROM orders o WHERE customer IN (SELECT l.product + o.id FROM lines l)",
    "SELECT id FROM orders o WHERE (id, customer) NOT IN (SELECT l.order_id, l.product FROM lines l)",
    "SELECT id, (SELECT count(*) FROM lines l WHERE l.order_id = o.id) AS n FROM orders o",
    "SELECT id, (SELECT count(*) FROM lines l WHERE l.line = o.id) AS n FROM orders o",
    "SELECT id, (SELECT count(*) FROM lines l WHERE l.order_id <=> o.id) AS n FROM orders o",
    "SELECT id, (SELECT c.name FROM customers c WHERE c.id = o.customer) AS n FROM orders o",
    "SELECT id, (SELECT l.price FROM lines l WHERE l.order_id = o.id ORDER BY l.price LIMIT 1) AS n FROM orders o",
    "SELECT id, (SELECT max(u.c) FROM (SELECT count(*) AS c FROM lines l WHERE l.order_id = o.id GROUP BY l.line) u) AS n FROM orders o",
    "SELECT id, (SELECT o.total * 2) AS n FROM orders o",
    "SELECT status, count(*) AS c FROM orders o GROUP BY status HAVING EXISTS (SELECT 1 FROM lines l WHERE l.note = o.status)",
    "SELECT o.id, t.price FROM orders o, LATERAL (SELECT l.price FROM lines l WHERE l.order_id = o.id) t",
    "SELECT o.id, t.price FROM orders o LEFT JOIN LATERAL (SELECT l.price + o.total AS price FROM lines l WHERE l.order_id = o.id AND l.price > o.total) t",
    "SELECT o.id, t.n FROM orders o, LATERAL (SELECT count(*) AS n FROM lines l WHERE l.order_id = o.id) t",
    "SELECT o.id, t.price FROM orders o, LATERAL (SELECT l.price FROM lines l WHERE l.order_id = o.id ORDER BY l.price DESC LIMIT 3) t",
    "SELECT o.id, t.a FROM orders o, LATERAL (SELECT o.total + 1 AS a) t",
]  # fmt: skip
WITH_D = [
    "SELECT id, (SELECT count(*) FROM lines l WHERE l.order_id < o.id) AS n FROM orders o",
    "SELECT id, EXISTS (SELECT 1 FROM lines l WHERE l.price > o.total) AS n FROM orders o",
    "SELECT id, (SELECT max(c) FROM (SELECT count(*) AS c FROM lines l WHERE l.order_id = o.id) u) AS n FROM orders o",
]  # fmt: skip
REFUSED = {
    "SELECT id, (SELECT count(*) FROM lines l WHERE l.order_id < o.n) AS n FROM (SELECT max(id) AS n, count(*) AS id FROM (SELECT * FROM orders LIMIT 5) GROUP BY status) o": "a LIMIT chooses",
    "SELECT id, (SELECT count(*) FROM lines l WHERE l.price < o.n) AS n FROM (SELECT customer AS id, sum(CAST(total AS DOUBLE)) AS n FROM orders GROUP BY customer) o": "depend on sum()",
    "SELECT o.id, c.id FROM orders o LEFT JOIN customers c ON o.customer = c.id AND o.id + c.id IN (SELECT product FROM lines)": "reads both sides",
}  # fmt: skip


def optimized(sql: str) -> LogicalPlan:
    plan = plan_until(sql, SALES, "optimized")
    assert isinstance(plan, LogicalPlan)
    return plan


def scans(plan: LogicalPlan, table: str) -> int:
    return sum(isinstance(n, Scan) and n.table == table for n in walk(plan))


@pytest.mark.parametrize("sql", WITHOUT_D)
def test_plain_joins_do_where_they_can(sql: str) -> None:
    assert scans(optimized(sql), "orders") == 1


@pytest.mark.parametrize("sql", WITH_D)
def test_distinct_outer_values_are_joined_where_they_must_be(sql: str) -> None:
    assert scans(optimized(sql), "orders") == 2


@pytest.mark.parametrize("sql", list(REFUSED))
def test_what_cannot_be_computed_twice_is_refused(sql: str) -> None:
    with pytest.raises(UnsupportedSqlError, match=REFUSED[sql]):
        optimized(sql)
    assert plan_query(sql, SALES).fallback_reason


@pytest.mark.parametrize("sql", [*WITHOUT_D, *WITH_D])
def test_no_rule_leaves_a_reference_to_an_outer_query(sql: str) -> None:
    plan, context = built(sql)
    wanted = [(c.name, c.dtype) for c in plan.columns]
    after = [rule.__name__ for rule in RULES].index("unnest_subqueries") + 1
    plan = optimize(plan, context, RULES[:after])
    for rule in RULES[after:]:
        assert not plan.free_ids, rule.__name__
        for node in walk(plan):
            assert not any(contains(e, SubqueryExpression) for e in node.expressions)
            assert not (isinstance(node, Join) and node.right.free_ids & node.left.column_ids)
        plan = rule(plan, context)
        assert [(c.name, c.dtype) for c in plan.columns] == wanted, rule.__name__


def test_a_chain_of_subqueries_grows_linearly() -> None:
    """D is made of the table, not of the joins that earlier subqueries have added."""
    item = "(SELECT count(*) FROM lines l WHERE l.order_id < o.id + {0}) AS n{0}"
    sql = f"SELECT {', '.join(item.format(i) for i in range(8))} FROM orders o"
    assert scans(optimized(sql), "orders") == 9


def test_limits_of_a_correlated_subquery_are_windows() -> None:
    plan = optimized(WITHOUT_D[18])
    (window,) = (n for n in walk(plan) if isinstance(n, Window))
    assert window.calls[0][1].function == "row_number"
    assert [k.expr.dtype.kind for k in window.calls[0][1].order] == ["double"]


def test_null_safe_equality_is_a_hash_key() -> None:
    sql = "SELECT o.id FROM orders o FULL JOIN lines l ON o.id <=> l.order_id AND o.customer = l.product"
    plan = plan_until(sql, SALES, "physical", FORCED)
    assert isinstance(plan, PhysicalPlan)
    (join,) = (n for n in walk(plan) if isinstance(n, HashJoinExec))
    assert join.null_safe == (True, False)
    assert [safe for _, _, safe in join.key_pairs] == [True, False]


def test_aggregates_over_no_rows_have_their_empty_value() -> None:
    sql = "SELECT count(*), count(DISTINCT id), sum(id), max(id) FROM orders"
    (aggregate,) = (n for n in walk(built(sql)[0]) if isinstance(n, Aggregate))
    empty = [empty_value(call) for _, call in aggregate.aggregates]
    assert [e is not None for e in empty] == [True, True, False, False]


def test_the_files_of_queries_are_read() -> None:
    for name, count in (("subqueries.sql", 120), ("joins.sql", 60)):
        assert sum(map(len, read_families(name).values())) >= count
