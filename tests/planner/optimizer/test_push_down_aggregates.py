"""Aggregates below joins: where they go, what they cost, and that they change no row."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from stagecoach.planner.analysis.queries import build_logical
from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.estimates import Estimator
from stagecoach.planner.optimizer.context import RuleContext, first_free_id
from stagecoach.planner.optimizer.push_down_aggregates import push_down_aggregates
from stagecoach.planner.optimizer.rules import RULES, optimize
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.logical import Aggregate, Join, LogicalPlan
from stagecoach.planner.syntax.parse import parse_query
from stagecoach.planner.tree import walk
from tests.differential.corpus_files import queries
from tests.differential.edge_tables import GROUP_SCHEMA, JOIN_SCHEMA
from tests.differential.few_values import few_values
from tests.differential.shop_tables import SCHEMAS
from tests.planner.catalogs import table
from tests.planner.optimizer.test_rules_keep_rows import ONE_TASK, TABLES, expected, run

CORPUS = few_values({"g": GROUP_SCHEMA, **dict.fromkeys(("x", "y", "z"), JOIN_SCHEMA), **SCHEMAS})
POSITION = [rule.__name__ for rule in RULES].index("push_down_aggregates")


def around(
    sql: str, catalog: MappingCatalog, options: PlannerOptions = ONE_TASK
) -> tuple[LogicalPlan, LogicalPlan, RuleContext]:
    """The plans before and after the rule."""
    built = build_logical(parse_query(sql), catalog, {})
    estimator = Estimator({t.name: t for t in built.tables})
    context = RuleContext(options, estimator, first_free_id(built.plan))
    before = optimize(built.plan, context, RULES[:POSITION])
    return before, push_down_aggregates(before, context), context


@pytest.mark.parametrize("name", [q.name for q in queries("eager-aggregation")])
def test_the_corpus_fires_the_rule(name: str) -> None:
    (query,) = (q for q in queries("eager-aggregation") if q.name == name)
    before, after, _ = around(query.sql, CORPUS, PlannerOptions(broadcast_bytes=0))
    assert (before != after) == ("/never-" not in name)


# ---------------------------------------------------------------- whether it pays

HIRES = "SELECT f.kind, sum(s.amount) AS total FROM sales s JOIN facts f ON s.item = f.item GROUP BY f.kind"  # fmt: skip


def shops(*, items: int, sales: int, facts: int) -> MappingCatalog:
    """Sales of items, and facts about each."""
    return MappingCatalog(
        [
            table("sales", "item bigint; amount double", sales, distinct={"item": items}),
            table(
                "facts", "item bigint; kind string", facts, distinct={"item": items, "kind": 100}
            ),
        ]
    )


def fires(catalog: MappingCatalog, **options: Any) -> bool:
    before, after, _ = around(HIRES, catalog, PlannerOptions(**options))
    return before != after


def test_fires_where_a_shuffle_moves_fewer_rows() -> None:
    """Each item is in one fact: the join multiplies nothing, and its sides are both shuffled."""
    assert fires(shops(items=100_000, sales=80_000_000, facts=100_000), broadcast_bytes=1 << 20)


def test_spares_what_is_streamed_past_a_small_side() -> None:
    assert not fires(shops(items=100_000, sales=80_000_000, facts=100_000))


def test_spares_groups_that_no_task_has_twice() -> None:
    """A million items, ten sales each: a task of 2,000,000 rows meets nearly all items."""
    catalog = shops(items=8_000_000, sales=80_000_000, facts=8_000_000)
    assert not fires(catalog, broadcast_bytes=1 << 20)


def test_spares_rows_that_the_join_drops() -> None:
    """The other side's keys filter the rows before they are shuffled, which costs less."""
    catalog = shops(items=1_000_000, sales=80_000_000, facts=1_000_000)
    rare = HIRES.replace("GROUP", "WHERE f.kind = 'x' GROUP")
    options = PlannerOptions(broadcast_bytes=1 << 10, partition_bytes=1 << 30)
    fired = []
    for sql in (HIRES, rare):
        before, after, _ = around(sql, catalog, options)
        fired.append(before != after)
    assert fired == [True, False]


