"""What Spark says about queries that the planner refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from stagecoach.infra.engines.spark.arbiter import SparkArbiter
from stagecoach.infra.engines.spark.engine import _empty_frame
from stagecoach.infra.engines.spark.errors import SPARK_ERRORS
from stagecoach.infra.spark.session import isolated_session
from stagecoach.planner.errors import (
    AnalysisError,
    ForbiddenSqlError,
    SqlError,
)
from stagecoach.planner.plan.serde import dump_graph, load_graph
from stagecoach.planner.plan.stages import ParameterSpec
from stagecoach.planner.planning import plan_query
from stagecoach.planner.types import INT, STRING, TIMESTAMP, Field
from tests.planner.analysis.test_error_places import MARK, REFUSED, TABLES
from tests.planner.test_arbiter import CERTAIN
from tests.share import share

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def arbiter(spark: SparkSession) -> SparkArbiter:
    return SparkArbiter(lambda: spark)


class Everything:
    """Asks Spark also where the planner is certain: only then can a test tell that it is right."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        for name in TABLES.table_names():
            info = TABLES.table(name)
            assert info is not None
            _empty_frame(session, info.columns).createOrReplaceTempView(name)

    def accepts(self, sql: str) -> bool:
        try:
            self.session.sql(sql).schema  # noqa: B018
        except SPARK_ERRORS:
            return False
        return True


@pytest.fixture(scope="module")
def everything(spark: SparkSession) -> Iterator[Everything]:
    with isolated_session(spark, "UTC") as session:
        yield Everything(session)


@pytest.mark.parametrize("sql", CERTAIN)
def test_spark_refuses_what_the_planner_is_certain_of(everything: Everything, sql: str) -> None:
    assert not everything.accepts(sql)


def test_spark_decides_about_every_refusal_of_the_planner(
    everything: Everything, arbiter: SparkArbiter
) -> None:
    """With Spark asked, exactly the queries that Spark accepts are accepted."""
    wrong = []
    for kind, marked, _ in share(REFUSED, 3):
        sql = marked.replace(MARK, "")
        if kind is not AnalysisError or ":" in sql or "?" in sql:
            continue
        try:
            plan_query(sql, TABLES, arbiter=arbiter)
            accepted = True
        except SqlError:
            accepted = False
        if accepted != everything.accepts(sql):
            wrong.append(sql)
    assert wrong == []


def test_the_message_is_sparks_with_its_place(arbiter: SparkArbiter) -> None:
    with pytest.raises(AnalysisError) as caught:
        plan_query("SELECT i,\n  -- a comment\n  i + ts\nFROM t", TABLES, arbiter=arbiter)
    error = caught.value
    assert error.condition.startswith("DATATYPE_MISMATCH")
    assert error.message.startswith("[DATATYPE_MISMATCH")
    assert "\n" not in error.message
    assert (error.line, error.column) == (3, 3)


def test_what_spark_accepts_is_one_stage(arbiter: SparkArbiter) -> None:
    graph = plan_query("SELECT i FROM t QUALIFY rank() OVER (ORDER BY i)", TABLES, arbiter=arbiter)
    assert graph.head.engine == "spark"
    assert graph.fallback_reason == "QUALIFY needs a boolean, found int"
    assert graph.result == (Field("i", INT),)


def test_columns_have_the_types_that_carry_them(arbiter: SparkArbiter) -> None:
    sql = (
        "SELECT i, parse_json('1') AS v, INTERVAL 1 MONTH AS m, 's' COLLATE UTF8_LCASE AS s, "
        "array(1.5) AS a FROM t TABLESAMPLE (10 PERCENT)"
    )
    graph = plan_query(sql, TABLES, arbiter=arbiter)
    kinds = [str(field.dtype) for field in graph.result]
    assert kinds == [
        "int", "struct<value:binary,metadata:binary>", "string", "string", "array<decimal(2,1)>"
    ]  # fmt: skip
    assert load_graph(dump_graph(graph)) == graph


@pytest.mark.parametrize("dtype", [INT, STRING, TIMESTAMP], ids=str)
def test_parameters_have_their_types(arbiter: SparkArbiter, dtype: object) -> None:
    specs = (ParameterSpec("p", dtype),)  # type: ignore[arg-type]
    sql = "SELECT i FROM t TABLESAMPLE (10 PERCENT) WHERE array(:p) = array(i)"
    if dtype is INT:
        plan_query(sql, TABLES, parameters=specs, arbiter=arbiter)
    else:
        with pytest.raises(AnalysisError, match="DATATYPE_MISMATCH"):
            plan_query(sql, TABLES, parameters=specs, arbiter=arbiter)


def test_a_parameter_in_limit_is_a_constant(arbiter: SparkArbiter) -> None:
    sql = "SELECT i FROM t TABLESAMPLE (10 PERCENT) LIMIT :n"
    plan_query(sql, TABLES, parameters=(ParameterSpec("n", INT),), arbiter=arbiter)


def test_the_walls_stand_before_it(spark: SparkSession, arbiter: SparkArbiter) -> None:
    with pytest.raises(ForbiddenSqlError):
        plan_query("SELECT reflect('a', 'b') FROM t TABLESAMPLE (1 ROWS)", TABLES, arbiter=arbiter)
