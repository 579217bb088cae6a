"""Plans of the relational forms: how many exchanges and scans, what is shared, what is refused."""

from __future__ import annotations

import pytest

from stagecoach.planner import plan_query
from stagecoach.planner.errors import AnalysisError, ForbiddenSqlError, ParseError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.physical import AggregateExec, ExpandExec, GenerateExec
from stagecoach.planner.plan.stages import ParameterSpec, StageGraph
from stagecoach.planner.render.fragment import render_fragment
from stagecoach.planner.tree import walk
from stagecoach.planner.types import INT
from tests.planner.catalogs import SALES

SPREAD = PlannerOptions(force_distribution=True, num_partitions=3)


def planned(sql: str, *parameters: ParameterSpec) -> StageGraph:
    """The stages of a query that must be staged."""
    graph = plan_query(sql, SALES, SPREAD, parameters=parameters)
    assert graph.fallback_reason is None
    return graph


@pytest.mark.parametrize("name", ["INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"])
def test_a_set_operation_has_one_exchange_and_counts_in_each_task(name: str) -> None:
    graph = planned(f"SELECT id FROM orders {name} SELECT id FROM customers")
    assert [s.output.kind for s in graph.stages] == ["shuffle", "gather"]
    modes = [n.mode for s in graph.stages for n in walk(s.fragment) if isinstance(n, AggregateExec)]
    assert modes == ["partial", "final"]


def test_rows_are_copied_for_grouping_sets_without_reading_them_again() -> None:
    graph = planned("SELECT customer, day, sum(total) FROM orders GROUP BY CUBE (customer, day)")
    first = graph.stages[0]
    (expand,) = (n for n in walk(first.fragment) if isinstance(n, ExpandExec))
    assert len(expand.projections) == 4
    assert render_fragment(first, "duckdb", {}).count("in_0") == 1


def test_a_generator_stays_in_the_task_of_its_rows() -> None:
    graph = planned("SELECT id, explode(array(id, customer)) AS x FROM orders")
    assert len(graph.stages) == 1
    assert any(isinstance(n, GenerateExec) for n in walk(graph.head.fragment))


def test_position_markers_are_parameters_named_by_position() -> None:
    graph = planned(
        "SELECT id + ? FROM orders WHERE id > ?", ParameterSpec("1", INT), ParameterSpec("2", INT)
    )
    assert {p for s in graph.stages for p in s.parameters} == {"1", "2"}


def test_identifier_is_the_name_that_its_text_gives() -> None:
    assert planned("SELECT IDENTIFIER('i' || 'd') FROM IDENTIFIER('orders')").result[0].name == "id"
    with pytest.raises(ForbiddenSqlError):
        plan_query("SELECT * FROM IDENTIFIER('parquet.`/etc/passwd`')", SALES)
    with pytest.raises(ParseError):
        plan_query("SELECT IDENTIFIER(id) FROM orders", SALES)


def test_a_pipe_keeps_the_name_of_its_table() -> None:
    graph = planned(
        "FROM orders |> EXTEND id + 1 AS n |> WHERE orders.id > 1 |> SELECT n, orders.day"
    )
    assert [f.name for f in graph.result] == ["n", "day"]
    assert not graph.ordered
    assert planned("FROM orders |> ORDER BY id |> LIMIT 2").ordered
    with pytest.raises(AnalysisError, match="line 2, column 9"):
        plan_query("FROM orders\n|> DROP nope", SALES)