def test_spares_small_tables() -> None:
    assert not fires(shops(items=10, sales=50_000, facts=10), broadcast_bytes=0)


def test_the_smaller_input_is_hashed() -> None:
    """The aggregate makes the larger side the smaller one."""
    catalog = shops(items=1_000, sales=80_000_000, facts=200_000)
    _, after, _ = around(HIRES, catalog, PlannerOptions(broadcast_bytes=1 << 20))
    (join,) = (node for node in walk(after) if isinstance(node, Join))
    assert isinstance(join.right, Aggregate)


# ---------------------------------------------------------------- random aggregates

FEW = MappingCatalog(
    [
        table("orders", "id bigint; customer bigint; total decimal(12,2); status string; day date", 2_000_000, distinct=dict.fromkeys(("id", "customer", "total", "status", "day"), 6)),
        table("lines", "order_id bigint; line int; product bigint; price double; note string", 2_000_000, distinct=dict.fromkeys(("order_id", "line", "product", "note"), 6)),
        table("customers", "id bigint; name string; city string; rating int", 2_000_000, distinct=dict.fromkeys(("id", "name", "city", "rating"), 6)),
    ]
)  # fmt: skip
_COLUMNS = {
    "o": ["id", "customer", "status", "day"],
    "l": ["order_id", "line", "product", "note"],
    "c": ["id", "rating", "name"],
}
_NUMBERS = {"o": ["total", "id", "customer"], "l": ["line", "product", "price"], "c": ["rating"]}
_KEYS = {"o": ["id", "customer"], "l": ["order_id", "product", "line"], "c": ["id", "rating"]}
_NAMES = {"o": "orders", "l": "lines", "c": "customers"}


def random_query(seed: int) -> str:
    """An aggregate over a join of two or three tables."""
    rng = random.Random(seed)
    aliases = rng.sample(["o", "l", "c"], rng.choice([2, 2, 3]))
    text = f"{_NAMES[aliases[0]]} {aliases[0]}"
    for number, alias in enumerate(aliases[1:], 1):
        kind = rng.choice(["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN"])
        other = rng.choice(aliases[:number])
        on = f"{other}.{rng.choice(_KEYS[other])} = {alias}.{rng.choice(_KEYS[alias])}"
        if rng.random() < 0.4:
            side = rng.choice([other, alias])
            on += f" AND {side}.{rng.choice(_KEYS[side])} {rng.choice(['<', '>', '<>'])} {rng.randint(0, 9)}"  # fmt: skip
        text += f" {kind} {_NAMES[alias]} {alias} ON {on}"
    fact = rng.choice(aliases)
    value = [f"{fact}.{rng.choice(_NUMBERS[fact])}" for _ in range(3)]
    calls = [
        "count(*)",
        f"count({value[0]})",
        f"sum({value[0]})",
        f"avg({value[1]})",
        f"min({value[2]})",
        f"max({fact}.{rng.choice(_COLUMNS[fact])})",
        f"sum({value[1]}) FILTER (WHERE {value[1]} > 3)",
    ]
    chosen = rng.sample(calls, rng.randint(1, 4))
    sides = [rng.choice(aliases) for _ in range(rng.choice([0, 1, 1, 2]))]
    groups = list(dict.fromkeys(f"{a}.{rng.choice(_COLUMNS[a])}" for a in sides))
    by = f" GROUP BY {', '.join(groups)}" if groups else ""
    return f"SELECT {', '.join([*groups, *chosen])} FROM {text}{by}"


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        connection.execute(TABLES)
        yield connection


def test_random_aggregates_keep_their_rows(database: duckdb.DuckDBPyConnection) -> None:
    fired = 0
    for seed in range(120):
        sql = random_query(seed)
        before, after, context = around(sql, FEW)
        if before == after:
            continue
        fired += 1
        assert run(database, after, context) == expected(database, sql), f"seed {seed}: {sql}"
    assert fired > 60
