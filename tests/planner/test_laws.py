"""Laws of stage graphs: they survive being written, and their hashes mean what they compute."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.errors import GraphFormatError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.encoding import encode
from stagecoach.planner.plan.expressions import Literal, LiteralValue
from stagecoach.planner.plan.serde import decode, dump_graph, load_graph
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query, plan_until
from stagecoach.planner.types import DOUBLE
from tests.planner.catalogs import SALES, table
from tests.planner.tpch import DEFAULT, FORCED, NAMES, ROOT, query_text, sf10_catalog, tpch_graph

OPTIONS = {"default": DEFAULT, "forced": FORCED, "spark": PlannerOptions(engine="spark")}
HASHES = """
import json, sys
from tests.planner.tpch import FORCED, NAMES, tpch_graph
graphs = [tpch_graph(name, FORCED) for name in NAMES]
print(json.dumps([[g.plan_hash, *(s.plan_hash for s in g.stages)] for g in graphs]))
"""
BASE = "SELECT customer, sum(total) AS spent FROM orders WHERE status = 'open' GROUP BY customer"


def plan(sql: str, options: PlannerOptions = FORCED, **more: Any) -> StageGraph:
    return plan_query(sql, SALES, options, **more)


# ---------------------------------------------------------------- writing and reading


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("name", NAMES)
def test_graph_survives_being_written(name: str, options: PlannerOptions) -> None:
    graph = tpch_graph(name, options)
    loaded = load_graph(dump_graph(graph))
    assert loaded == graph
    assert loaded.plan_hash == graph.plan_hash
    assert [s.plan_hash for s in loaded.stages] == [s.plan_hash for s in graph.stages]
    # Names do not take part in comparisons, but in the text.
    assert dump_graph(loaded) == dump_graph(graph)


@given(value=st.floats() | st.text() | st.integers() | st.booleans() | st.none())
@settings(max_examples=200, deadline=None)
def test_every_literal_survives_being_written(value: LiteralValue) -> None:
    literal = Literal(DOUBLE, value)
    text = json.dumps(encode(literal))
    loaded = decode(json.loads(text))
    assert repr(loaded) == repr(literal)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a compiled plan, or a part of it is missing .*not JSON"),
        ("[]", "not a compiled plan; write it with `stagecoach compile`"),
        ('{"a": 1}', "not a compiled plan"),
        ('{"format_version": 999, "graph": {}}', "format version 999.*compile the query again"),
        ('{"format_version": 1, "graph": {"node": "os.system"}}', "unknown node 'os.system'"),
        ('{"format_version": 1, "graph": {"node": "Stage"}}', "damaged Stage"),
        ('{"format_version": 1, "graph": {"node": "StageOutput", "kind": "gather"}}', "not contain a stage graph"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_graph_is_refused(text: str, message: str) -> None:
    with pytest.raises(GraphFormatError, match=message):
        load_graph(text)


# ---------------------------------------------------------------- hashes


def test_hashes_are_the_same_in_every_process() -> None:
    def run(seed: str) -> list[list[str]]:
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", HASHES], env=environment, capture_output=True, check=True
        )
        return json.loads(done.stdout)

    here = [[g.plan_hash, *(s.plan_hash for s in g.stages)] for g in map(forced, NAMES)]
    assert run("1") == here
    assert run("4242") == here


def forced(name: str) -> StageGraph:
    return tpch_graph(name, FORCED)


def test_hashes_of_all_tpch_queries_differ() -> None:
    hashes = [tpch_graph(name).plan_hash for name in NAMES]
    assert len(set(hashes)) == len(hashes)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT customer, sum(total) AS spent FROM orders o WHERE o.status = 'open' GROUP BY o.customer",
        "select CUSTOMER, SUM(TOTAL) as spent from ORDERS where STATUS = 'open' group by 1",
        f"-- a comment\n{BASE}\n",
    ],
)
def test_stages_hash_alike_however_the_query_is_spelled(sql: str) -> None:
    assert [s.plan_hash for s in plan(sql).stages] == [s.plan_hash for s in plan(BASE).stages]


def test_aliases_change_the_names_of_the_result_and_no_stage() -> None:
    """The names are in the hash of the graph, because Dagster's asset shows them."""
    renamed = plan(BASE.replace("AS spent", "AS total"))
    assert [s.plan_hash for s in renamed.stages] == [s.plan_hash for s in plan(BASE).stages]
    assert renamed.plan_hash != plan(BASE).plan_hash


def test_name_of_the_query_and_estimates_do_not_enter_the_hash() -> None:
    bigger = [table("orders", "id bigint; customer bigint; total decimal(12,2); status string; day date", 9_000_000)]  # fmt: skip
    one, other = plan(BASE, name="one"), plan_query(BASE, MappingCatalog(bigger), FORCED, name="x")
    assert one.stages[0].estimated_rows != other.stages[0].estimated_rows
    assert one.plan_hash == other.plan_hash


