"""What plans look like: every node has a text, every format holds the same graph."""

from __future__ import annotations

import dataclasses
import inspect
import json
from types import ModuleType

import pytest
import yaml

from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.errors import OptionError
from stagecoach.planner.explain.display import render_graph, render_plan
from stagecoach.planner.explain.mermaid import plan_mermaid
from stagecoach.planner.explain.plan_data import plan_data
from stagecoach.planner.functions import REGISTRY
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan import expressions, logical, physical, subqueries
from stagecoach.planner.plan.expression_text import ExpressionText
from stagecoach.planner.plan.expressions import (
    TRUE,
    AggregateCall,
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    Parameter,
    SortKey,
    call,
)
from stagecoach.planner.plan.logical import LogicalPlan
from stagecoach.planner.plan.physical import PhysicalPlan
from stagecoach.planner.plan.stages import ParameterSpec, StageGraph
from stagecoach.planner.plan.subqueries import (
    Exists,
    InSubquery,
    ScalarSubquery,
    SubqueryExpression,
)
from stagecoach.planner.planning import plan_query, plan_until
from stagecoach.planner.text.yaml_text import to_yaml
from stagecoach.planner.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, decimal
from tests.planner.catalogs import SALES
from tests.planner.tpch import FORCED, NAMES, tpch_graph

A, B = Column(1, "a", BIGINT), Column(2, "b", BIGINT)
KEY = SortKey(A.ref)
COUNT = AggregateCall(BIGINT, "count", ())


def concrete(module: ModuleType, base: type) -> set[type]:
    """The classes of a module that plans are made of: those that are no private bases."""
    found = {c for _, c in inspect.getmembers(module, inspect.isclass) if issubclass(c, base)}
    return {c for c in found if c is not base and not c.__name__.startswith("_")}


LOGICAL: list[LogicalPlan] = [
    row := logical.OneRow(),
    scan := logical.Scan("t", (A, B), ("a", "b")),
    logical.Filter(scan, TRUE),
    logical.Project(scan, ((A, A.ref),)),
    logical.Aggregate(scan, ((A, A.ref),), ((B, COUNT),)),
    logical.Sort(scan, (KEY,)),
    logical.Limit(scan, 3, 2),
    logical.Join(scan, row, "cross", TRUE),
    logical.Union((scan, scan), (A, B)),
]
PHYSICAL: list[PhysicalPlan] = [
    one := physical.OneRowExec(),
    scan_exec := physical.ScanExec("t", (A, B), ("a", "b")),
    physical.StageInputExec(4, "shuffle", (A, B)),
    physical.FilterExec(scan_exec, TRUE),
    physical.ProjectionExec(scan_exec, ((A, A.ref),)),
    physical.AggregateExec(scan_exec, "partial", ((A, A.ref),), ((B, COUNT),)),
    physical.SortExec(scan_exec, (KEY,), 3),
    physical.SortPreservingMergeExec(scan_exec, (KEY,), None),
    physical.LimitExec(scan_exec, None, 2),
    physical.HashJoinExec(scan_exec, one, "inner", (A.ref,), (A.ref,), TRUE),
    physical.UnionExec((scan_exec,), (A, B)),
    physical.ExchangeExec(scan_exec, "shuffle", (1,), 7),
]
EXPRESSIONS: list[Expression] = [
    A.ref,
    Literal(INT, 1),
    Parameter(INT, "p"),
    call("eq", BOOLEAN, A.ref, B.ref),
    Cast(INT, A.ref),
    COUNT,
]
SUBQUERIES: list[Expression] = [
    ScalarSubquery(INT, row),
    Exists(BOOLEAN, row),
    InSubquery(BOOLEAN, scan, (A.ref, B.ref)),
]


