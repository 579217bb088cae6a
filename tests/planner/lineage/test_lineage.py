"""Where columns come from: by hand, against sqlglot, and laws that hold for any query."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlglot import exp
from sqlglot.lineage import lineage as sqlglot_lineage

from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.errors import OptionError
from stagecoach.planner.explain.lineage import lineage_markdown, render_lineage
from stagecoach.planner.lineage import Lineage, Source, StageColumn, TableColumn, graph_lineage
from stagecoach.planner.lineage import graph as graph_module
from stagecoach.planner.lineage.operators import trace
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan import logical, physical
from stagecoach.planner.plan.expressions import TRUE, Column
from stagecoach.planner.plan.serde import dump_graph, load_graph
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query, plan_until
from stagecoach.planner.types import BIGINT
from tests.differential.query_grammar import QueryGrammar
from tests.planner.catalogs import SALES, table
from tests.planner.tpch import DEFAULT, FORCED, NAMES, query_text, sf10_catalog, tpch_graph

GOLDEN = Path(__file__).parents[2] / "golden" / "lineage"
DETAILED = ("q03", "q18")
SINGLE = PlannerOptions(single_task_bytes=1 << 60)
SEVEN = PlannerOptions(force_distribution=True, num_partitions=7, broadcast_bytes=0)
RECURSIVE = (
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) "
    "SELECT n, status FROM r JOIN orders ON n = id"
)


def result_of(sql: str, options: PlannerOptions = FORCED) -> Lineage:
    return graph_lineage(plan_query(sql, SALES, options)).result


def values(lineage: Lineage) -> list[tuple[str, list[str]]]:
    return [(c.name, sorted(str(s) for s in c.values)) for c in lineage.columns]


def roles(lineage: Lineage) -> set[str]:
    return {f"{source} {role}" for source, role in lineage.rows}


def own_roles(lineage: Lineage, position: int) -> set[str]:
    return {f"{source} {role}" for source, role in lineage.columns[position].deciders}


def sources(lineage: Lineage) -> list[tuple[frozenset[Source], frozenset[Source]]]:
    """Of each column what its values come from and what decides on its rows, in whatever role.

    A plan may, say, drop duplicates below a join or not, which is a role of the join's keys more.
    """
    rows = frozenset(source for source, _ in lineage.rows)
    return [(c.values, rows | {source for source, _ in c.deciders}) for c in lineage.columns]


# ---------------------------------------------------------------- TPC-H


@pytest.mark.parametrize("name", NAMES)
def test_lineage_is_the_golden_one(name: str, golden: Callable[[str, str], None]) -> None:
    """Those of q01, q03, q05, q13, q18 and q21 were compared with their SQL by hand."""
    graph = tpch_graph(name, FORCED)
    golden(f"lineage/{name}.txt", render_lineage(graph, details=name in DETAILED))


def test_every_golden_file_belongs_to_a_query() -> None:
    assert {file.name for file in GOLDEN.iterdir()} == {f"{name}.txt" for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_that_sqlglot_finds(name: str) -> None:
    catalog = sf10_catalog()
    schema = {
        table: {field.name: str(field.dtype) for field in found.columns}
        for table in catalog.table_names()
        if (found := catalog.table(table)) is not None
    }
    for column in graph_lineage(tpch_graph(name)).result.columns:
        if "(" in column.name:
            continue  # sqlglot gives it another name
        root = sqlglot_lineage(column.name, query_text(name), schema=schema, dialect="spark")
        wanted = {
            f"{node.expression.name}.{node.name.split('.')[-1]}"
            for node in root.walk()
            if not node.downstream and isinstance(node.expression, exp.Table)
        }
        assert {str(source) for source in column.values} == wanted


# ---------------------------------------------------------------- by hand

CASES: dict[str, tuple[str, list[tuple[str, list[str]]], set[str]]] = {
    "expressions": (
        "SELECT CASE WHEN status = 'a' THEN total ELSE id END AS x, 1 AS one, id FROM orders",
        [("x", ["orders.id", "orders.status", "orders.total"]), ("one", []), ("id", ["orders.id"])],
        set(),
    ),
    "filters": (
        "SELECT id FROM orders WHERE total > 5 AND day IS NOT NULL",
        [("id", ["orders.id"])],
        {"orders.total filter", "orders.day filter"},
    ),
    "groups": (
        "SELECT status, sum(total) AS t, count(*) AS n FROM orders GROUP BY status, day",
        [("status", ["orders.status"]), ("t", ["orders.total"]), ("n", [])],
        {"orders.status group", "orders.day group"},
    ),
    "distinct counts": (
        "SELECT status, count(DISTINCT customer) AS n FROM orders GROUP BY status",
        [("status", ["orders.status"]), ("n", ["orders.customer"])],
        {"orders.status group"},
    ),
    "merged columns of full joins": (
        "SELECT id, name, label FROM customers FULL OUTER JOIN products USING (id)",
        [
            ("id", ["customers.id", "products.id"]),
            ("name", ["customers.name"]),
            ("label", ["products.label"]),
        ],
        {"customers.id join", "products.id join"},
    ),
    "semi and anti joins": (
        "SELECT name FROM customers c LEFT SEMI JOIN orders o ON c.id = o.customer AND o.total > 1 "
        "LEFT ANTI JOIN products p ON c.rating = p.weight",
        [("name", ["customers.name"])],
        {
            "customers.id join",
            "orders.customer join",
            "orders.total filter",
            "customers.rating join",
            "products.weight join",
        },
    ),
    "orders and limits": (
        "SELECT id FROM orders ORDER BY total DESC LIMIT 3",
        [("id", ["orders.id"])],
        {"orders.total sort"},
    ),
    "unions": (
        "SELECT id, status FROM orders UNION ALL SELECT product, note FROM lines WHERE price > 1",
        [("id", ["lines.product", "orders.id"]), ("status", ["lines.note", "orders.status"])],
        {"lines.price filter"},
    ),
    "the same rows twice": (
        "WITH t AS (SELECT customer, sum(total) AS s FROM orders GROUP BY customer) "
        "SELECT customer AS a FROM t UNION ALL SELECT s FROM t",
        [("a", ["orders.customer", "orders.total"])],
        {"orders.customer group"},
    ),
    "rollup": (
        "SELECT status, day, grouping(day) AS g, max(total) AS m FROM orders "
        "GROUP BY ROLLUP (status, day)",
        [
            ("status", ["orders.status"]),
            ("day", ["orders.day"]),
            ("g", []),
            ("m", ["orders.total"]),
        ],
        {"orders.status group", "orders.day group"},
    ),
    "generators": (
        "SELECT flag, tag FROM odd LATERAL VIEW explode(tags) AS tag",
        [("flag", ["odd.flag"]), ("tag", ["odd.tags"])],
        {"odd.tags generate"},
    ),
    "lambdas": (
        "SELECT transform(tags, x -> concat(x, CAST(moment AS string))) AS t FROM odd",
        [("t", ["odd.moment", "odd.tags"])],
        set(),
    ),
    "values and ranges": (
        "SELECT a, id FROM VALUES (1, 'x') AS t(a, b) CROSS JOIN range(3)",
        [("a", []), ("id", [])],
        set(),
    ),
    "scalar subqueries": (
        "SELECT id, (SELECT max(price) FROM lines l WHERE l.order_id = o.id) AS m FROM orders o",
        [("id", ["orders.id"]), ("m", ["lines.price"])],
        {"orders.id join", "lines.order_id join", "lines.order_id group"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_lineage_by_hand(case: tuple[str, list[tuple[str, list[str]]], set[str]]) -> None:
    sql, wanted, rows = case
    for options in (FORCED, SINGLE):
        found = result_of(sql, options)
        assert values(found) == wanted
        assert roles(found) == rows


def test_keys_of_a_window_decide_on_its_column_alone() -> None:
    found = result_of(
        "SELECT id, sum(total) OVER (PARTITION BY status ORDER BY day) AS s FROM orders"
    )
    assert values(found) == [("id", ["orders.id"]), ("s", ["orders.total"])]
    assert own_roles(found, 0) == set()
    assert own_roles(found, 1) == {"orders.status window", "orders.day window"}
    assert roles(found) == set()


def test_a_filter_on_a_window_decides_on_all_rows() -> None:
    found = result_of(
        "SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY status ORDER BY day) AS r "
        "FROM orders) WHERE r <= 3"
    )
    assert roles(found) == {"orders.status window", "orders.day window"}


def test_the_filter_of_an_aggregate_decides_on_its_column_alone() -> None:
    sql = "SELECT status, sum(total) FILTER (WHERE day > DATE'2024-01-01') AS s FROM orders GROUP BY 1"
    for options in (FORCED, SINGLE):
        found = result_of(sql, options)
        assert own_roles(found, 0) == set()
        assert own_roles(found, 1) == {"orders.day filter"}
        assert roles(found) == {"orders.status group"}


def test_a_stage_names_the_columns_of_the_stages_that_it_reads() -> None:
    graph = tpch_graph("q03", FORCED)
    own = graph_lineage(graph).stages
    assert {type(source) for source in own[0].sources} == {TableColumn}
    assert {type(source) for source in own[4].sources} == {StageColumn}
    revenue = own[4].columns[1]
    assert revenue.name == "revenue"
    names = {
        (s.stage_id, graph.stages[s.stage_id].schema[s.position].name)
        for s in revenue.values
        if isinstance(s, StageColumn)
    }
    assert names == {(0, "l_extendedprice"), (0, "l_discount")}


def test_a_column_that_the_plan_does_not_read_is_not_in_its_lineage() -> None:
    found = result_of("SELECT id FROM (SELECT id, total, note FROM orders JOIN lines ON id = line)")
    assert not {"orders.total", "lines.note"} & {str(source) for source in found.sources}


# ---------------------------------------------------------------- whole queries on Spark


def test_what_spark_runs_is_analysed_where_its_sql_can_be() -> None:
    sql = "SELECT INTERVAL 1 MONTH * id AS i, EXISTS (SELECT 1 FROM lines WHERE line = id) AS e "
    graph = plan_query(sql + "FROM orders WHERE total > 1", SALES)
    assert graph.fallback_reason is not None
    found = graph_lineage(graph).result
    assert found.unknown is None
    assert values(found) == [("i", ["orders.id"]), ("e", [])]
    assert roles(found) == {"orders.total filter", "orders.id filter", "lines.line filter"}


def test_what_nobody_knows_is_said() -> None:
    graph = plan_query(RECURSIVE, SALES)
    found = graph_lineage(graph).result
    assert found.unknown == "the whole query runs on Spark: recursive CTEs are not staged"
    wanted = {TableColumn("orders", name) for name in ("id", "customer", "total", "status", "day")}
    assert found.sources == wanted
    text = lineage_markdown(found)
    assert text.startswith("unknown: the whole query runs on Spark")
    assert "any column of orders" in text
    for format in ("text", "json", "yaml", "mermaid"):
        assert render_lineage(graph, format)


# ---------------------------------------------------------------- laws

GRAMMAR = MappingCatalog(
    [
        table(
            name,
            "id int; k int; v int; kl bigint; ks string; s string; w decimal(10,2); "
            "kc decimal(10,2); kt date; kb boolean",
        )
        for name in "xyz"
    ]
)


def check_laws(sql: str, catalog: MappingCatalog) -> None:
    graph = plan_query(sql, catalog, SINGLE)
    found = graph_lineage(graph).result
    assert found.unknown is None
    known = {TableColumn(name, f.name) for name, columns in graph.tables for f in columns}
    assert found.sources <= known, "only columns of tables that are read"
    for options in (PlannerOptions(force_distribution=True, num_partitions=2), SEVEN):
        other = plan_query(sql, catalog, options)
        assert sources(graph_lineage(other).result) == sources(found), "however it is distributed"
        assert graph_lineage(load_graph(dump_graph(other))) == graph_lineage(other)
    # Before the optimiser, with subqueries as they stand: the optimiser reads no more than that.
    before = plan_until(sql, catalog, "logical")
    assert isinstance(before, logical.LogicalPlan)
    whole = trace(before)
    assert found.sources <= whole.sources
    for column, unoptimized in zip(found.columns, whole.columns, strict=True):
        assert column.values <= unoptimized.values


@pytest.mark.parametrize("seed", range(0, 40, 10))
def test_laws_hold_for_random_queries(seed: int) -> None:
    for number in range(seed, seed + 10):
        check_laws(QueryGrammar(number).query(), GRAMMAR)


@pytest.mark.parametrize("name", NAMES)
def test_laws_hold_for_tpch(name: str) -> None:
    default, forced = (graph_lineage(tpch_graph(name, o)).result for o in (DEFAULT, FORCED))
    assert sources(default) == sources(forced)
    graph = tpch_graph(name, FORCED)
    assert graph_lineage(load_graph(dump_graph(graph))) == graph_lineage(graph)


def test_the_lineage_of_every_operator_is_known() -> None:
    """A new operator must say where its columns come from."""
    known = {
        "ProjectionExec", "Project", "FilterExec", "Filter", "HashJoinExec", "Join", "AggregateExec",
        "Aggregate", "SortExec", "SortPreservingMergeExec", "Sort", "WindowExec", "Window",
        "UnionExec", "Union", "GenerateExec", "Generate", "ExpandExec", "Expand", "ValuesExec",
        "Values", "RangeExec", "Range", "OneRowExec", "OneRow", "LimitExec", "Limit",
        "RepartitionExec", "Repartition", "BloomBuildExec", "BloomProbeExec",
        "ExchangeExec", "ScanExec", "Scan", "DedupScanExec", "DedupScan", "StageInputExec",
        "SharedScanExec", "SharedScan",
    }  # fmt: skip
    classes = {
        name
        for module in (logical, physical)
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, logical.LogicalPlan | physical.PhysicalPlan)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    } - {"LogicalPlan", "PhysicalPlan"}
    assert classes == known


def test_inputs_of_a_union_may_be_one_exchange() -> None:
    column, out = Column(1, "a", BIGINT), Column(3, "o", BIGINT)
    first = physical.StageInputExec(0, "shuffle", (column,))
    second = physical.StageInputExec(1, "shuffle", (column,))
    found = trace(physical.UnionExec((first, physical.FilterExec(second, TRUE)), (out,)))
    assert found.columns[0].values == {StageColumn(0, 0), StageColumn(1, 0)}


def test_each_stage_is_traced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    traced: list[object] = []

    def counted(plan: Any, *shared: Any) -> Any:
        traced.append(plan)
        return trace(plan, *shared)

    monkeypatch.setattr(graph_module, "trace", counted)
    for name in NAMES:
        graph = load_graph(dump_graph(tpch_graph(name, FORCED)))
        traced.clear()
        graph_lineage(graph)
        assert traced == [stage.fragment for stage in graph.stages]


# ---------------------------------------------------------------- formats


def test_text_json_yaml_and_mermaid() -> None:
    sql = "SELECT status, rank() OVER (ORDER BY day) AS r FROM orders WHERE total > 1"
    graph = plan_query(sql, SALES, FORCED, name="ranks")
    assert render_lineage(graph) == (
        "lineage of ranks\n\n"
        "| column | values come from | rows are chosen by  |\n"
        "|--------|------------------|---------------------|\n"
        "| status | orders.status    |                     |\n"
        "| r      |                  | orders.day (window) |\n\n"
        "rows: orders.total (filter)\n"
    )
    data = json.loads(render_lineage(graph, "json"))
    assert yaml.safe_load(render_lineage(graph, "yaml")) == data
    assert data["result"]["columns"][0] == {
        "name": "status",
        "values": [{"table": "orders", "column": "status"}],
        "deciders": [],
    }
    assert [stage["stage_id"] for stage in data["stages"]] == list(range(len(graph.stages)))
    diagram = render_lineage(graph, "mermaid")
    assert '-. "window" .-> r1' in diagram
    assert diagram.count("subgraph") == diagram.count("\n  end") == 2
    with pytest.raises(OptionError, match="lineage cannot be shown as 'dot'"):
        render_lineage(graph, "dot")


def test_names_are_no_markup() -> None:
    catalog = MappingCatalog([table("t", "a|b bigint; c string")])
    graph = plan_query("SELECT `a|b` AS `x*y` FROM t", catalog)
    line = render_lineage(graph).splitlines()[4]
    assert line == r"| x\*y   | t.a\|b           |                    |"


def test_two_columns_of_one_name_keep_their_lineage() -> None:
    graph: StageGraph = plan_query("SELECT id AS a, total AS a FROM orders", SALES)
    assert values(graph_lineage(graph).result) == [("a", ["orders.id"]), ("a", ["orders.total"])]
