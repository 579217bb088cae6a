"""Queries and files that nest deeply, are long, or hold odd characters: answered or refused, never a crash."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.assets.project.front_matter import parse_front_matter
from stagecoach.assets.project.front_matter.places import FrontMatterError
from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.config.settings import EngineSettings, load_settings
from stagecoach.infra.engines.spark.errors import SPARK_ERRORS
from stagecoach.infra.errors import ConfigError, QueryFailedError
from stagecoach.planner import planning
from stagecoach.planner.errors import (
    AnalysisError,
    CatalogError,
    ParseError,
    PlanningTimeoutError,
    UnsupportedSqlError,
)
from stagecoach.planner.explain.display import FORMATS, render_graph
from stagecoach.planner.explain.lineage import render_lineage
from stagecoach.planner.limits.deadline import is_timeout
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.plan.serde import dump_graph, load_graph
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_phases, plan_query, plan_until
from stagecoach.planner.render.fragment import render_fragment
from stagecoach.planner.syntax.parsed_query import ParsedQuery
from stagecoach.planner.syntax.unparsed_query import UnparsedQuery
from stagecoach.planner.types import STRING
from tests.acceptance.comparison import Answer, assert_same
from tests.acceptance.runs import Runner, store_settings
from tests.planner.catalogs import SALES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FALLBACK_REASONS = ("nested too deeply", "MiB of SQL", "planning took longer")


def _nested(start: str, inside: str, end: str, times: int) -> str:
    return start * times + inside + end * times


DEEP = {
    **{
        f"{n} parentheses": f"SELECT {_nested('(', 'id', ')', n)} AS r FROM t"
        for n in (60, 300, 1000)
    },
    **{
        f"{n} nested CASE": "SELECT "
        + _nested("CASE WHEN id > 1 THEN ", "id", " ELSE 0 END", n)
        + " AS r FROM t"
        for n in (60, 200)
    },
    "300 nested subqueries": f"SELECT id FROM {_nested('(SELECT id FROM ', 't', ')', 300)}",
    "60 nested IN": "SELECT id FROM t WHERE "
    + _nested("id IN (SELECT id FROM t WHERE ", "id > 1", ")", 60),
    "500 nested functions": f"SELECT {_nested('abs(', 'id', ')', 500)} AS r FROM t",
    "60 nested functions whose text doubles": "SELECT "
    + _nested("upper(", "name", ")", 60)
    + " AS r FROM t",
    "500 nested NOT": f"SELECT id FROM t WHERE {_nested('NOT (', 'id = 1', ')', 500)}",
}
LONG = {
    "a sum of 5,000 terms": "SELECT " + " + ".join(["id"] * 5000) + " AS r FROM t",
    "5,000 terms of AND": "SELECT id FROM t WHERE " + " AND ".join(["id > 1"] * 5000),
    "5,000 terms of OR": "SELECT id FROM t WHERE " + " OR ".join(["id > 1"] * 5000),
    "5,000 texts": "SELECT " + " || ".join(["name"] * 5000) + " AS r FROM t",
}


def on_orders(sql: str) -> str:
    """The query over a table of the catalog that the planner's tests share."""
    table = "customers" if "name" in sql else "orders"
    return sql.replace("FROM t", f"FROM {table}")


def check_everything_that_recurses(graph: StageGraph) -> None:
    assert load_graph(dump_graph(graph)) == graph
    assert len(graph.plan_hash) == 64
    for format in FORMATS:
        assert render_graph(graph, format, details=True)
    assert render_lineage(graph, "json")
    if graph.fallback_reason is None:
        for stage in graph.stages:
            assert render_fragment(stage, stage.engine, {})
    else:
        assert any(part in graph.fallback_reason for part in FALLBACK_REASONS)


@pytest.mark.parametrize("sql", {**DEEP, **LONG}.values(), ids={**DEEP, **LONG})
def test_deep_and_long_queries_are_planned(sql: str) -> None:
    graph = plan_query(on_orders(sql), SALES)
    check_everything_that_recurses(graph)


@pytest.mark.parametrize(
    "name", ["60 parentheses", "1000 parentheses", "200 nested CASE", "300 nested subqueries"]
)
def test_depth_that_engines_bear_is_staged(name: str) -> None:
    sql = on_orders(DEEP[name])
    assert plan_query(sql, SALES).fallback_reason is None
    assert plan_phases(sql, SALES).plans
    assert plan_until(sql, SALES, "physical")


