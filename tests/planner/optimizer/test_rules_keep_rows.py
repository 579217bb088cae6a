"""Every rule keeps the rows: the plan after each rule runs on one node and gives the same.

The SQL of all rule fixtures, and some more, runs over small tables full of NULLs and duplicates;
DuckDB's own answer to the same SQL is the reference.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from benchmarks.join_orders import ordered
from stagecoach.planner.analysis.queries import build_logical
from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.distribution import distribute
from stagecoach.planner.estimates import Estimator
from stagecoach.planner.lowering.lower import Lowering
from stagecoach.planner.optimizer import join_order
from stagecoach.planner.optimizer.context import RuleContext, first_free_id
from stagecoach.planner.optimizer.rules import RULES, optimize
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.logical import LogicalPlan
from stagecoach.planner.plan.physical import PhysicalPlan, RepartitionExec, ScanExec
from stagecoach.planner.render.fragment import render_fragment
from stagecoach.planner.staging.cut import cut_into_stages
from stagecoach.planner.syntax.parse import parse_query
from stagecoach.planner.tree import transform_up
from tests.duckdb_functions import declared
from tests.planner.catalogs import SALES
from tests.planner.optimizer.test_optimizer import all_cases

TABLES = """
    CREATE TABLE orders AS SELECT
        CASE WHEN i % 11 = 0 THEN NULL ELSE i % 40 END AS id,
        CASE WHEN i % 5 = 0 THEN NULL ELSE i % 9 END AS customer,
        CAST(CASE WHEN i % 7 = 0 THEN NULL ELSE i % 13 - 1.5 END AS DECIMAL(12,2)) AS total,
        CASE i % 4 WHEN 0 THEN NULL WHEN 1 THEN 'a' WHEN 2 THEN 'open' ELSE 'done' END AS status,
        CASE WHEN i % 6 = 0 THEN NULL ELSE DATE '1994-01-20' + CAST(i AS INTEGER) END AS day
    FROM range(50) t(i);
    CREATE TABLE lines AS SELECT
        CASE WHEN i % 13 = 0 THEN NULL ELSE i % 45 END AS order_id,
        CAST(i % 3 AS INTEGER) AS line, i % 4 AS product,
        CASE WHEN i % 9 = 0 THEN NULL ELSE (i % 30) / 2 END AS price, 'n' || i % 3 AS note
    FROM range(90) t(i);
    CREATE TABLE customers AS SELECT
        CASE WHEN i = 3 THEN NULL ELSE i END AS id, 'c' || i AS name, 'x' AS city,
        CAST(CASE WHEN i % 4 = 0 THEN NULL ELSE i % 6 END AS INTEGER) AS rating
    FROM range(12) t(i);
    CREATE TABLE products AS SELECT i AS id, 'p' || i AS label, i / 3 AS weight FROM range(4) t(i);