@pytest.mark.parametrize(
    ("module", "base", "samples"),
    [
        (logical, LogicalPlan, LOGICAL),
        (physical, PhysicalPlan, PHYSICAL),
        (expressions, Expression, EXPRESSIONS),
        (subqueries, Expression, SUBQUERIES),
    ],
    ids=["logical", "physical", "expressions", "subqueries"],
)
def test_samples_are_of_all_node_classes(
    module: ModuleType, base: type, samples: list[object]
) -> None:
    # A class that comes later is described by its fields; these have words of their own.
    assert {type(s) for s in samples} <= concrete(module, base)


@pytest.mark.parametrize("plan", [*LOGICAL, *PHYSICAL], ids=lambda p: type(p).__name__)
def test_every_operator_has_a_text(plan: LogicalPlan | PhysicalPlan) -> None:
    head = render_plan(plan).splitlines()[0]
    wanted = "[Stage 4]" if isinstance(plan, physical.StageInputExec) else type(plan).__name__
    assert head.startswith(wanted)


@pytest.mark.parametrize("expr", [*EXPRESSIONS, *SUBQUERIES], ids=lambda e: type(e).__name__)
def test_every_expression_has_a_text(expr: Expression) -> None:
    assert ExpressionText({1: "a", 2: "b"})(expr)


@dataclasses.dataclass(frozen=True)
class Range:
    """A value of a node, neither expression nor plan."""

    low: int
    high: Expression


@dataclasses.dataclass(frozen=True)
class OddExec(PhysicalPlan):
    """A node that the renderers have never heard of."""

    child: PhysicalPlan
    test: Expression
    made: tuple[tuple[Column, Expression], ...]
    order: tuple[SortKey, ...]
    outputs: tuple[Column, ...]
    rows: tuple[tuple[Expression, ...], ...]
    span: Range
    name: str = "plain"
    outer: bool = False
    count: int | None = None

    @property
    def children(self) -> tuple[PhysicalPlan, ...]:
        return (self.child,)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.outputs


@dataclasses.dataclass(frozen=True)
class OddExpression(Expression):
    """An expression that the renderers have never heard of."""

    args: tuple[Expression, ...]

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.args


def odd(rows: int) -> OddExec:
    return OddExec(
        child=scan_exec,
        test=TRUE,
        made=((B, call("add", BIGINT, A.ref, A.ref)),),
        order=(SortKey(A.ref, ascending=False),),
        outputs=(A, B),
        rows=tuple((Literal(INT, i), A.ref) for i in range(rows)),
        span=Range(1, A.ref),
        outer=True,
    )


def test_an_unknown_node_is_described_by_its_fields() -> None:
    head = render_plan(odd(2)).splitlines()[0]
    assert head == (
        "OddExec: made=[a + a AS b], order=[a DESC NULLS FIRST], columns=[a, b], "
        "rows=[(0, a), (1, a)], span=(low=1, high=a), outer=true"
    )
    assert "(4, a), … 995 more]" in render_plan(odd(1000))
    data = plan_data(odd(1))["OddExec"]  # type: ignore[index]  # an operator with parts
    assert data["made"] == ["a + a AS b"]
    assert list(data["child"]) == ["ScanExec"]
    assert 'op0["OddExec<br/>made=[a + a AS b]<br/>' in plan_mermaid(odd(1))
    assert ExpressionText({1: "a"})(OddExpression(INT, (A.ref, TRUE))) == "OddExpression(a, true)"
    assert ExpressionText({})(SubqueryExpression(INT, row)) == "SubqueryExpression(subquery)"


@pytest.mark.parametrize("name", REGISTRY)
def test_every_function_has_a_text(name: str) -> None:
    fewest, most = REGISTRY[name].arity
    for count in {fewest, min(most, fewest + 2)}:
        args = tuple(Column(i, f"x{i}", INT).ref for i in range(count))
        text = ExpressionText({i: f"x{i}" for i in range(count)})(Call(INT, name, args))
        assert all(f"x{i}" in text for i in range(count)), text


def add(*args: Expression) -> Call:
    return call("add", BIGINT, *args)