def test_what_the_parser_cannot_hold_is_refused_because_nothing_checked_it() -> None:
    sql = f"SELECT {_nested('(', 'id', ')', 20_000)} FROM orders"
    with pytest.raises(ParseError, match="nested too deeply for the parser") as caught:
        plan_query(sql, SALES)
    assert (caught.value.line, caught.value.column) == (1, 1)


def test_what_is_too_deep_names_its_place_with_engine_duckdb() -> None:
    with pytest.raises(UnsupportedSqlError, match="nested too deeply to be staged"):
        plan_query(on_orders(DEEP["500 nested functions"]), SALES, PlannerOptions(engine="duckdb"))


# ---------------------------------------------------------------- planning takes too long


class Clock:
    """A clock of which an hour passes between two looks, once it runs."""

    def __init__(self) -> None:
        self.now = 0.0
        self.runs = False

    def monotonic(self) -> float:
        self.now += 3600.0 if self.runs else 0.0
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("stagecoach.planner.limits.deadline.time", clock)
    return clock


UNSTAGED_IN_TIME = "planning took longer than 30 seconds; simplify the query, or raise"
MANY_JOINS = "SELECT o0.id FROM orders o0 " + " ".join(
    f"JOIN orders o{i} ON o{i}.id = o{i - 1}.id" for i in range(1, 12)
)


def test_a_query_that_takes_too_long_is_one_spark_stage(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = planning.read_query

    def parsed(sql: str) -> ParsedQuery | UnparsedQuery:
        query = read(sql)
        clock.runs = True
        return query

    for name in ("parse_query", "read_query"):
        monkeypatch.setattr(planning, name, parsed)
    graph = plan_query(MANY_JOINS, SALES)
    assert graph.fallback_reason is not None
    assert graph.fallback_reason.startswith(UNSTAGED_IN_TIME)
    assert is_timeout(graph.fallback_reason)
    assert (graph.head.engine, graph.head.sql, len(graph.stages)) == ("spark", MANY_JOINS, 1)
    clock.runs = False
    with pytest.raises(PlanningTimeoutError, match=r"planner\.timeout_seconds"):
        plan_query(MANY_JOINS, SALES, PlannerOptions(engine="duckdb"))
    clock.runs = False
    with pytest.raises(PlanningTimeoutError, match=r"planner\.timeout_seconds"):
        plan_until(MANY_JOINS, SALES, "optimized")
    clock.runs = False
    assert plan_query(MANY_JOINS, SALES, PlannerOptions(timeout_seconds=0)).fallback_reason is None


def test_a_query_that_takes_too_long_to_parse_is_refused(clock: Clock) -> None:
    clock.runs = True
    with pytest.raises(PlanningTimeoutError, match="planning took longer than 7 seconds"):
        # Of a text that was not parsed before: those are remembered.
        plan_query(MANY_JOINS + " LIMIT 7", SALES, PlannerOptions(timeout_seconds=7))


def test_an_error_in_a_query_is_told_before_its_time_is_up(clock: Clock) -> None:
    with pytest.raises(AnalysisError, match="nope"):
        plan_query("SELECT nope FROM orders", SALES, PlannerOptions(timeout_seconds=1))


def test_the_timeout_is_in_no_plan() -> None:
    plans = [plan_query(MANY_JOINS, SALES, PlannerOptions(timeout_seconds=n)) for n in (0, 1000)]
    assert dump_graph(plans[0]) == dump_graph(plans[1])
    texts = [PlannerOptions(timeout_seconds=n).texts() for n in (0, 1000)]
    assert texts[0] == texts[1]


# ---------------------------------------------------------------- YAML of users


BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30)]
)
DEEP_YAML = "tables: " + "[" * 50_000 + "]" * 50_000