@pytest.mark.parametrize(
    "sql",
    [
        BASE.replace("'open'", "'done'"),
        BASE.replace("status = ", "status <> "),
        BASE.replace("sum(total)", "max(total)"),
        BASE.replace("sum(total)", "sum(DISTINCT total)"),
        BASE.replace("sum(total)", "sum(total) FILTER (WHERE id > 1)"),
        BASE.replace("sum(total)", "sum(-total)"),
        BASE.replace("SELECT customer,", "SELECT customer + 1,"),
        BASE.replace("GROUP BY customer", "GROUP BY customer HAVING count(*) > 1"),
        f"{BASE} ORDER BY spent",
        f"{BASE} ORDER BY spent DESC",
        f"{BASE} ORDER BY spent NULLS LAST",
        f"{BASE} LIMIT 5",
        f"{BASE} LIMIT 6",
        f"{BASE} LIMIT 5 OFFSET 1",
        BASE.replace("FROM orders", "FROM orders JOIN customers c ON c.id = customer"),
        BASE.replace("FROM orders", "FROM orders LEFT JOIN customers c ON c.id = customer"),
        BASE.replace("FROM orders", "FROM orders LEFT SEMI JOIN customers c ON c.id = customer"),
        BASE.replace("FROM orders", "FROM orders LEFT ANTI JOIN customers c ON c.id = customer"),
    ],
)
def test_any_other_computation_has_another_hash(sql: str) -> None:
    assert plan(sql).plan_hash != plan(BASE).plan_hash


def test_all_those_computations_differ_from_each_other() -> None:
    marks = test_any_other_computation_has_another_hash.pytestmark  # type: ignore[attr-defined]  # pytest's
    queries = marks[0].args[1]
    assert len({plan(sql).plan_hash for sql in queries}) == len(queries)


@pytest.mark.parametrize(
    "options",
    [
        replace(FORCED, num_partitions=5),
        replace(FORCED, engine="spark"),
        replace(FORCED, time_zone="Europe/Berlin"),
    ],
)
def test_options_that_change_what_runs_change_the_hash(options: PlannerOptions) -> None:
    assert plan(BASE, options).plan_hash != plan(BASE).plan_hash


def test_a_change_upstream_changes_the_graph_but_not_the_stages_below() -> None:
    before, after = plan(BASE), plan(BASE.replace("'open'", "'done'"))
    assert before.stages[0].plan_hash != after.stages[0].plan_hash
    assert [s.plan_hash for s in before.stages[1:]] == [s.plan_hash for s in after.stages[1:]]
    assert before.plan_hash != after.plan_hash


def test_a_common_subplan_is_one_stage() -> None:
    sql = """
        WITH t AS (SELECT customer, sum(total) AS spent FROM orders GROUP BY customer)
        SELECT a.customer FROM t AS a JOIN t AS b ON a.customer = b.customer AND a.spent < b.spent
    """
    graph = plan(sql)
    assert [s.stage_id for s in graph.stages if s.tables == ("orders",)] == [0]


# ---------------------------------------------------------------- planning


@pytest.mark.parametrize("name", NAMES)
def test_planning_twice_gives_the_same_graph(name: str) -> None:
    again = plan_query(query_text(name), sf10_catalog(), FORCED, name=name)
    assert again == tpch_graph(name, FORCED)
    assert dump_graph(again) == dump_graph(tpch_graph(name, FORCED))


@pytest.mark.parametrize("name", NAMES)
def test_every_stage_reads_stages_before_it_and_all_are_read(name: str) -> None:
    for options in (DEFAULT, FORCED):
        graph = tpch_graph(name, options)
        for stage in graph.stages[:-1]:
            assert graph.consumers(stage.stage_id)
        for stage in graph.stages:
            shared = [leaf for branch in stage.branches for leaf in branch.leaves]
            assert len(shared) == len(set(shared))
            assert all(0 <= leaf < len(stage.leaves) for leaf in shared)
            assert [f.dtype for f in stage.schema] == [c.dtype for c in stage.fragment.columns]
        assert [f.dtype for f in graph.head.schema] == [f.dtype for f in graph.result]


@pytest.mark.parametrize("name", NAMES)
def test_partitioned_inputs_of_a_stage_agree(name: str) -> None:
    """Rows that meet are in partitions of the same number: equal counts, equal key types."""
    graph = tpch_graph(name, FORCED)
    for stage in graph.stages:
        for branch in stage.branches:
            if branch.kind != "partitions":
                continue
            producers = [graph.stages[stage.leaves[i].stage_id] for i in branch.leaves]  # type: ignore[union-attr]  # inputs
            assert len({p.output.num_partitions for p in producers}) == 1
            types = {tuple(p.schema[k].dtype for k in p.output.keys) for p in producers}
            assert len(types) == 1, f"stage {stage.stage_id} joins {types}"


def test_phases_come_in_order() -> None:
    phases = [plan_until(BASE, SALES, p) for p in ("logical", "optimized", "physical", "stages")]
    kinds = ["Project", "Project", "ProjectionExec", "StageGraph"]
    assert [type(p).__name__ for p in phases] == kinds
