"""Arrays, structs, maps and JSON: functions, lambdas, and queries over columns of such types.

The functions are proven like those of atomic values (see `test_functions`), over tables of their
own. The queries run distributed in several ways against plain Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stagecoach.planner import plan_query
from stagecoach.planner.errors import AnalysisError, SqlError
from stagecoach.planner.functions import REGISTRY
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.expressions import Call
from stagecoach.planner.plan.serde import dump_graph, load_graph
from stagecoach.planner.tree import walk
from tests.differential import cases_collections, cases_csv, cases_json
from tests.differential.edge_tables import EdgeTables
from tests.differential.inprocess import InProcessRunner
from tests.differential.nested_queries import QUERIES
from tests.differential.query_check import ALL_OPTIONS, SINGLE, ask_spark, differences
from tests.differential.test_functions import Proof, check, report
from tests.share import share

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TABLES = {"n": cases_collections, "jt": cases_json, "cv": cases_csv}
# `single` is one task; the others split the three files of `np`.
RUNS = ("single", "shuffle-3")


@pytest.fixture(scope="module")
def proofs(tables: EdgeTables, oracle: SparkSession) -> dict[str, Proof]:
    return {name: Proof(tables, oracle, table=name) for name in TABLES}


@pytest.mark.slow
@pytest.mark.parametrize("table", list(TABLES))
def test_native_cases_run_on_duckdb_and_equal_spark(proofs: dict[str, Proof], table: str) -> None:
    expressions = [e for group in TABLES[table].NATIVE.values() for e in group]
    expressions += cases_collections.OTHERS if table == "n" else []
    wrong, cases = check(proofs[table], share(expressions, 3))
    wrong += [f"{c.expr}: is not native: {c.refusal}" for c in cases if not c.is_native]
    assert not wrong, report(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("table", list(TABLES))
def test_refused_cases_run_on_spark_with_our_types(proofs: dict[str, Proof], table: str) -> None:
    expressions = [e for group in TABLES[table].REFUSED.values() for e in group]
    wrong, cases = check(proofs[table], expressions)
    wrong += [f"{c.expr}: is native" for c in cases if c.is_native]
    assert not wrong, report(wrong)


def test_every_native_entry_is_in_the_plans_of_its_own_cases(tables: EdgeTables) -> None:
    for table, cases in TABLES.items():
        for name, expressions in cases.NATIVE.items():
            assert REGISTRY[name].proof
            for expr in expressions:
                graph = plan_query(f"SELECT {expr} AS v FROM {table}", tables.catalog, SINGLE)
                assert graph.head.engine == "duckdb", f"{expr}: {graph.head.engine_reason}"
                parts = (
                    part
                    for node in walk(graph.head.fragment)
                    for item in node.expressions
                    for part in walk(item)
                )
                assert any(isinstance(p, Call) and p.function == name for p in parts), expr


def test_what_is_not_planned_is_left_to_spark(tables: EdgeTables) -> None:
    for expr in cases_collections.UNPLANNED:
        graph = plan_query(f"SELECT id, {expr} AS v FROM n", tables.catalog, PlannerOptions())
        assert graph.fallback_reason is not None, expr


def test_what_spark_refuses_is_refused(proofs: dict[str, Proof], tables: EdgeTables) -> None:
    for expr in cases_collections.WRONG:
        with pytest.raises(AnalysisError):
            plan_query(f"SELECT id, {expr} AS v FROM n", tables.catalog, PlannerOptions())
    wrong, _ = check(proofs["n"], cases_collections.WRONG)
    assert not wrong, report(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
def test_queries_over_nested_columns_equal_spark(
    tables: EdgeTables, oracle: SparkSession, runner: InProcessRunner, run: str
) -> None:
    wrong = []
    # One task differs in its plan only, so it need not run them all.
    for sql in share(QUERIES, 2) if run != "single" else share(QUERIES, 6):
        expected = ask_spark(oracle, sql)
        assert expected.rows is not None, f"{sql}: {expected.error}"
        found = differences(sql, tables.catalog, runner, expected, ALL_OPTIONS[run])
        wrong += [f"{sql}: {text}" for text in found]
    assert not wrong, report(wrong)


def test_stages_with_lambdas_are_stored_and_loaded(tables: EdgeTables) -> None:
    sql = "SELECT k, max(size(filter(aa, (x, i) -> exists(x, y -> y = i + k)))) AS m FROM np GROUP BY k"
    graph = plan_query(sql, tables.catalog, ALL_OPTIONS["shuffle-3"])
    assert load_graph(dump_graph(graph)) == graph


def test_only_the_members_that_are_read_do_not_change_the_scan(tables: EdgeTables) -> None:
    graph = plan_query(
        "SELECT st.f AS f FROM np WHERE sn.p.q = 1", tables.catalog, PlannerOptions()
    )
    (leaf,) = graph.stages[0].leaves
    assert [c.name for c in leaf.outputs] == ["st", "sn"]


@pytest.mark.parametrize(
    ("expr", "message"),
    [
        ("st.nope", "member 'nope' not found \\(available: f, g, d\\)"),
        ("i.x", "no members"),
        ("transform(ai, (x, X) -> x)", "names a parameter twice"),
        ("exists(ai, (x, i) -> true)", "2 parameters"),
    ],
)
def test_messages_name_what_is_wrong(tables: EdgeTables, expr: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        plan_query(f"SELECT {expr} AS v FROM n", tables.catalog, PlannerOptions())
