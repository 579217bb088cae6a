"""Why exchanges are there, the plans of all phases, EXPLAIN as a statement, and plan files."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from stagecoach.planner.distribution.reasons import RESULT
from stagecoach.planner.errors import GraphFormatError, OptionError, ParseError, UnsupportedSqlError
from stagecoach.planner.explain.display import render_graph, render_phases
from stagecoach.planner.explain.plan_text import render_plan
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.expressions import Column, Expression
from stagecoach.planner.plan.physical import ExchangeExec, PhysicalPlan, ScanExec, SharedScanExec
from stagecoach.planner.plan.serde import _CLASSES as STORED
from stagecoach.planner.plan.serde import dump_graph, load_graph, parse_file
from stagecoach.planner.plan.stages import FORMAT_VERSION, Stage, StageGraph, StageOutput
from stagecoach.planner.plan.subqueries import SubqueryExpression
from stagecoach.planner.planning import plan_phases, plan_query
from stagecoach.planner.syntax.explain_statement import split_explain
from stagecoach.planner.tree import walk
from stagecoach.planner.types import BIGINT
from tests.planner.catalogs import SALES
from tests.planner.tpch import DEFAULT, FORCED, NAMES, tpch_graph

LARGE = PlannerOptions(force_distribution=True, num_partitions=4)
SHUFFLED = PlannerOptions(force_distribution=True, num_partitions=4, broadcast_bytes=0)


def reasons(sql: str, options: PlannerOptions = LARGE) -> list[str]:
    graph = plan_query(sql, SALES, options)
    assert graph.fallback_reason is None
    return [stage.output.reason for stage in graph.stages]


# ---------------------------------------------------------------- reasons


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("options", [DEFAULT, FORCED], ids=["default", "forced"])
def test_every_exchange_says_why_it_is_there(name: str, options: PlannerOptions) -> None:
    graph = tpch_graph(name, options)
    assert graph.head.output.reason == RESULT
    for stage in graph.stages[:-1]:
        assert stage.output.reason
        assert stage.output.reason in render_graph(graph)


@pytest.mark.parametrize(
    ("sql", "options", "reason"),
    [
        ("SELECT status, sum(total) FROM orders GROUP BY status", LARGE,
         "group keys status: the input is not partitioned by them"),
        ("SELECT sum(total) FROM orders", LARGE, "one group over all rows"),
        ("SELECT id FROM orders ORDER BY total", LARGE, "one order over all rows"),
        ("SELECT id FROM orders ORDER BY total LIMIT 5", LARGE,
         "one order over all rows, of which each task sends its first 5"),
        ("SELECT id FROM orders LIMIT 5 OFFSET 2", LARGE,
         "LIMIT 5 OFFSET 2 counts the rows of all tasks"),
        ("SELECT label FROM lines JOIN products p ON product = p.id", LARGE,
         "join keys product = id: this side is small, 332.0 KiB <= 64.0 MiB"),
        ("SELECT label FROM lines JOIN products p ON product = p.id", SHUFFLED,
         "join keys product = id are hashed: neither side is partitioned by them"),
        ("SELECT name FROM customers c LEFT JOIN products p ON c.id < p.id", LARGE,
         "left join without an equality: every row is compared with all rows of this side"),
        ("SELECT customer, n FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) "
         "JOIN customers ON customer = id", SHUFFLED,
         "join keys customer = id are hashed: the left side is already, in 4 partitions"),
    ],
)  # fmt: skip
def test_reasons(sql: str, options: PlannerOptions, reason: str) -> None:
    assert reason in reasons(sql, options)


def test_a_side_that_is_too_large_to_broadcast_says_so() -> None:
    options = PlannerOptions(force_distribution=True, num_partitions=4, broadcast_bytes=1000)
    sql = "SELECT label FROM lines JOIN products p ON product = p.id"
    found = [r for r in reasons(sql, options) if "too large to broadcast" in r]
    assert found
    assert all(r.endswith("KiB > 1,000 B") for r in found)


def test_an_exchange_without_a_reason_gets_one_from_its_kind() -> None:
    scan = ScanExec("t", (Column(1, "a", BIGINT),), ("a",))
    assert "-- rows of equal a must meet" in render_plan(ExchangeExec(scan, "shuffle", (1,), 4))
    assert "-- every task needs all of these rows" in render_plan(ExchangeExec(scan, "broadcast"))
    assert "-- one task needs all of these rows" in render_plan(ExchangeExec(scan, "gather"))


def without_words(stage: Stage) -> Stage:
    output = StageOutput(stage.output.kind, stage.output.keys, stage.output.num_partitions)
    return Stage(**{**vars_of(stage), "output": output, "operator_rows": (), "operator_bytes": ()})


def vars_of(stage: Stage) -> dict[str, Any]:
    return {name: getattr(stage, name) for name in Stage.__dataclass_fields__}


def test_reasons_and_estimates_enter_no_hash() -> None:
    for stage in tpch_graph("q05", FORCED).stages:
        assert without_words(stage).plan_hash == stage.plan_hash


@pytest.mark.parametrize("name", NAMES)
def test_every_operator_has_an_estimate(name: str) -> None:
    for stage in tpch_graph(name, FORCED).stages:
        count = len(list(walk(stage.fragment)))
        assert len(stage.operator_rows) == len(stage.operator_bytes) == count
        assert stage.operator_rows[0] == stage.estimated_rows


# ---------------------------------------------------------------- phases

JOIN = (
    "SELECT city, count(*) AS n FROM orders JOIN customers c ON customer = c.id "
    "WHERE total > (SELECT avg(total) FROM orders) GROUP BY city ORDER BY n"
)


def test_all_phases_are_shown_in_one_text() -> None:
    phases = plan_phases(JOIN, SALES, LARGE)
    assert list(phases.plans) == ["logical", "optimized", "physical"]
    text = render_phases({**phases.plans, "stages": phases.graph}, sizes=phases.sizes)
    heads = [line for line in text.splitlines() if line.startswith("== ")]
    assert heads == [
        "== Logical plan ==", "== Optimized plan ==", "== Physical plan ==", "== Stages ==",
    ]  # fmt: skip
    physical = text.split("== Physical plan ==")[1].split("== Stages ==")[0]
    exchanges = [line for line in physical.splitlines() if "ExchangeExec" in line]
    assert exchanges
    assert all(" -- " in line and " row" in line for line in exchanges)


def test_phases_as_data_have_the_form_of_the_seed() -> None:
    phases = plan_phases(JOIN, SALES, LARGE)
    shown = {**phases.plans, "stages": phases.graph}
    as_json = json.loads(render_phases(shown, "json", sizes=phases.sizes))
    documents = list(yaml.safe_load_all(render_phases(shown, "yaml", sizes=phases.sizes)))
    assert documents == list(as_json.values())
    sort = as_json["optimized"]["Sort"]
    assert sort["keys"] == ["n"]
    assert sort["estimated_rows"] > 0
    assert set(sort["child"]) == {"Project"}
    # A leaf or an operator of which nothing is said has no mapping below it.
    logical = json.loads(
        render_phases({"logical": plan_phases("SELECT 1", SALES).plans["logical"]}, "json")
    )
    assert logical == {"Project": {"expr": ["1"], "child": "OneRow"}}


def test_subqueries_have_a_key_of_their_own() -> None:
    logical = plan_phases(JOIN, SALES, LARGE).plans["logical"]
    text = render_phases({"logical": logical}, "yaml")
    assert "subquery 1:" in text or '"subquery 1":' in text
    assert "avg(total)" in text


@pytest.mark.parametrize("kind", ["mermaid", "dot"])
@pytest.mark.parametrize("phase", ["logical", "optimized", "physical"])
def test_diagrams_of_a_phase_have_all_operators(kind: str, phase: Any) -> None:
    phases = plan_phases(JOIN, SALES, LARGE)
    plan = phases.plans[phase]
    text = render_phases({phase: plan}, kind, sizes=phases.sizes)
    lines = render_plan(plan).splitlines()
    arrow = " -->" if kind == "mermaid" else " -> "
    assert text.count(arrow) == len(lines) - 1
    assert f"op{len(lines) - 1}" in text
    with pytest.raises(OptionError, match="shows one plan at a time"):
        render_phases({"logical": plan, "optimized": plan}, kind)


def test_details_add_the_sql_and_the_engine() -> None:
    graph = tpch_graph("q03", FORCED)
    brief, details = render_graph(graph), render_graph(graph, details=True)
    assert "SQL:" not in brief
    assert details.count("SQL:") == len(graph.stages)
    assert details.count("-- duckdb: every expression is proven") == len(graph.stages)


# ---------------------------------------------------------------- the statement


@pytest.mark.parametrize(
    ("sql", "mode", "rest"),
    [
        ("EXPLAIN SELECT 1", "simple", "SELECT 1"),
        ("explain formatted select 1", "formatted", "select 1"),
        ("-- say why\n/* two\nlines */ EXPLAIN\n  EXTENDED\nSELECT 1", "extended", "SELECT 1"),
        ("EXPLAIN COST WITH a AS (SELECT 1) SELECT * FROM a", "cost", "WITH a AS"),
        ("EXPLAIN -- now\n(SELECT 1)", "simple", "(SELECT 1)"),
    ],
)
def test_explain_is_told_from_its_query(sql: str, mode: str, rest: str) -> None:
    found = split_explain(sql)
    assert found is not None
    assert found.mode == mode
    assert len(found.sql) == len(sql)
    assert found.sql.find(rest) == sql.find(rest)
    assert found.sql.count("\n") == sql.count("\n")
    assert "explain" not in found.sql.lower()


@pytest.mark.parametrize(
    "sql", ["SELECT 1", "explained", "-- EXPLAIN\nSELECT 1", "/* EXPLAIN */ SELECT 'EXPLAIN'", ""]
)
def test_other_text_is_no_explain(sql: str) -> None:
    assert split_explain(sql) is None


@pytest.mark.parametrize("word", ["CODEGEN", "analyze"])
def test_what_explain_cannot_do_names_its_place(word: str) -> None:
    with pytest.raises(UnsupportedSqlError, match=f"EXPLAIN {word.upper()}") as caught:
        split_explain(f"-- a\nEXPLAIN\n  {word} SELECT 1")
    assert (caught.value.line, caught.value.column) == (3, 3)


# ---------------------------------------------------------------- files


def test_a_file_of_format_version_1_is_read() -> None:
    graph = tpch_graph("q03", FORCED)
    body = json.loads(dump_graph(graph))
    body.pop("checksum")
    body["format_version"] = 1
    for stage in body["graph"]["stages"]:
        del stage["operator_rows"], stage["operator_bytes"], stage["output"]["reason"]
    old = load_graph(json.dumps(body))
    assert old.plan_hash == graph.plan_hash
    assert old.stages[0].output == graph.stages[0].output
    text = render_graph(old)
    assert "-- shuffle" not in text
    assert "ScanExec: table=lineitem" in text


def damaged(change: str) -> str:
    """The file of a plan with one thing wrong in it."""
    body = json.loads(dump_graph(tpch_graph("q03", FORCED)))
    body.pop("checksum")
    stage = body["graph"]["stages"][0]
    match change:
        case "file":
            body["extra"] = 1
        case "graph":
            body["graph"]["extra"] = 1
        case "stage":
            stage["extra"] = 1
        case "operator":
            stage["fragment"]["extra"] = 1
        case "column":
            stage["schema"][0]["extra"] = 1
        case "type":
            stage["schema"][0]["dtype"]["extra"] = 1
        case "unknown type":
            stage["schema"][0]["dtype"] = {"type": "tensor"}
        case "missing":
            del stage["branches"]
        case "node":
            stage["fragment"]["node"] = "TeleportExec"
        case "order":
            stage["stage_id"] = 4
        case "version":
            body["format_version"] = FORMAT_VERSION + 1
        case "text version":
            body["format_version"] = str(FORMAT_VERSION)
        case "nothing":
            del body["graph"]
    return json.dumps(body)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("file", "unknown field 'extra'"),
        ("graph", "StageGraph with the unknown field 'extra'"),
        ("stage", "Stage with the unknown field 'extra'"),
        ("operator", "ProjectionExec with the unknown field 'extra'"),
        ("column", "Field with the unknown field 'extra'"),
        ("type", "unknown object with"),
        ("unknown type", "unknown type 'tensor'"),
        ("missing", "it has no field 'branches'"),
        ("node", "unknown node 'TeleportExec'"),
        ("order", "out of order"),
        ("version", f"format version {FORMAT_VERSION + 1}.*use a newer Stagecoach"),
        ("text version", "format version"),
        ("nothing", "not contain a stage graph"),
    ],
)
def test_nothing_unknown_passes_silently(change: str, message: str) -> None:
    assert isinstance(load_graph(damaged("")), StageGraph)
    with pytest.raises(GraphFormatError, match=message):
        load_graph(damaged(change))


def test_every_class_of_a_fragment_can_be_stored() -> None:
    never = {ExchangeExec, SharedScanExec, PhysicalPlan, Expression}
    never |= subclasses(SubqueryExpression)
    nodes = {*subclasses(PhysicalPlan), *subclasses(Expression)} - never
    ours = {
        c for c in nodes if c.__module__.startswith("stagecoach.planner.") and c.__name__[0] != "_"
    }
    missing = {c.__name__ for c in ours} - {c.__name__ for c in STORED}
    assert not missing, "add it to stagecoach.planner.plan.serde._CLASSES"


def subclasses(base: type) -> set[type]:
    return {base, *(d for c in base.__subclasses__() for d in subclasses(c))}


def test_notes_of_a_compiled_plan_are_beside_the_graph() -> None:
    graph = tpch_graph("q06")
    text = dump_graph(graph, compiled={"options": {"engine": "auto"}})
    assert load_graph(text) == graph
    assert parse_file(text).compiled == {"options": {"engine": "auto"}}
    assert parse_file(dump_graph(graph)).compiled == {}


# ---------------------------------------------------------------- places of mistakes


@pytest.mark.parametrize(
    ("sql", "line", "column"),
    [
        ("SELECT\n  'abc", 2, 3),
        ("SELECT 1,\n `x", 2, 2),
        ("SELECT 1\n  /* a", 2, 3),
    ],
)
def test_text_that_never_ends_names_where_it_begins(sql: str, line: int, column: int) -> None:
    with pytest.raises(ParseError, match="what begins here has no closing") as caught:
        plan_query(sql, SALES)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_a_second_statement_has_a_place() -> None:
    with pytest.raises(ParseError, match="found 2 statements") as caught:
        plan_query("SELECT 1;\n\nSELECT 2", SALES)
    assert caught.value.line == 3