def subtract(*args: Expression) -> Call:
    return call("subtract", BIGINT, *args)


def both(*args: Expression) -> Call:
    return call("and", BOOLEAN, *args)


def either(*args: Expression) -> Call:
    return call("or", BOOLEAN, *args)


def equal(*args: Expression) -> Call:
    return call("eq", BOOLEAN, *args)


X, Y = A.ref, B.ref
NEGATIVE = Literal(INT, -3)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (subtract(X, subtract(Y, X)), "a - (b - a)"),
        (subtract(subtract(X, Y), X), "a - b - a"),
        (call("multiply", BIGINT, add(X, Y), X), "(a + b) * a"),
        (add(call("multiply", BIGINT, X, Y), X), "a * b + a"),
        (call("divide", DOUBLE, X, call("multiply", BIGINT, X, Y)), "a / (a * b)"),
        (both(either(equal(X, Y), TRUE), TRUE), "(a = b OR true) AND true"),
        (either(both(equal(X, Y), TRUE), TRUE), "a = b AND true OR true"),
        (equal(equal(X, Y), TRUE), "(a = b) = true"),
        (call("not", BOOLEAN, both(TRUE, TRUE)), "NOT (true AND true)"),
        (call("not", BOOLEAN, equal(X, Y)), "NOT a = b"),
        (call("is_null", BOOLEAN, add(X, Y)), "a + b IS NULL"),
        (call("is_null", BOOLEAN, equal(X, Y)), "(a = b) IS NULL"),
        (call("negate", BIGINT, add(X, Y)), "-(a + b)"),
        (call("negate", BIGINT, NEGATIVE), "-(-3)"),
        (subtract(X, NEGATIVE), "a - -3"),
        (Cast(INT, add(X, Y)), "(a + b)::int"),
        (Cast(INT, Cast(STRING, X)), "a::string::int"),
        (Cast(INT, NEGATIVE), "(-3)::int"),
        (Cast(INT, X, safe=True), "TRY_CAST(a AS int)"),
        (call("case", INT, equal(X, Y), X, Y), "CASE WHEN a = b THEN a ELSE b END"),
        (call("in", BOOLEAN, X, Literal(INT, 1), Literal(INT, 2)), "a IN (1, 2)"),
        (Literal(STRING, "it's\n\x1b[31m"), "'it''s\\n\\x1b[31m'"),
        (Literal(BIGINT, 5), "5L"),
        (Literal(decimal(3, 0), "5"), "5BD"),
        (Literal(decimal(3, 1), "5.0"), "5.0"),
        (Literal(STRING, None), "NULL::string"),
        (AggregateCall(BIGINT, "count", (X,), True, equal(X, Y)), "count(DISTINCT a) FILTER (WHERE a = b)"),
    ],
)  # fmt: skip
def test_text_needs_no_more_parentheses_than_the_meaning(expr: Expression, text: str) -> None:
    assert ExpressionText({1: "a", 2: "b"})(expr) == text


@pytest.mark.parametrize(
    ("ascending", "nulls_first", "text"),
    [
        (True, True, "a"),
        (True, False, "a NULLS LAST"),
        (False, False, "a DESC"),
        (False, True, "a DESC NULLS FIRST"),
    ],
)
def test_null_order_shows_where_it_is_not_sparks_default(
    ascending: bool, nulls_first: bool, text: str
) -> None:
    assert ExpressionText({1: "a"}).sort_key(SortKey(X, ascending, nulls_first)) == text


def test_columns_of_the_same_name_show_their_number() -> None:
    plan = plan_until(
        "SELECT o.id, c.id FROM orders o JOIN customers c ON o.id = c.id", SALES, "logical"
    )
    assert isinstance(plan, LogicalPlan)
    assert "on=id#0 = id#5" in render_plan(plan)
    assert "name#" not in render_plan(plan)