@pytest.mark.parametrize(
    ("text", "problem"),
    [(BOMB, "aliases make this too large"), (DEEP_YAML, "this is nested too deeply")],
    ids=["aliases", "depth"],
)
def test_yaml_of_users_is_bounded(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "input.yaml"
    file.write_text(text)
    with pytest.raises(CatalogError, match=problem):
        load_catalog(file)
    with pytest.raises(ConfigError, match=rf"{problem}"):
        load_settings(file, environment={})
    commented = "\n".join(f"-- {line}" for line in ["owners: [me]", *text.splitlines()])
    with pytest.raises(FrontMatterError, match=problem) as caught:
        parse_front_matter(f"{commented}\nSELECT 1", "q.sql")
    assert caught.value.problems[0].line > 1


@pytest.mark.parametrize("variable", ["STAGECOACH_SPARK_CONF", "STAGECOACH_STORAGE_OPTIONS"])
def test_json_of_settings_is_bounded(variable: str) -> None:
    with pytest.raises(ConfigError):
        load_settings(None, environment={variable: '{"a":' * 50_000 + "1" + "}" * 50_000})


# ---------------------------------------------------------------- against Spark


class Rows:
    """A small table, a runner over it and plain Spark."""

    def __init__(self, folder: Path, settings: EngineSettings, spark: SparkSession) -> None:
        (folder / "t").mkdir()
        table = pa.table({"id": [1, 2, 3, None], "name": ["a", "b", None, "c\x00d"]})
        pq.write_table(table, folder / "t" / "part.parquet")
        catalog = folder / "catalog.yaml"
        catalog.write_text(f"tables:\n  t:\n    location: {folder / 't'}\n")
        self.runner = Runner(load_catalog(catalog), store_settings(settings, folder), spark)
        self.spark = spark.newSession()
        self.spark.conf.set("spark.sql.session.timeZone", "UTC")
        self.spark.conf.set("spark.sql.ansi.enabled", "true")
        self.spark.read.parquet(str(folder / "t")).createOrReplaceTempView("t")

    def check(self, sql: str, options: PlannerOptions) -> None:
        """Both give the same rows, or both refuse the query."""
        try:
            expected = self.spark.sql(sql).toArrow()
        except SPARK_ERRORS:
            with pytest.raises(QueryFailedError):
                self.runner.run(sql, options)
            return
        assert_same(self.runner.run(sql, options).table, Answer(expected, None, ()))


@pytest.fixture(scope="module")
def rows(
    tmp_path_factory: pytest.TempPathFactory, spark_settings: EngineSettings, spark: SparkSession
) -> Rows:
    return Rows(tmp_path_factory.mktemp("hostile"), spark_settings, spark)


# One of each kind: plain Spark takes seconds for each, and half a minute for 60 nested IN.
COMPARED = (
    "1000 parentheses",
    "200 nested CASE",
    "300 nested subqueries",
    "60 nested functions whose text doubles",
    "5,000 terms of OR",
    "5,000 texts",
)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("name", COMPARED)
def test_deep_and_long_queries_give_sparks_answer(name: str, rows: Rows) -> None:
    rows.check({**DEEP, **LONG}[name], PlannerOptions())


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("name", ["200 nested CASE", "300 nested subqueries"])
def test_deep_stages_on_spark_give_its_answer(name: str, rows: Rows) -> None:
    rows.check(DEEP[name], PlannerOptions(engine="spark"))


# ---------------------------------------------------------------- the character NUL


NUL_QUERIES = {
    "a value that is shown": "SELECT id, :text AS r FROM t",
    "a value that is compared": "SELECT id FROM t WHERE name = :text",
    "a value before digits": "SELECT concat(:text, '7') AS r FROM t",
    "a value in a function": "SELECT id, length(:text) AS n, hex(:text) AS h FROM t",
}


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("engine", ["auto", "spark"])
@pytest.mark.parametrize("sql", NUL_QUERIES.values(), ids=NUL_QUERIES)
def test_nul_in_a_parameter_gives_sparks_answer(sql: str, engine: str, rows: Rows) -> None:
    options = PlannerOptions(force_distribution=True).updated({"engine": engine})
    for value in ("c\x00d", "\x00", "a\x001"):
        expected = rows.spark.sql(sql, args={"text": value}).toArrow()
        ran = rows.runner.run(sql, options, parameters={"text": Literal(STRING, value)})
        assert_same(ran.table, Answer(expected, None, ()))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("engine", ["auto", "spark"])
@pytest.mark.parametrize(
    "literal", ["'c\\0d'", "'c\\u0000d'", "'c\\000d'", "'a\\0001'", "'c\x00d'", "r'c\x00d'"]
)
def test_nul_in_a_literal_gives_sparks_answer(literal: str, engine: str, rows: Rows) -> None:
    options = PlannerOptions(force_distribution=True).updated({"engine": engine})
    for sql in (
        f"SELECT id, {literal} AS r FROM t",
        f"SELECT id, hex({literal}) AS h FROM t WHERE name = {literal} OR id < 3",
    ):
        rows.check(sql, options)
