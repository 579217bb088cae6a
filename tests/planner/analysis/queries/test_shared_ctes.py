"""CTEs that are computed once: which ones, and that the rows are those of the copies."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from stagecoach.planner.analysis.queries import shared_ctes
from stagecoach.planner.plan.serde import dump_graph, load_graph
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from stagecoach.planner.tree import walk
from tests.planner.catalogs import SALES
from tests.planner.distribution.test_distributed_rows import OPTIONS, UNDETERMINED, run_graph
from tests.planner.optimizer.test_rules_keep_rows import QUERIES, TABLES, expected

# Each reads `s` twice; the second one other columns than the first, by other keys.
PLACES = {
    "union": "SELECT * FROM s UNION ALL SELECT * FROM s",
    "counted": "SELECT (SELECT count(*) FROM s) + count(*) AS n FROM s",
    "beside": "SELECT (SELECT count(*) FROM s) AS n, * FROM s",
}


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        connection.execute(TABLES)
        yield connection


@pytest.fixture
def share_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every CTE that is named twice is shared, however small."""
    monkeypatch.setattr(shared_ctes, "MAX_RELATIONS", 0)
    monkeypatch.setattr(shared_ctes, "MAX_COPY", 0)


def doubled(levels: int, step: str, first: str = "SELECT id, customer FROM orders") -> str:
    """CTEs of which each reads the one before it, `{c}`, as often as the step says."""
    ctes = [f"c0 AS ({first})"]
    ctes += [f"c{i} AS ({step.format(c=f'c{i - 1}')})" for i in range(1, levels + 1)]
    return f"WITH {', '.join(ctes)} SELECT * FROM c{levels}"


STEPS = {
    "join": "SELECT DISTINCT x.id, y.customer FROM {c} x JOIN {c} y ON x.id = y.id",
    "left join": "SELECT DISTINCT x.id, y.customer FROM {c} x LEFT JOIN {c} y ON x.customer = y.id",
    "full join": "SELECT DISTINCT x.id, y.customer FROM {c} x FULL JOIN {c} y ON x.id = y.customer",
    "null-safe join": "SELECT DISTINCT x.id, y.customer FROM {c} x JOIN {c} y ON x.id <=> y.id",
    "union": "SELECT id, customer FROM {c} UNION SELECT customer, id FROM {c}",
    "union all": "SELECT id, max(customer) AS customer FROM (SELECT * FROM {c} UNION ALL "
    "SELECT customer, id FROM {c}) GROUP BY id",
    "groups": "SELECT x.id, count(*) AS customer FROM {c} x JOIN {c} y ON x.id = y.id GROUP BY x.id",
    "in": "SELECT id, customer FROM {c} WHERE customer IN (SELECT id FROM {c}) OR id IS NULL",
    "not exists": "SELECT id, customer FROM {c} x WHERE NOT EXISTS "
    "(SELECT 1 FROM {c} y WHERE y.customer = x.id AND y.id > x.id)",
    "scalar": "SELECT id, customer + (SELECT count(DISTINCT id) FROM {c}) AS customer FROM {c}",
    "window": "SELECT DISTINCT x.id, min(y.customer) OVER (PARTITION BY x.id) AS customer "
    "FROM {c} x JOIN {c} y ON x.id = y.id",
    "limit": "SELECT x.id, y.customer FROM {c} x JOIN {c} y ON x.id = y.id "
    "ORDER BY x.id, y.customer LIMIT 20",
}


def operators(graph: StageGraph) -> int:
    return sum(1 for stage in graph.stages for _ in walk(stage.fragment))


# Two distributions for each step: all of them are met by several steps.
DOUBLED = [
    (step, options)
    for number, step in enumerate(STEPS)
    for options in (
        list(OPTIONS)[number % len(OPTIONS)],
        list(OPTIONS)[(number + 1) % len(OPTIONS)],
    )
]


@pytest.mark.parametrize(("step", "options"), DOUBLED)
def test_doubled_ctes_give_the_rows_of_all_copies(
    database: duckdb.DuckDBPyConnection, step: str, options: str
) -> None:
    sql = doubled(7, STEPS[step])
    graph = plan_query(sql, SALES, OPTIONS[options])
    assert graph.fallback_reason is None
    spelled = sql.replace("<=>", "IS NOT DISTINCT FROM")
    assert run_graph(database, graph) == expected(database, spelled)


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_the_plan_of_doubled_ctes_grows_by_the_level(step: str) -> None:
    options = OPTIONS["shuffled"]
    small, large = (plan_query(doubled(n, step), SALES, options) for n in (10, 20))
    assert small.fallback_reason is large.fallback_reason is None
    assert operators(large) <= 2.5 * operators(small)


COMBINATIONS = [(place, options) for place in PLACES for options in OPTIONS]


@pytest.mark.usefixtures("share_all")
@pytest.mark.parametrize(("place", "options"), COMBINATIONS)
def test_any_query_may_be_shared(
    database: duckdb.DuckDBPyConnection, place: str, options: str
) -> None:
    """Each combination takes a share of the queries, so that all of them are run."""
    for query in list(QUERIES)[COMBINATIONS.index((place, options)) :: len(COMBINATIONS)]:
        if query in UNDETERMINED or ("LIMIT" in query and "ORDER BY" not in query):
            continue
        names = [f"n{i}" for i, _ in enumerate(plan_query(query, SALES).result)]
        sql = f"WITH s({', '.join(names)}) AS ({query}) {PLACES[place]}"
        graph = plan_query(sql, SALES, OPTIONS[options])
        assert graph.fallback_reason is None, sql
        assert run_graph(database, graph) == expected(database, sql), sql
        assert load_graph(dump_graph(graph)) == graph
