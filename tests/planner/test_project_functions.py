"""Functions that the catalog declares: where they are in a plan, its hashes, and its texts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagecoach.planner import plan_query
from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.errors import (
    FunctionCallError,
    SqlError,
    UnknownFunctionError,
    UnsupportedSqlError,
)
from stagecoach.planner.explain.display import render_graph
from stagecoach.planner.lineage.graph import graph_lineage
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.serde import dump_graph, load_graph
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.render.fragment import render_fragment
from stagecoach.planner.syntax.parse import read_query
from stagecoach.planner.syntax.unparsed_query import UnparsedQuery
from stagecoach.planner.types import BIGINT, STRING
from tests.planner.catalogs import table

SHOUT = ProjectFunction("shout", "m:f", (STRING,), STRING, deterministic=True, code="source:1")
CHANGING = replace(SHOUT, name="changing", deterministic=False)
SQL = "SELECT shout(s) AS v, count(*) AS n FROM t WHERE i > 1 GROUP BY shout(s)"
TABLES = [table("t", "i int; s string"), table("u", "i int; s string")]
FORCED = PlannerOptions(force_distribution=True, num_partitions=2)


def plan(
    sql: str = SQL, *functions: ProjectFunction, options: PlannerOptions = FORCED
) -> StageGraph:
    return plan_query(sql, MappingCatalog(TABLES, functions or (SHOUT,)), options)


def test_a_deterministic_function_is_an_ordinary_scalar_function() -> None:
    graph = plan()
    assert [(stage.engine, stage.functions) for stage in graph.stages] == [
        ("duckdb", (SHOUT,)),
        ("duckdb", ()),
    ]
    assert graph.functions == (SHOUT,)
    native = render_fragment(graph.stages[0], "duckdb", {})
    assert f"{SHOUT.unique_name}(CAST(c1 AS VARCHAR))" in native
    assert "`shout`(c1)" in render_fragment(graph.stages[0], "spark", {})
    text = render_graph(graph)
    assert "function shout(string) string: m:f, scalar, deterministic\n" in text
    assert "shout(s) AS" in text


def test_names_are_not_case_sensitive_and_arguments_are_cast() -> None:
    graph = plan("SELECT SHOUT(i) FROM t")
    assert [field.name for field in graph.result] == ["shout(i)"]
    assert "`shout`(CAST(c0 AS string))" in render_fragment(graph.head, "spark", {})


def test_one_query_reads_as_much_as_another_of_its_calls() -> None:
    found, expected = (
        graph_lineage(plan(sql, CHANGING, SHOUT)).result
        for sql in (
            "SELECT changing(s) AS v FROM t WHERE shout(s) = s",
            "SELECT upper(s) AS v FROM t WHERE lower(s) = s",
        )
    )
    assert found.columns == expected.columns
    assert found.rows == expected.rows


@pytest.mark.parametrize("change", [
    {"code": "source:2"},
    {"python": "m:g"},
    {"arguments": (BIGINT,)},
    {"kind": "arrow"},
    {"null_input": "return_null"},
    {"returns": BIGINT},
])  # fmt: skip
def test_what_a_declaration_says_is_part_of_the_hashes(change: dict[str, object]) -> None:
    before, after = plan(), plan(SQL, replace(SHOUT, **change))
    assert before.stages[0].plan_hash != after.stages[0].plan_hash
    assert before.plan_hash != after.plan_hash
    assert before.plan_hash == plan().plan_hash
    old, new = (
        plan("SELECT changing(s) AS v FROM t", replace(CHANGING, **c)) for c in ({}, change)
    )
    assert old.head.sql is not None
    assert old.head.plan_hash != new.head.plan_hash


def test_the_hash_of_a_plan_with_a_function_does_not_move() -> None:
    # A changed number means that all stages that call functions are computed again.
    assert plan().stages[0].plan_hash[:16] == "e73ffd5b855687bb"


def test_another_functions_code_makes_no_other_plan() -> None:
    other = replace(SHOUT, name="other")
    before = plan(SQL, SHOUT, other)
    after = plan(SQL, SHOUT, replace(other, code="source:2"))
    assert before == after


def test_plans_are_written_and_read_and_those_without_functions_as_before() -> None:
    for graph in (plan(), plan("SELECT changing(s) AS v FROM t", CHANGING)):
        assert load_graph(dump_graph(graph)) == graph
        assert '"functions"' in dump_graph(graph)
    without = dump_graph(plan("SELECT upper(s) AS v FROM t"))
    assert "functions" not in without
    assert load_graph(without).functions == ()


def test_a_function_that_may_change_leaves_the_query_to_spark() -> None:
    graph = plan("SELECT a.s FROM t a JOIN u b ON changing(a.s) = b.s", CHANGING)
    assert graph.fallback_reason == "function 'changing' is not declared deterministic"
    assert graph.head.functions == graph.functions == (CHANGING,)
    assert not graph.head.deterministic
    native = PlannerOptions(engine="duckdb")
    with pytest.raises(UnsupportedSqlError, match="not declared deterministic") as caught:
        plan("SELECT i,\n  changing(s) FROM t", CHANGING, options=native)
    assert (caught.value.line, caught.value.column) == (2, 3)


def test_a_query_that_only_spark_can_read_knows_its_functions_by_their_names() -> None:
    class Accepts:
        def check(self, graph: StageGraph) -> None:
            self.graph = graph

    sql = "WITH RECURSIVE r MAX RECURSION LEVEL 9 AS (SELECT 1 AS n) SELECT shout(n) FROM r"
    assert isinstance(read_query(sql), UnparsedQuery)
    catalog, arbiter = MappingCatalog(TABLES, [SHOUT]), Accepts()
    graph = plan_query(sql, catalog, arbiter=arbiter)
    assert graph.functions == arbiter.graph.functions == (SHOUT,)


def test_a_wrong_call_is_refused_without_asking_spark() -> None:
    class Asked:
        def check(self, graph: StageGraph) -> None:
            raise AssertionError(graph.sql)

    catalog = MappingCatalog(TABLES, [SHOUT])
    with pytest.raises(FunctionCallError, match="takes 1 argument, not 2"):
        plan_query("SELECT shout(s, 1) FROM t", catalog, arbiter=Asked())
    with pytest.raises(UnknownFunctionError, match="did you mean 'shout'"):
        plan_query("SELECT shoutt(s) FROM t", catalog, arbiter=Asked())


@pytest.mark.parametrize("sql", [
    "SELECT transform(array(s), x -> shout(x)) FROM t",
    "SELECT transform(array(s), shout(s)) FROM t",
    "SELECT shout(DISTINCT s) FROM t",
    "SELECT shout(s) OVER () FROM t",
    "SELECT shout(s) FILTER (WHERE i > 1) FROM t",
    "SELECT * FROM t, LATERAL shout(s)",
    "SELECT * FROM shout('a')",
])  # fmt: skip
def test_forms_that_spark_refuses_are_not_planned(sql: str) -> None:
    with pytest.raises(SqlError):
        plan(sql, options=replace(FORCED, engine="duckdb"))


def test_rules_move_no_call_that_may_raise() -> None:
    graph = plan("SELECT t.i FROM t LEFT JOIN u ON t.i = u.i WHERE shout(u.s) IS NULL")
    assert "left" in render_graph(graph).lower()
