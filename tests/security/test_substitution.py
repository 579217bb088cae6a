"""Spark's `${…}` in texts and values: it is never replaced, whatever engine runs the query."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.engines.spark import query as spark_query
from stagecoach.infra.engines.spark.query import query_frame
from stagecoach.infra.spark.session import isolated_session
from stagecoach.planner.errors import ForbiddenSqlError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.syntax.text import SparkText
from stagecoach.planner.types import STRING
from tests.acceptance.runs import Runner, store_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

VARIABLES = (
    "${env:AWS_SECRET_ACCESS_KEY}",
    "${system:user.home}",
    "${spark.app.name}",
    "${hiveconf:x}",
    "${x}",
    "a${env:HOME}b$c}{",
)


@pytest.fixture(scope="module")
def runner(
    spark: SparkSession, spark_settings: EngineSettings, tmp_path_factory: pytest.TempPathFactory
) -> Runner:
    folder = tmp_path_factory.mktemp("substitution")
    (folder / "t").mkdir()
    pq.write_table(pa.table({"a": list(VARIABLES)}), folder / "t" / "0.parquet")
    (folder / "catalog.yaml").write_text("tables:\n  t: {location: t}\n")
    changed = store_settings(spark_settings, folder)
    return Runner(load_catalog(folder / "catalog.yaml"), changed, spark)


@pytest.mark.parametrize("text", VARIABLES)
def test_a_text_is_what_it_says_on_every_engine(
    text: str, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    for suffix in ("", " TABLESAMPLE (100 PERCENT)"):  # staged, and whole on Spark
        sql = f"SELECT '{text}' AS c, count(*) AS n FROM t{suffix} WHERE a = '{text}'"
        for engine in ("auto", "spark"):
            ran = runner.run(sql, PlannerOptions(engine=engine))
            assert ran.table.to_pylist() == [{"c": text, "n": 1}]


@pytest.mark.parametrize("text", VARIABLES)
def test_a_value_is_what_it_says_on_every_engine(text: str, runner: Runner) -> None:
    for suffix in ("", " TABLESAMPLE (100 PERCENT)"):
        sql = f"SELECT :p AS c, count(*) AS n FROM t{suffix} WHERE a = :p"
        for engine in ("auto", "spark"):
            ran = runner.run(
                sql, PlannerOptions(engine=engine), parameters={"p": Literal(STRING, text)}
            )
            assert ran.table.to_pylist() == [{"c": text, "n": 1}]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    value=st.text(
        st.one_of(
            st.sampled_from("'\"\\`$%_{}:?;-/*+\n\r\t\x00\x01"),
            st.characters(exclude_categories=["Cs"]),
        ),
        max_size=12,
    )
)
def test_a_value_never_becomes_a_part_of_the_text(value: str, spark: SparkSession) -> None:
    with isolated_session(spark, "UTC") as session:
        frame = query_frame(session, SparkText("SELECT :p AS c"), {"p": Literal(STRING, value)})
        assert frame.collect()[0]["c"] == value


def test_where_it_cannot_be_turned_off_it_is_refused(spark: SparkSession) -> None:
    with isolated_session(spark, "UTC") as session:
        session.conf.set("spark.sql.variable.substitute", "true")
        for text, value in (("SELECT '${env:HOME}'", "a"), ("SELECT :p", "${env:HOME}")):
            with pytest.raises(ForbiddenSqlError, match=r"variable\.substitute"):
                query_frame(session, SparkText(text), {"p": Literal(STRING, value)})
        plain = query_frame(session, SparkText("SELECT '$x' AS c"), {})
        assert plain.collect()[0]["c"] == "$x"


def test_a_session_that_refuses_the_setting_is_known(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_query, "substitutes_variables", lambda session: True)
    with isolated_session(spark, "UTC") as session, pytest.raises(ForbiddenSqlError):
        query_frame(session, SparkText("SELECT '${x}'"), {})


def test_a_users_configuration_does_not_turn_it_on(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.variable.substitute", "true")
    try:
        with isolated_session(spark, "UTC") as session:
            assert session.conf.get("spark.sql.variable.substitute") == "false"
            assert session.conf.get("spark.sql.runSQLOnFiles") == "false"
    finally:
        spark.conf.set("spark.sql.variable.substitute", "false")


def test_no_file_of_a_path_is_read_where_a_text_slips_through(
    spark: SparkSession, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "x.parquet")
    with isolated_session(spark, "UTC") as session:
        text = SparkText(f"SELECT * FROM parquet.`{tmp_path}`")  # no query of ours: see spark_text
        with pytest.raises(ForbiddenSqlError, match="not a table of the catalog"):
            query_frame(session, text, {})
