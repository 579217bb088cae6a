"""Distribution keeps the rows: every stage graph, run task by task, gives DuckDB's own answer.

Stages run here one task after another inside one DuckDB: scans are split in two, shuffles are hashed
into three partitions. No file, no engine of `infra`, no Spark: what is tested is where the planner
puts exchanges and how it splits aggregates, sorts and limits around them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import duckdb
import pytest

from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.physical import ScanExec
from stagecoach.planner.plan.stages import Branch, Stage, StageGraph
from stagecoach.planner.planning import plan_query
from stagecoach.planner.render.fragment import render_fragment
from tests.duckdb_functions import declared
from tests.planner.catalogs import SALES
from tests.planner.optimizer.test_rules_keep_rows import QUERIES, TABLES, expected, rows

SPLITS = 2
OPTIONS = {
    "shuffled": PlannerOptions(force_distribution=True, broadcast_bytes=0, num_partitions=3),
    "broadcast": PlannerOptions(force_distribution=True, num_partitions=3),
    "inline": PlannerOptions(single_task_bytes=0, inline_bytes=1 << 60, num_partitions=3),
    "one task": PlannerOptions(single_task_bytes=1 << 60),
}
Task = Mapping[int, str]


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        connection.execute(TABLES)
        yield connection


def tasks_of(graph: StageGraph, stage: Stage) -> Iterator[Task]:
    """For each task of a stage: the condition on the rows of each of its leaves."""
    shared = {leaf for branch in stage.branches for leaf in branch.leaves}
    for branch in stage.branches:
        for condition in conditions(graph, stage, branch):
            inside = dict.fromkeys(branch.leaves, condition)
            outside = dict.fromkeys(shared - set(branch.leaves), "false")
            yield {**outside, **inside}


def conditions(graph: StageGraph, stage: Stage, branch: Branch) -> list[str]:
    if branch.kind == "splits":
        return [f"rowid % {SPLITS} = {i}" for i in range(SPLITS)]
    if branch.kind == "single":
        return ["true"]
    leaf = stage.leaves[branch.leaves[0]]
    assert not isinstance(leaf, ScanExec)
    count = graph.stages[leaf.stage_id].output.num_partitions
    return [f"p = {i}" for i in range(count)]


def run_task(database: duckdb.DuckDBPyConnection, stage: Stage, task: Task) -> str:
    """The SQL of a task, after making the views that it reads."""
    for position, leaf in enumerate(stage.leaves):
        if isinstance(leaf, ScanExec):
            names, source = leaf.source, leaf.table
        else:
            names, source = tuple(f"c{i}" for i in range(len(leaf.outputs))), f"out_{leaf.stage_id}"
        pairs = zip(names, leaf.outputs, strict=True)
        columns = ", ".join(f"{name} AS c{column.id}" for name, column in pairs) or "1"
        database.execute(
            f"CREATE OR REPLACE TEMP VIEW in_{position} AS "
            f"SELECT {columns} FROM {source} WHERE {task.get(position, 'true')}"
        )
    return declared(database, render_fragment(stage, "duckdb", {}))


def run_stage(database: duckdb.DuckDBPyConnection, graph: StageGraph, stage: Stage) -> None:
    output = stage.output
    keys = ", ".join(f"c{k}" for k in output.keys)
    part = f"hash({keys}) % {output.num_partitions}" if keys else "0"
    made = False
    for task in tasks_of(graph, stage):
        query = f"SELECT *, {part} AS p FROM ({run_task(database, stage, task)})"
        head = (
            f"INSERT INTO out_{stage.stage_id}"
            if made
            else f"CREATE OR REPLACE TABLE out_{stage.stage_id} AS"
        )
        database.execute(f"{head} {query}")
        made = True


def run_graph(database: duckdb.DuckDBPyConnection, graph: StageGraph) -> Counter[tuple[Any, ...]]:
    for stage in graph.stages:
        run_stage(database, graph, stage)
    head = graph.head
    columns = ", ".join(f"c{i}" for i in range(len(head.schema)))
    return rows(database, f"SELECT {columns} FROM out_{head.stage_id}")


# Which rows a limit without an order keeps is open, so a filter above it finds any number of them;
# so is which row is the first of a group.
UNDETERMINED = (
    "SELECT id FROM (SELECT id FROM orders LIMIT 5) WHERE id > 3",
    "SELECT o.status, first(l.line) AS s FROM orders AS o JOIN lines AS l "
    "ON l.product = o.customer GROUP BY o.status",
)
ORDERED = [
    "SELECT id, total, status FROM orders ORDER BY total DESC NULLS LAST, id NULLS LAST, status DESC",
    "SELECT customer, count(*) AS n FROM orders GROUP BY customer ORDER BY n DESC, customer",
    "SELECT customer, count(*) AS n FROM orders GROUP BY customer ORDER BY n DESC, customer LIMIT 4 OFFSET 2",
    "SELECT status FROM orders ORDER BY total DESC, id, status LIMIT 7",
    "SELECT DISTINCT status FROM orders ORDER BY status DESC",
    "SELECT id FROM orders UNION ALL SELECT id FROM customers ORDER BY id DESC LIMIT 20",
    "SELECT id, total FROM (SELECT id, total FROM orders ORDER BY total, id LIMIT 30) ORDER BY id, total LIMIT 9 OFFSET 3",
]


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("sql", ORDERED)
def test_rows_come_in_the_order_that_is_asked_for(
    database: duckdb.DuckDBPyConnection, sql: str, options: PlannerOptions
) -> None:
    graph = plan_query(sql, SALES, options)
    run_graph(database, graph)
    result = f"SELECT * EXCLUDE (p) FROM out_{graph.head.stage_id} ORDER BY rowid"
    assert database.execute(result).fetchall() == database.execute(sql).fetchall()


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("sql", [sql for sql in QUERIES if sql not in UNDETERMINED])
def test_rows_are_those_of_the_query(
    database: duckdb.DuckDBPyConnection, sql: str, options: PlannerOptions
) -> None:
    graph = plan_query(sql, SALES, options)
    assert graph.fallback_reason is None
    got, wanted = run_graph(database, graph), expected(database, sql)
    if "LIMIT" in sql and "ORDER BY" not in sql:
        assert got.total() == wanted.total()
    else:
        assert got == wanted
