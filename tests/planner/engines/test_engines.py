"""Engines by name: which are tried, what each writes, and what a partly proven one must not run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stagecoach.planner.engines.duckdb.engine import ENGINE as DUCKDB
from stagecoach.planner.engines.protocol import PlannerEngine
from stagecoach.planner.engines.registry import (
    PLANNER_ENGINES,
    engine_choices,
    planner_engine,
    task_engines,
)
from stagecoach.planner.engines.spark.dialect import marker_values
from stagecoach.planner.engines.spark.engine import ENGINE as SPARK
from stagecoach.planner.errors import GraphFormatError, InternalPlanError, UnsupportedSqlError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.expressions import Literal, Parameter, WindowCall
from stagecoach.planner.planning import plan_query
from stagecoach.planner.render.fragment import render_fragment
from stagecoach.planner.staging.row_states import passed_through
from stagecoach.planner.types import BIGINT, DATE, STRING, parse_type
from tests.infra.engines.sqlite_planner import ENGINE as SQLITE
from tests.planner.catalogs import SALES


@pytest.fixture
def sqlite(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for part in ("_paths", "_found"):
        monkeypatch.setattr(PLANNER_ENGINES, part, dict(getattr(PLANNER_ENGINES, part)))
    PLANNER_ENGINES.register("sqlite", "tests.infra.engines.sqlite_planner:ENGINE")
    yield "sqlite"


def test_spark_is_the_one_that_is_not_tried() -> None:
    assert task_engines() == ("duckdb",)
    assert engine_choices() == ("auto", "duckdb", "spark")
    assert (planner_engine("duckdb"), planner_engine("spark")) == (DUCKDB, SPARK)
    with pytest.raises(GraphFormatError, match=r"unknown engine 'ray' \(duckdb, spark\)"):
        planner_engine("ray")


def test_a_new_engine_comes_after_those_that_are_there(sqlite: str) -> None:
    assert task_engines() == ("duckdb", sqlite)
    assert PlannerOptions(engine=sqlite).may_fall_back is False
    assert PlannerOptions().may_fall_back and PlannerOptions(engine="spark").may_fall_back


@pytest.mark.parametrize("engine", [DUCKDB, SPARK, SQLITE])
def test_constants(engine: PlannerEngine) -> None:
    dialect = engine.dialect
    name = dialect.type_name(BIGINT)
    assert dialect.literal(Literal(BIGINT, -(2**63))) == f"CAST('-9223372036854775808' AS {name})"
    assert dialect.literal(Literal(BIGINT, None)) == f"CAST(NULL AS {name})"
    quoted = r"'it\'s'" if engine is SPARK else "'it''s'"
    assert dialect.literal(Literal(STRING, "it's")) == quoted


def test_values_of_parameters_are_beside_spark_s_text_and_in_that_of_others() -> None:
    given, clock = Parameter(DATE, "day"), Parameter(DATE, "@date")
    value = Literal(DATE, "2024-02-29")
    assert SPARK.dialect.parameter(given, value) == "CAST(:p_day AS date)"
    assert SPARK.dialect.parameter(clock, value) == "DATE '2024-02-29'"
    assert DUCKDB.dialect.parameter(given, value) == "DATE '2024-02-29'"
    assert marker_values({"day": value, "@date": value}) == {"p_day": value}


def test_types_and_texts_that_an_engine_does_not_have() -> None:
    interval = parse_type("interval day to second")
    assert SPARK.dialect.literal(Literal(interval, 1)).startswith(
        "CAST(INTERVAL '0 00:00:00.000001'"
    )
    with pytest.raises(UnsupportedSqlError, match="NUL"):
        DUCKDB.dialect.text("a\x00")


def test_what_a_dialect_does_not_write_is_an_error_of_ours() -> None:
    call = WindowCall(BIGINT, "row_number", ())
    with pytest.raises(InternalPlanError, match="SqliteDialect writes no window of 'row_number'"):
        SQLITE.dialect.window_call(call, str, "OVER ()")
    with pytest.raises(InternalPlanError, match="SqliteDialect writes no lambda of c1"):
        SQLITE.dialect.lambda_function(["c1"], "c1")
    with pytest.raises(InternalPlanError, match="SqliteDialect writes no range"):
        SQLITE.dialect.numbers("0, 1, 1", "c0")


@pytest.mark.parametrize(("aggregate", "passes"), [("min(rating)", True), ("count(rating)", False)])
def test_rows_pass_an_aggregate_only_in_a_form_that_is_proven(
    sqlite: str, aggregate: str, passes: bool
) -> None:
    options = PlannerOptions(engine=sqlite, force_distribution=True)
    graph = plan_query(
        f"SELECT city, {aggregate} AS v FROM customers GROUP BY city", SALES, options
    )
    rows = passed_through(graph.stages[0])
    assert (rows is not None) == passes
    if rows is not None:
        assert "GROUP BY" not in render_fragment(rows, sqlite, {})