def test_columns_of_an_outer_query_are_told_from_those_of_the_subquery() -> None:
    sql = "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM customers c WHERE c.id = o.id)"
    plan = plan_until(sql, SALES, "logical")
    assert isinstance(plan, LogicalPlan)
    text = render_plan(plan)
    assert "Filter: EXISTS (subquery 1)\n    Subquery 1:\n      Project" in text
    assert "Filter: id#5 = id#0" in text


# ---------------------------------------------------------------- graphs


def test_a_stage_with_several_consumers_is_drawn_once() -> None:
    text = render_graph(tpch_graph("q15", FORCED))
    graph = tpch_graph("q15", FORCED)
    shared = [s.stage_id for s in graph.stages if len(graph.consumers(s.stage_id)) > 1]
    assert shared
    for stage_id in shared:
        assert text.count(f"┌───── Stage {stage_id} ") == 1
        assert f"(Stage {stage_id}: see above)" in text


@pytest.mark.parametrize("name", NAMES)
def test_every_stage_is_drawn_below_its_consumer(name: str) -> None:
    graph = tpch_graph(name, FORCED)
    lines = render_graph(graph).splitlines()
    indents = {}
    for line in lines:
        if "┌───── Stage " in line:
            stage_id = int(line.split("Stage ")[1].split()[0])
            indents[stage_id] = line.index("┌")
    assert sorted(indents) == [s.stage_id for s in graph.stages]
    assert indents[graph.head.stage_id] == 0
    for stage in graph.stages[:-1]:
        assert indents[stage.stage_id] - 2 in {indents[c] for c in graph.consumers(stage.stage_id)}


@pytest.mark.parametrize("name", NAMES)
def test_yaml_holds_the_same_as_json(name: str) -> None:
    graph = tpch_graph(name, FORCED)
    assert yaml.safe_load(render_graph(graph, "yaml")) == json.loads(render_graph(graph, "json"))


def test_json_says_what_each_stage_does() -> None:
    data = json.loads(render_graph(tpch_graph("q03", FORCED), "json"))
    assert list(data) == ["format_version", "query", "fallback_reason", "result", "stages"]
    assert (data["format_version"], data["query"], data["fallback_reason"]) == (2, "q03", None)
    assert data["result"][1] == {"name": "revenue", "type": "decimal(38,4)"}
    leaf = data["stages"][0]
    assert leaf["tables"] == ["lineitem"]
    assert leaf["inputs"] == []
    assert leaf["output"] == {
        "kind": "shuffle",
        "keys": ["l_orderkey"],
        "num_partitions": 4,
        "reason": "join keys l_orderkey = o_orderkey are hashed: neither side is partitioned by them",
    }
    assert leaf["schema"][0] == {"name": "l_orderkey", "type": "bigint"}
    assert leaf["sql"].startswith("SELECT CAST(c0 AS BIGINT) AS c0")
    assert list(leaf["plan"]) == ["ProjectionExec"]
    scan = leaf["plan"]["ProjectionExec"]["child"]["FilterExec"]["child"]["ScanExec"]
    assert (scan["table"], scan["estimated_rows"]) == ("lineitem", 60_057_200)
    assert len(leaf["plan_hash"]) == 64
    assert leaf["estimated_rows"] > 1_000_000
    assert data["stages"][-1]["inputs"] == [4]


def test_parameters_stay_by_name_in_the_shown_sql() -> None:
    graph = plan_query(
        "SELECT id FROM orders WHERE total > :least AND day = current_date()",
        SALES,
        parameters=(ParameterSpec("least", decimal(12, 2)),),
    )
    (sql,) = [s["sql"] for s in json.loads(render_graph(graph, "json"))["stages"] if s["tables"]]
    assert ":least" in sql
    assert ":@date" in sql
    assert ":least" in render_graph(graph, "text")


def whole_query() -> StageGraph:
    sql = (
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3)\n"
        "SELECT name,\n       n\nFROM customers, r"
    )
    return plan_query(sql, SALES, name="ranks")


