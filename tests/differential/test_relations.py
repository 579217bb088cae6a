"""Relational forms equal Spark: set operations, grouping sets, VALUES, generators, PIVOT, pipes.

Each query runs in one task, and with forced distribution over 1 and 3 partitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stagecoach.planner import plan_query
from stagecoach.planner.errors import AnalysisError, SqlError
from stagecoach.planner.plan.serde import dump_graph, load_graph
from tests.differential.edge_tables import EdgeTables
from tests.differential.inprocess import InProcessRunner
from tests.differential.query_check import SHUFFLED, SINGLE, ask_spark
from tests.differential.relation_cases import ERRORS, FALLBACKS, FAMILIES, PARTLY_ON_SPARK
from tests.differential.relation_tables import write_relation_tables
from tests.differential.spark_answers import all_differences, ask_spark_all, plain_session
from tests.share import share

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

OPTIONS = {"single": SINGLE, "shuffle-1": SHUFFLED[1], "shuffle-3": SHUFFLED[3]}


@pytest.fixture(scope="module")
def relations(tmp_path_factory: pytest.TempPathFactory) -> EdgeTables:
    """The tables of this module."""
    return write_relation_tables(tmp_path_factory.mktemp("relations"))


@pytest.fixture(scope="module")
def oracle(spark: SparkSession, relations: EdgeTables) -> SparkSession:
    """Plain Spark over them."""
    session = plain_session(spark, relations)
    session.conf.set("spark.sql.shuffle.partitions", "1")
    return session


@pytest.fixture(scope="module")
def runner(oracle: SparkSession, relations: EdgeTables) -> InProcessRunner:
    """Runs stage graphs over them."""
    return InProcessRunner(relations, oracle)


@pytest.mark.parametrize("family", list(FAMILIES))
def test_relational_forms_equal_spark(
    oracle: SparkSession, relations: EdgeTables, runner: InProcessRunner, family: str
) -> None:
    answers = ask_spark_all(oracle, share(FAMILIES[family], 3))
    refused = [f"{sql}: {answer.error}" for sql, answer in answers.items() if answer.rows is None]
    assert not refused, "Spark refuses them"
    wrong = all_differences(answers, relations, runner, OPTIONS)
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong)


@pytest.mark.parametrize("sql", PARTLY_ON_SPARK)
def test_what_duckdb_is_not_proven_for_is_a_stage_of_spark(
    relations: EdgeTables, runner: InProcessRunner, oracle: SparkSession, sql: str
) -> None:
    graph = plan_query(sql, relations.catalog, SHUFFLED[3])
    assert graph.fallback_reason is None
    assert "spark" in {stage.engine for stage in graph.stages}
    assert runner.run(graph).num_rows == oracle.sql(sql).count()


def test_errors_are_those_of_spark_and_have_a_place(
    oracle: SparkSession, relations: EdgeTables
) -> None:
    wrong = []
    for sql, line in ERRORS:
        if ask_spark(oracle, sql).rows is not None:
            wrong.append(f"Spark runs {sql}")
        try:
            plan_query(sql, relations.catalog)
            wrong.append(f"planned: {sql}")
        except AnalysisError as error:
            if line and error.line != line:
                wrong.append(f"line {error.line} instead of {line}: {sql}: {error}")
        except SqlError as error:
            wrong.append(f"{type(error).__name__} for {sql}: {error}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("sql", "reason"), FALLBACKS)
def test_what_is_not_staged_says_why(relations: EdgeTables, sql: str, reason: str) -> None:
    assert reason in (plan_query(sql, relations.catalog).fallback_reason or "")


@pytest.mark.parametrize("family", ["grouping sets", "generators", "values and range"])
def test_graphs_with_the_operators_are_stored_and_loaded(
    relations: EdgeTables, family: str
) -> None:
    for sql in FAMILIES[family]:
        graph = plan_query(sql, relations.catalog, SHUFFLED[3])
        assert load_graph(dump_graph(graph)) == graph, sql