"""
MORE = [
    "SELECT o.id, c.id, l.line FROM orders o LEFT JOIN customers c ON o.customer = c.id AND c.rating > 2 LEFT JOIN lines l ON l.order_id = o.id AND l.price > 3 WHERE o.total > 1",
    "SELECT o.id, c.name FROM orders o RIGHT JOIN customers c ON o.customer = c.id AND o.total > 2 WHERE c.rating = 1 OR c.rating IS NULL",
    "SELECT o.id, c.name FROM orders o FULL JOIN customers c ON o.customer = c.id AND o.total > 2 WHERE coalesce(c.rating, 1) = 1",
    "SELECT o.id FROM orders o FULL JOIN customers c ON o.customer = c.id WHERE o.total > 1 AND c.rating IS NOT NULL",
    "SELECT id FROM orders WHERE customer NOT IN (SELECT id FROM customers WHERE id IS NOT NULL AND rating > 2)",
    "SELECT id FROM orders WHERE customer NOT IN (SELECT id FROM customers)",
    "SELECT id FROM orders WHERE customer NOT IN (SELECT id FROM customers WHERE rating > 100)",
    "SELECT id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM lines l WHERE l.order_id = o.id AND l.line > 0)",
    "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM customers) AND total > 2",
    "SELECT c.id, (SELECT count(*) FROM orders o WHERE o.customer = c.id AND o.total > 3) AS n, (SELECT sum(total) FROM orders o WHERE o.customer = c.id) AS s FROM customers c",
    "SELECT c.id FROM customers c WHERE (SELECT count(*) FROM orders o WHERE o.customer = c.id) = 0",
    "SELECT c.id FROM customers c WHERE c.rating > (SELECT min(line) FROM lines) ",
    "SELECT customer, status, count(*), count(total), sum(total), min(day), max(price) FROM orders o LEFT JOIN lines l ON o.id = l.order_id WHERE status <> 'a' GROUP BY customer, status HAVING count(*) > 1 AND customer > 2",
    "SELECT count(*), sum(total) FROM orders WHERE 1 = 0",
    "SELECT n FROM (SELECT count(*) AS n FROM orders WHERE total > 100) WHERE n > 0",
    "SELECT DISTINCT status FROM (SELECT status, id FROM orders UNION ALL SELECT name, id FROM customers) WHERE id > 3",
    "SELECT id FROM orders UNION SELECT id FROM customers",
    "SELECT x.id, x.n FROM (SELECT id, count(*) AS n FROM orders GROUP BY id) x JOIN (SELECT customer, max(total) AS m FROM orders GROUP BY customer) y ON x.id = y.customer WHERE y.m > 2",
    "SELECT o.id FROM orders o, customers c, lines l, products p WHERE o.customer = c.id AND l.order_id = o.id AND l.product = p.id AND (c.rating = 1 OR p.weight > 0.5)",
    "SELECT o.id, c.id FROM orders o, customers c WHERE o.total > c.rating AND c.rating > 3",
    "SELECT id FROM orders WHERE NOT (total > 3 AND status = 'open')",
    "SELECT CASE WHEN total > 3 THEN status END AS s, id FROM orders WHERE status IN ('a', 'open') OR status IS NULL",
    "SELECT a.id FROM orders a JOIN orders b ON a.id = b.customer WHERE a.customer IN (SELECT id FROM customers WHERE rating IN (SELECT line FROM lines))",
    "SELECT count(DISTINCT customer), count(DISTINCT status) FROM orders",
    "SELECT status, count(DISTINCT customer) AS n FROM orders GROUP BY status",
    "SELECT o.id, c.n FROM orders o LEFT JOIN (SELECT id, 1 AS n FROM customers WHERE rating > 1) c ON o.customer = c.id WHERE c.n = 1",
    "SELECT o.id, c.n FROM orders o LEFT JOIN (SELECT id, 1 AS n FROM customers WHERE rating > 1) c ON o.customer = c.id WHERE c.n IS NULL",
    "SELECT c.id, count(o.id) AS n FROM customers c LEFT JOIN orders o ON c.id = o.customer AND o.status NOT LIKE '%pen' GROUP BY c.id",
    "SELECT n, count(*) FROM (SELECT c.id, count(o.id) AS n FROM customers c LEFT JOIN orders o ON c.id = o.customer GROUP BY c.id) GROUP BY n",
    "SELECT a.id FROM customers a LEFT JOIN customers b ON a.id = b.id WHERE b.rating = 1 OR a.rating = 1",
    "SELECT a.id, b.id FROM customers a FULL JOIN (SELECT * FROM customers WHERE rating > 2) b ON a.id = b.rating",
    "SELECT c.id FROM customers c WHERE EXISTS (SELECT 1 FROM orders o LEFT JOIN lines l ON o.id = l.order_id WHERE o.customer = c.id AND l.price IS NULL)",
    "SELECT c.id FROM customers c WHERE c.id IN (SELECT o.customer FROM orders o WHERE o.total > c.rating)",
    "SELECT c.id FROM customers c WHERE c.rating = (SELECT max(x.rating) FROM customers x WHERE x.city = c.city)",
    "SELECT c.id, (SELECT avg(total) FROM orders o WHERE o.customer = c.id AND o.total > 0) + 1 AS m FROM customers c WHERE c.rating IS NOT NULL",
    "SELECT c.id FROM customers c WHERE (SELECT sum(total) FROM orders o WHERE o.customer = c.id) IS NULL",
    "SELECT c.id FROM customers c WHERE coalesce((SELECT sum(total) FROM orders o WHERE o.customer = c.id), 0) < 5",
    "SELECT c.id FROM customers c WHERE (SELECT count(*) + 1 FROM orders o WHERE o.customer = c.id) = 1",
    "SELECT c.id FROM customers c WHERE (SELECT count(*) FILTER (WHERE total > 3) FROM orders o WHERE o.customer = c.id) < 2",
    "SELECT id, total FROM orders o WHERE total = (SELECT max(total) FROM orders p WHERE p.customer = o.customer) AND EXISTS (SELECT 1 FROM lines WHERE order_id = o.id)",
    "SELECT customer FROM orders GROUP BY customer HAVING sum(total) > (SELECT avg(total) FROM orders)",
    "SELECT o.customer + 1 AS k, count(*) FROM orders o GROUP BY o.customer + 1 HAVING o.customer + 1 > 3",
    "SELECT id FROM (SELECT id, total FROM orders ORDER BY total, id LIMIT 7) WHERE total > 0",
    "SELECT id FROM (SELECT id FROM customers UNION ALL SELECT customer FROM orders UNION ALL SELECT order_id FROM lines) WHERE id = 4 OR id IS NULL",
    "SELECT x.k, y.k FROM (SELECT id AS k FROM customers UNION ALL SELECT id FROM products) x JOIN (SELECT DISTINCT customer AS k FROM orders) y ON x.k = y.k AND x.k + y.k > 3",
    "SELECT o.id FROM orders o WHERE o.customer IN (1, 2, NULL) OR NOT (o.total > 2)",
    "SELECT o.id FROM orders o JOIN customers c ON o.customer = c.id JOIN customers d ON o.customer = d.id AND c.rating = d.rating WHERE c.id = d.id",
    "SELECT 1 AS one FROM orders WHERE total > 3",
    "SELECT count(*) FROM orders, customers",
    "SELECT count(*) FROM (SELECT DISTINCT status, customer FROM orders)",
    "SELECT max(n) FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer)",
    "SELECT o.id FROM orders o LEFT JOIN customers c ON o.customer = c.id AND false",
    "SELECT o.id, c.id FROM orders o LEFT JOIN customers c ON o.total > 3",
    "SELECT o.id, c.id FROM orders o FULL JOIN customers c ON o.customer = c.id AND c.rating = 1 AND o.total > 2",
    "SELECT a.n, b.n FROM (SELECT count(*) AS n FROM orders) a, (SELECT count(*) AS n FROM lines WHERE price > 3) b WHERE a.n > b.n OR a.n < b.n",
    "SELECT o.id, c.id FROM orders o FULL JOIN customers c ON o.customer = c.id WHERE coalesce(o.total, 5) > 9",
    "SELECT o.id, c.id FROM orders o FULL JOIN customers c ON o.customer = c.id WHERE coalesce(c.rating, 5) > 3",
    "SELECT o.customer, count(*) FROM orders o FULL JOIN customers c ON o.customer = c.id AND o.total > 2 GROUP BY o.customer",
    "SELECT c.id, count(*) FROM orders o RIGHT JOIN customers c ON o.customer = c.id GROUP BY c.id",
    "SELECT id FROM customers UNION ALL SELECT id FROM products LIMIT 6 OFFSET 9",
    "SELECT id FROM orders LIMIT 5 OFFSET 18",
    "SELECT o.id, c.id, d.id, e.id FROM orders o, customers c, customers d, customers e WHERE o.customer = c.id AND c.id = d.id AND d.id = e.id AND e.rating > 1",
    "SELECT o.id, c.id FROM orders o JOIN customers c ON o.customer = c.id AND o.id = c.id JOIN customers d ON d.id = c.id",
    "SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON o.customer = c.id AND c.id = 3 WHERE o.customer > 1",
    "SELECT o.id, c.name FROM orders o FULL JOIN customers c ON o.customer = c.id WHERE o.customer = 3",
    "SELECT o.id, c.name FROM orders o RIGHT JOIN customers c ON o.customer = c.id WHERE c.id IN (3, 4)",
    "SELECT o.id FROM orders o WHERE o.customer > 3 AND NOT EXISTS (SELECT 1 FROM customers c WHERE c.id = o.customer AND c.id > 5)",
    "SELECT p.label, d.n FROM products p JOIN (SELECT product, count(*) AS n, max(price) AS m FROM lines GROUP BY product) d ON d.product = p.id WHERE p.label <> 'p1'",
    "SELECT p.label, d.n FROM products p LEFT JOIN (SELECT product, line, count(*) AS n FROM lines GROUP BY product, line HAVING count(*) > 1) d ON d.product = p.id AND d.line = p.id WHERE p.label <> 'p1'",
    "SELECT c.id, d.s FROM customers c JOIN (SELECT customer, status, sum(total) AS s FROM orders GROUP BY customer, status) d ON d.customer = c.id AND d.status = c.name WHERE c.rating = 1",
    "SELECT c.id FROM customers c WHERE c.rating > 1 AND c.id NOT IN (SELECT customer FROM orders WHERE customer IS NOT NULL GROUP BY customer HAVING count(*) > 2)",
    "SELECT o.id FROM orders o LEFT JOIN (SELECT order_id, count(*) AS n FROM lines GROUP BY order_id) x ON x.order_id = o.id AND x.n > 1 WHERE o.total > 0",
    "SELECT DISTINCT o.status FROM orders o LEFT JOIN lines l ON l.order_id = o.id JOIN customers c ON c.id = o.customer",
    "SELECT o.status, max(o.total), min(o.id) FROM orders o LEFT JOIN lines l ON l.order_id = o.id GROUP BY o.status",
    "SELECT o.status, count(DISTINCT o.total) FROM orders o LEFT JOIN lines l ON l.order_id = o.id GROUP BY o.status",
    "SELECT x.status, y.n FROM (SELECT DISTINCT status FROM orders WHERE 1 = 0) x FULL JOIN (SELECT status, count(*) AS n FROM orders GROUP BY status) y ON x.status = y.status",
    "SELECT count(*), max(o.id) FROM orders o, (SELECT id FROM customers WHERE id > 5 AND id < 3) c WHERE o.customer = c.id",
    "SELECT id FROM customers WHERE id NOT IN (SELECT customer FROM orders WHERE customer > 5 AND customer < 2)",
    "WITH t AS (SELECT customer, sum(total) AS s, max(day) AS d, min(status) AS m FROM orders WHERE id > 3 GROUP BY customer) SELECT a.s, b.d FROM t a JOIN t b ON a.customer = b.customer WHERE a.m <> 'x'",
    "SELECT a.status, b.id, b.total FROM orders a JOIN orders b ON a.customer = b.customer AND a.day < b.day",
    "SELECT customer, count(*), sum(n) FROM (SELECT customer, day, count(*) AS n FROM orders GROUP BY customer, day) GROUP BY customer",
    "SELECT l.order_id, count(*), max(x.m) FROM lines l JOIN (SELECT order_id, product, min(price) AS m FROM lines GROUP BY order_id, product) x ON l.order_id = x.order_id AND l.product = x.product GROUP BY l.order_id",
    "SELECT l.order_id, count(x.m) FROM lines l LEFT JOIN (SELECT order_id, product, min(price) AS m FROM lines WHERE price > 4 GROUP BY order_id, product) x ON l.product = x.product AND l.order_id = x.order_id GROUP BY l.order_id",
    "SELECT o.customer, count(*) FROM orders o WHERE EXISTS (SELECT 1 FROM lines l WHERE l.order_id = o.id AND l.product <> o.customer) AND NOT EXISTS (SELECT 1 FROM lines l WHERE l.order_id = o.id AND l.price > 10) AND o.total > 2 GROUP BY o.customer",
    "SELECT o.status, sum(l.price) AS s, count(*) AS n, count(l.line), avg(l.line) FROM lines l JOIN orders o ON l.product = o.customer GROUP BY o.status",
    "SELECT count(*), sum(l.line), avg(l.line), max(l.note) FROM lines l JOIN orders o ON l.product = o.customer AND o.total > 100",
    "SELECT o.status, count(*), count(l.line), count(l.price), sum(l.line), avg(l.line), min(l.note) FROM orders o LEFT JOIN lines l ON l.product = o.customer AND l.price > 9 GROUP BY o.status",
    "SELECT count(*), count(l.line), sum(l.line) FROM lines l RIGHT JOIN orders o ON l.product = o.customer AND l.line = 7",
    "SELECT o.status, c.city, count(*), sum(l.line) FROM orders o LEFT JOIN lines l ON l.product = o.customer LEFT JOIN customers c ON c.rating = l.line GROUP BY o.status, c.city",
    "SELECT l.product, l.line, count(*), avg(l.price) FROM lines l SEMI JOIN lines m ON l.product = m.product AND l.line < m.line GROUP BY l.product, l.line",
    "SELECT l.product, count(*), max(l.line) FROM lines l ANTI JOIN lines m ON l.product = m.product AND l.line < m.line GROUP BY l.product",
    "SELECT count(*) FILTER (WHERE l.price > 5), sum(l.line) FILTER (WHERE l.price > 7) FROM lines l JOIN orders o ON l.product = o.customer",
    "SELECT l.line > 1 AS late, o.status, count(*) FROM lines l JOIN orders o ON l.product = o.customer AND l.line < o.id GROUP BY l.line > 1, o.status",
    "SELECT o.status, l.line + o.customer AS k, count(*) FROM lines l JOIN orders o ON l.product = o.customer GROUP BY o.status, l.line + o.customer",
    "SELECT /*+ REPARTITION(4, customer), COALESCE(2) */ customer, count(*) AS n FROM orders WHERE id > 2 GROUP BY customer",
    "SELECT o.id, l.n FROM (SELECT /*+ REPARTITION(5, id) */ id, total FROM orders) o JOIN (SELECT /*+ REPARTITION(3) */ order_id, count(*) AS n FROM lines GROUP BY order_id) l ON o.id = l.order_id WHERE o.total > 2",
    "SELECT /*+ COALESCE(1) */ id FROM (SELECT id FROM orders UNION ALL SELECT /*+ REPARTITION(2) */ order_id FROM lines) WHERE id IN (SELECT /*+ REPARTITION(2) */ id FROM customers)",
]  # fmt: skip
ERRORS = ("9999-12-31", "9223372036854775807")
FIXTURES = [
    c.sql for c in all_cases() if not any(e in c.sql for e in ERRORS) and "<=>" not in c.sql
]
ONE_TASK = PlannerOptions(single_task_bytes=1 << 60)
SCALAR_ERROR = "SELECT name FROM customers WHERE rating = 5) AS name"
QUERIES = [q for q in dict.fromkeys([*FIXTURES, *MORE]) if SCALAR_ERROR not in q]


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        connection.execute(TABLES)
        yield connection


def rows(database: duckdb.DuckDBPyConnection, sql: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(_plain(v) for v in row) for row in database.execute(sql).fetchall())


def _plain(value: Any) -> Any:
    """Spark's decimals and DuckDB's doubles of the same average are the same number here."""
    return round(float(value), 4) if isinstance(value, float | Decimal | int) else value


def _without_hints(plan: PhysicalPlan) -> PhysicalPlan:
    """The plan without requests for a number of tasks: here is one."""
    return transform_up(plan, lambda p: p.child if isinstance(p, RepartitionExec) else p)


def run(
    database: duckdb.DuckDBPyConnection, plan: LogicalPlan, context: RuleContext
) -> Counter[tuple[Any, ...]]:
    lowering = Lowering(context)
    physical = distribute(_without_hints(lowering.lower(plan)), lowering.sizes, context)
    (stage,) = cut_into_stages(physical, {}, ONE_TASK, lowering.sizes.size)
    for position, leaf in enumerate(stage.leaves):
        assert isinstance(leaf, ScanExec)
        pairs = zip(leaf.source, leaf.outputs, strict=True)
        columns = ", ".join(f"{name} AS c{column.id}" for name, column in pairs)
        view = f"CREATE OR REPLACE TEMP VIEW in_{position} AS SELECT {columns} FROM {leaf.table}"
        database.execute(view)
    return rows(database, declared(database, render_fragment(stage, "duckdb", {})))


def expected(database: duckdb.DuckDBPyConnection, sql: str) -> Counter[tuple[Any, ...]]:
    """What DuckDB says of the query itself."""
    return rows(database, sql)


# Which row is the first of a group is open where a join makes the rows.
@pytest.mark.parametrize("sql", [sql for sql in QUERIES if "first(l.line)" not in sql])
def test_rows_are_the_same_after_every_rule(database: duckdb.DuckDBPyConnection, sql: str) -> None:
    catalog: MappingCatalog = SALES
    built = build_logical(parse_query(sql), catalog, {})
    estimator = Estimator({t.name: t for t in built.tables})
    context = RuleContext(ONE_TASK, estimator, first_free_id(built.plan))
    wanted = expected(database, sql)
    plan = built.plan
    for rule in RULES:
        plan = rule(plan, context)
        if rule.__name__ == "fold_constants":
            continue  # subqueries have no physical form before they are joins
        got = run(database, plan, context)
        if "LIMIT" in sql and "ORDER BY" not in sql:
            assert got.total() == wanted.total(), rule.__name__
        else:
            assert got == wanted, rule.__name__


RESTRICTED = [
    "SELECT o.id, l.line FROM orders o JOIN lines l ON l.order_id = o.id JOIN customers c ON o.customer = c.id WHERE o.id IN (SELECT order_id FROM lines WHERE price > 3)",
    "SELECT o.id, l.line FROM orders o JOIN lines l ON l.order_id = o.id WHERE NOT EXISTS (SELECT 1 FROM customers c WHERE c.id = l.order_id AND c.rating > 2) AND o.customer NOT IN (SELECT id FROM products)",
    "SELECT o.id, c.id FROM orders o JOIN customers c ON o.customer = c.id JOIN lines l ON l.product = c.id WHERE EXISTS (SELECT 1 FROM lines m WHERE m.order_id = o.id AND m.product <> c.id) AND NOT EXISTS (SELECT 1 FROM lines m WHERE m.product = l.product AND m.line > l.line)",
    "SELECT o.id, d.id FROM orders o, customers c, customers d WHERE o.customer = c.id AND c.id = d.id AND d.id IN (SELECT product FROM lines) AND o.customer IN (SELECT rating FROM customers)",
    "SELECT a.id, b.id FROM orders a, orders b WHERE a.id = b.id AND EXISTS (SELECT 1 FROM lines l WHERE l.order_id = a.id AND l.order_id = b.id AND l.line = a.customer) AND NOT EXISTS (SELECT 1 FROM customers c WHERE c.id = a.customer AND c.rating = b.customer)",
    "SELECT o.id, l.line FROM orders o JOIN lines l ON l.order_id = o.id WHERE o.customer NOT IN (SELECT rating FROM customers) AND EXISTS (SELECT 1 FROM products)",
    "SELECT o.id, p.id FROM orders o CROSS JOIN products p WHERE EXISTS (SELECT 1 FROM lines l WHERE l.order_id = o.id AND l.product = p.id) AND o.id + p.id IN (SELECT id FROM customers)",
    "SELECT a.id, b.id FROM orders a, orders b, products p WHERE a.id = p.id AND EXISTS (SELECT 1 FROM lines l WHERE l.order_id = a.id AND l.line = b.customer)",
    "SELECT o.id, l.line FROM orders o SEMI JOIN customers c ON o.customer = c.id JOIN lines l ON l.order_id = o.id ANTI JOIN products p ON l.product = p.id AND o.total > p.weight",
]  # fmt: skip


@pytest.mark.parametrize(
    ("most_pairs", "seed"),
    [(join_order.MAX_PAIRS, None), (0, None), *((0, seed) for seed in range(12))],
)
@pytest.mark.parametrize("sql", RESTRICTED)
def test_rows_are_the_same_in_every_join_order(
    database: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
    sql: str,
    most_pairs: int,
    seed: int | None,
) -> None:
    """Whatever the costs are, a semi or anti join means the same before and after other joins."""
    monkeypatch.setattr(join_order, "MAX_PAIRS", most_pairs)
    with ordered(None if seed is None else random.Random(seed)) as chosen:
        built = build_logical(parse_query(sql), SALES, {})
        estimator = Estimator({t.name: t for t in built.tables})
        context = RuleContext(ONE_TASK, estimator, first_free_id(built.plan))
        plan = optimize(built.plan, context)
    assert chosen
    assert run(database, plan, context) == expected(database, sql)


def test_the_queries_find_rows(database: duckdb.DuckDBPyConnection) -> None:
    """A test over empty results would prove nothing."""
    empty = [sql for sql in [*QUERIES, *RESTRICTED] if not expected(database, sql)]
    assert len(empty) < len(QUERIES) / 5, empty
