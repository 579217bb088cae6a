"""Which refusals of the planner are certain, and what becomes of the others."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from stagecoach.planner.arbiter import is_certain, unknown_function
from stagecoach.planner.errors import (
    AnalysisError,
    SqlError,
    UnknownColumnError,
    UnknownFunctionError,
    UnknownTableError,
    UnsupportedSqlError,
)
from stagecoach.planner.lineage import graph_lineage
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.serde import dump_graph, load_graph
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_phases, plan_query
from stagecoach.planner.syntax.parse import parse_query
from stagecoach.planner.types import INT, STRING, Field
from tests.planner.analysis.test_error_places import TABLES

CERTAIN = {
    "SELECT nope FROM t": "column 'nope' not found",
    "SELECT t.nope FROM t": "column 'nope' in 't' not found",
    "SELECT nope.i FROM t": "table or alias 'nope.i' not found",
    "SELECT i FROM t WHERE nope = 1 GROUP BY i, nope": "column 'nope' not found",
    "SELECT i FROM t ORDER BY nope -- not nope": "column 'nope' not found",
    "SELECT i FROM nope": "table 'nope' is not in the catalog",
    "SELECT conut(i) FROM t": "function 'conut' does not exist; did you mean 'count'",
    "SELECT conut(*) FROM t": "function 'conut' does not exist",
    "SELECT sum(i) OVER (ORDER BY my_udf(i)) FROM t": "function 'my_udf' does not exist",
}
# Queries, and a name in each that Spark may know although the planner does not.
UNCERTAIN = {
    "SELECT nope FROM (SELECT i AS nope FROM t) q WHERE nope.x > 1": "nope",
    "SELECT x FROM t WHERE EXISTS (SELECT 1 FROM u)": "x",
    "SELECT 'nope', nope FROM t": "nope",  # a text may become a name, as in named_struct
    "SELECT `a b` FROM t": "a b",
    "SELECT value FROM t": "value",  # Spark gives this name
    "SELECT col1 FROM t": "col1",
    "SELECT st.c.b FROM t": "b",  # a member of a struct
    "FROM t |> SELECT nope": "nope",
    "SELECT * FROM t PIVOT (sum(i) FOR s IN ('a')) WHERE nope": "nope",
}


@pytest.mark.parametrize(("sql", "text"), CERTAIN.items(), ids=CERTAIN)
def test_a_name_that_is_nowhere_is_final(sql: str, text: str) -> None:
    asked = Asked()
    with pytest.raises(SqlError) as caught:
        plan_query(sql, TABLES, arbiter=asked)
    assert text in caught.value.message
    assert caught.value.line == 1
    kinds = (UnknownColumnError, UnknownFunctionError, UnknownTableError)
    assert isinstance(caught.value, kinds)
    assert asked.graphs == []


@pytest.mark.parametrize(("sql", "name"), UNCERTAIN.items(), ids=UNCERTAIN)
def test_a_name_that_may_be_somewhere_is_not_certain(sql: str, name: str) -> None:
    error = UnknownColumnError("not found", name=name)
    assert not is_certain(error, parse_query(sql), TABLES)


def test_no_hint_is_taken_for_a_function() -> None:
    assert (
        unknown_function(parse_query("SELECT /*+ BROADCAST(u), nohint(t) */ i FROM t"), TABLES)
        is None
    )


@dataclass
class Asked:
    """An arbiter that remembers what it was asked, and refuses with `error` if there is one."""

    error: SqlError | None = None
    columns: tuple[Field, ...] | None = None
    graphs: list[StageGraph] = field(default_factory=list)

    def check(self, graph: StageGraph) -> tuple[Field, ...] | None:
        self.graphs.append(graph)
        if self.error is not None:
            raise self.error
        return self.columns


WRONG_TYPE = "SELECT i,\n  1 + bit_length(arr) AS v\nFROM t"


def test_what_the_planner_only_thinks_wrong_is_asked_and_runs_on_spark() -> None:
    asked = Asked()
    phases = plan_phases(WRONG_TYPE, TABLES, arbiter=asked)
    (graph,) = asked.graphs
    assert phases.graph is graph
    assert graph.head.engine == "spark"
    assert graph.head.sql == WRONG_TYPE
    assert phases.reason == graph.fallback_reason
    with pytest.raises(AnalysisError, match=str(phases.reason)[:20]):
        plan_query(WRONG_TYPE, TABLES)


def test_a_query_that_runs_whole_has_the_columns_that_spark_tells() -> None:
    columns = (Field("i", INT), Field("v", STRING))
    graph = plan_query(WRONG_TYPE, TABLES, arbiter=Asked(columns=columns))
    unknown = plan_query(WRONG_TYPE, TABLES, arbiter=Asked())
    assert (graph.result, unknown.result) == (columns, ())
    assert load_graph(dump_graph(graph)) == graph
    # What it computes is the same.
    assert graph.plan_hash == unknown.plan_hash
    assert [c.name for c in graph_lineage(graph).result.columns] == ["i", "v"]


def test_sparks_refusal_is_told_at_the_planners_place_if_spark_names_none() -> None:
    with pytest.raises(AnalysisError, match="no") as caught:
        plan_query(WRONG_TYPE, TABLES, arbiter=Asked(AnalysisError("[SOME] no")))
    assert (caught.value.line, caught.value.column) == (2, 7)
    with pytest.raises(AnalysisError, match="no") as caught:
        plan_query(WRONG_TYPE, TABLES, arbiter=Asked(AnalysisError("no", line=3, column=1)))
    assert (caught.value.line, caught.value.column) == (3, 1)


def test_what_is_not_supported_is_asked_too() -> None:
    asked = Asked(AnalysisError("[SOME] no"))
    with pytest.raises(AnalysisError, match=r"\[SOME\] no"):
        plan_query("SELECT i FROM t TABLESAMPLE (10 PERCENT)", TABLES, arbiter=asked)
    assert len(asked.graphs) == 1


def test_a_query_that_is_planned_asks_nobody() -> None:
    asked = Asked(AnalysisError("no"))
    assert plan_query("SELECT i FROM t", TABLES, arbiter=asked).fallback_reason is None
    assert asked.graphs == []


def test_duckdb_alone_asks_nobody() -> None:
    asked = Asked()
    options = PlannerOptions(engine="duckdb")
    with pytest.raises(AnalysisError):
        plan_query(WRONG_TYPE, TABLES, options, arbiter=asked)
    with pytest.raises(UnsupportedSqlError):
        plan_query("SELECT i FROM t TABLESAMPLE (10 PERCENT)", TABLES, options, arbiter=asked)
    assert asked.graphs == []