def test_a_query_that_is_not_staged_shows_its_text_and_the_reason() -> None:
    graph = whole_query()
    text = render_graph(graph)
    assert graph.fallback_reason is not None
    assert f"not staged: {graph.fallback_reason}" in text
    assert "│ SparkSqlExec:\n│   WITH RECURSIVE" in text
    assert "│   SELECT name,\n│          n\n│   FROM customers, r" in text
    data = json.loads(render_graph(graph, "json"))
    assert data["stages"][0]["sql"] == graph.sql
    assert data["stages"][0]["tables"] == ["customers"]
    assert yaml.safe_load(render_graph(graph, "yaml")) == data


def test_a_stage_on_spark_shows_why() -> None:
    odd = dataclasses.replace(SALES.table("customers"), native_reason="its files are odd")  # type: ignore[type-var]  # it is there
    graph = plan_query("SELECT name FROM customers", MappingCatalog([odd]))
    text = render_graph(graph)
    assert "engine=spark" in text
    assert "│ -- spark: table 'customers': its files are odd" in text
    asked = plan_query("SELECT name FROM customers", SALES, PlannerOptions(engine="spark"))
    assert "│ -- spark: asked for by --engine spark" in render_graph(asked)


@pytest.mark.parametrize("kind", ["mermaid", "dot"])
def test_diagrams_have_all_stages_tables_and_exchanges(kind: str) -> None:
    text = render_graph(tpch_graph("q03", FORCED), kind)
    arrow = " -> " if kind == "dot" else " --> "
    assert text.startswith("digraph" if kind == "dot" else "flowchart")
    for stage in tpch_graph("q03", FORCED).stages:
        assert f"Stage {stage.stage_id} · duckdb" in text
    for table in ("customer", "lineitem", "orders"):
        assert f'"{table}"' in text
    assert "shuffle(o_orderkey) × 4" in text
    assert f"stage5{arrow}result" in text


def test_diagrams_survive_names_with_quotes_and_markup() -> None:
    catalog = MappingCatalog([SALES.table("customers")])  # type: ignore[list-item]  # it is there
    sql = 'SELECT name AS `a"b<c>|#`, count(*) AS n FROM customers GROUP BY 1'
    forced = PlannerOptions(force_distribution=True)
    graph = plan_query(sql, catalog, forced, name='say "hi"\\')
    mermaid, dot = render_graph(graph, "mermaid"), render_graph(graph, "dot")
    assert dot.startswith('digraph "say \\"hi\\"\\\\" {')
    for line in mermaid.splitlines():
        assert line.count('"') in (0, 2)
    assert "<c>" not in mermaid


def test_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(OptionError, match="'html'; there are text, json, yaml, mermaid, dot"):
        render_graph(tpch_graph("q03"), "html")


# ---------------------------------------------------------------- YAML


@pytest.mark.parametrize(
    "data",
    [
        {},
        [],
        {"a": {}, "b": [], "c": None, "d": True, "e": -3, "f": 1.5},
        {"list": ["x", ["y", []], {"z": 1, "w": {"v": [{}]}}]},
        ["", " ", "yes", "NO", "null", "1", "1.0", "0x1", "~", "- a", "a: b", "a #b", "@x", "%y"],
        ["line\nline", "ends\n", "\nstarts", " indented\nx", "tab\there", "trailing \nx", "a\n\nb"],
        [
            "'q'",
            '"q"',
            "back\\slash",
            "unicode ⋈ 😀",
            "\x00\x1b\x7f\x85\xa0\u2028\ufeff",
            "---\n...",
        ],
        {"key with: colon": 1, "yes": 2, "": 3, "- x": 4},
        "just text",
        {"sql": "SELECT 1\n  FROM t\n WHERE x = 'a: b # c'"},
    ],
)
def test_yaml_loads_back_to_the_same_data(data: object) -> None:
    assert yaml.safe_load(to_yaml(data)) == data  # type: ignore[arg-type]  # plain data
