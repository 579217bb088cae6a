"""Which stages are incremental, and why others are computed whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.explain.display import graph_data, render_graph
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.serde import dump_graph, load_graph
from stagecoach.planner.plan.stages import Stage, StageGraph
from stagecoach.planner.planning import plan_query
from tests.planner.catalogs import table

SALES = "id bigint; customer bigint; day date; amount decimal(12,2); weight double; note string"
CATALOG = MappingCatalog(
    [
        replace(table("sales", SALES, 20_000_000), by_cores=True, is_local=True),
        replace(table("more", SALES, 20_000_000), by_cores=True, is_local=True),
        replace(
            table("customers", "id bigint; country string", 1_000_000), by_cores=True, is_local=True
        ),
        replace(table("countries", "code string; name string", 30), by_cores=True, is_local=True),
    ]
)
DAILY = "SELECT day, sum(amount) AS total, count(*) AS n FROM sales GROUP BY day"


def plan(sql: str, **options: int | bool | str) -> StageGraph:
    return plan_query(sql, CATALOG, PlannerOptions().updated({"incremental": True, **options}))


def leaf(sql: str, **options: int | bool | str) -> Stage:
    """The stage that reads the sales."""
    return next(stage for stage in plan(sql, **options).stages if "sales" in stage.tables)


@pytest.mark.parametrize(
    "sql",
    [
        DAILY,
        f"{DAILY} ORDER BY total DESC LIMIT 10",
        "SELECT id, upper(note) AS note FROM sales WHERE amount > 10",
        "SELECT count(DISTINCT note), min(weight), avg(amount) FROM sales",
        "SELECT name, count(*) FROM sales JOIN countries ON note = code GROUP BY name",
        "SELECT country, sum(amount) FROM sales s JOIN customers c ON customer = c.id GROUP BY 1",
        "SELECT day FROM sales UNION ALL SELECT day FROM more",
        "SELECT day, grouping(note), sum(amount) FROM sales GROUP BY CUBE (day, note)",
    ],
)
def test_what_only_adds_up_is_incremental(sql: str) -> None:
    found = leaf(sql)
    assert (found.incremental, found.whole_reason) == (True, "")


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT day, sum(weight) FROM sales GROUP BY day", "sum of double depends on how rows"),
        ("SELECT day, avg(weight) FROM sales GROUP BY day", "of double depends on how rows"),
        ("SELECT id FROM sales LIMIT 10", "which rows a LIMIT keeps"),
        ("SELECT id FROM sales ORDER BY day LIMIT 10", "which of equal rows a LIMIT keeps"),
        ("SELECT id FROM sales ORDER BY day", "the order of equal rows"),
        ("SELECT /*+ REPARTITION(8) */ id FROM sales", "rows are dealt out to partitions"),
    ],
)
def test_what_grouping_could_change_is_computed_whole(sql: str, reason: str) -> None:
    found = leaf(sql)
    assert not found.incremental
    assert reason in found.whole_reason


def test_a_stage_on_spark_is_computed_whole() -> None:
    assert "Spark" in leaf("SELECT sin(weight) AS s FROM sales WHERE id > 1").whole_reason


def test_what_merges_all_tasks_is_computed_whole() -> None:
    graph = plan(DAILY)
    assert [stage.incremental for stage in graph.stages] == [True, False]
    assert graph.head.whole_reason == "it merges rows of all tasks of stage 0"


def test_a_query_over_little_data_is_one_task() -> None:
    graph = plan(DAILY, single_task_bytes=1 << 60)
    assert [stage.whole_reason for stage in graph.stages] == ["one task reads all of its tables"]


def test_a_plan_is_only_incremental_if_it_is_asked_for() -> None:
    graph = plan(DAILY, incremental=False)
    assert [stage.cores for stage in graph.stages] == [2]
    assert not graph.head.incremental
    assert not graph.head.whole_reason
    assert "incremental" not in dump_graph(graph)


def test_it_changes_neither_hashes_nor_is_it_lost_in_storage() -> None:
    graph, other = plan(DAILY), plan(DAILY, incremental=False, task_cores=1)
    assert graph.plan_hash == other.plan_hash
    assert load_graph(dump_graph(graph)) == graph


def test_explain_tells_of_each_stage() -> None:
    graph = plan("SELECT name, count(*) FROM sales JOIN countries ON note = code GROUP BY name")
    text = render_graph(graph)
    assert (
        "-- incremental: only new and changed files are computed, while countries stays as it is"
        in text
    )
    assert "-- computed whole: it merges rows of all tasks of stage 0" in text
    told = [(s["incremental"], s["whole_reason"]) for s in graph_data(graph)["stages"]]
    assert told == [(True, None), (False, "it merges rows of all tasks of stage 0")]
