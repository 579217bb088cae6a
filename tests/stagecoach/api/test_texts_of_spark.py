"""Queries that only Spark's parser reads, and results of types that only Spark has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import ParseException

from stagecoach.api.session import Session
from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.planner.errors import (
    AnalysisError,
    ForbiddenSqlError,
    ParseError,
)
from stagecoach.planner.options import PlannerOptions
from tests.planner.syntax.test_unparsed_query import READ_BY_SPARK, REFUSED_BY_SPARK, WRONG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.infra.config.settings import EngineSettings

pytestmark = [pytest.mark.spark, pytest.mark.slow]

VARIANT_PATHS = (
    "SELECT parse_json(j):a.b[1]::int AS x FROM t ORDER BY x",
    "SELECT parse_json(j):a:b['c']::string, parse_json(j):`a` IS NULL AS n FROM t ORDER BY n",
    "SELECT k FROM t WHERE parse_json(j):['k'] :: INT > 0 OR k = 2",
)
# As `DataFrame.toArrow` gives them.
OF_ARROW = (
    "parse_json('{\"a\": [1, null]}')",
    "array(parse_json('1'))",
    "named_struct('v', parse_json('1'), 't', TIME '12:00:00')",
    "TIME '23:59:59.999999'",
    "st_geogfromwkb(X'0101000000000000000000F03F0000000000000040')",
    "'a' COLLATE UTF8_LCASE",
    "array('a' COLLATE UNICODE)",
)
# As texts: pyspark's Arrow has no form for them.
OF_TEXT = (
    "INTERVAL '1-2' YEAR TO MONTH",
    "INTERVAL '-3' MONTH",
    "array(INTERVAL '1' YEAR, NULL)",
    "map(1, INTERVAL '1' MONTH)",
    "make_interval(1, 2, 3, 4, 5, 6, 7.008)",
    "named_struct('i', make_interval(1), 'k', 2)",
)


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, spark_settings: EngineSettings, tmp_path_factory: pytest.TempPathFactory
) -> Session:
    folder: Path = tmp_path_factory.mktemp("texts")
    texts = ['{"a": {"b": [1, 2]}, "k": 1}', None, '{"a": {"b": {"c": "x"}}}']
    table = pa.table({"k": pa.array([1, 2, None], pa.int32()), "j": texts})
    (folder / "t").mkdir()
    pq.write_table(table, folder / "t" / "a.parquet")
    (folder / "catalog.yaml").write_text("tables: {t: {location: t}}")
    spark.read.parquet(str(folder / "t")).createOrReplaceTempView("t")
    settings = replace(spark_settings, storage_root=str(folder / "storage"))
    return Session(
        catalog=load_catalog(folder / "catalog.yaml"), settings=settings, options=PlannerOptions()
    )


@pytest.mark.parametrize("sql", READ_BY_SPARK + VARIANT_PATHS)
def test_what_spark_answers_is_answered(session: Session, spark: SparkSession, sql: str) -> None:
    assert session.plan(sql).graph.fallback_reason is not None
    table = session.query(sql).to_arrow()
    assert table.to_pylist() == spark.sql(sql).toArrow().to_pylist()


def test_a_text_that_only_spark_reads_has_parameters(session: Session) -> None:
    sql = (
        "WITH RECURSIVE r MAX RECURSION LEVEL 9 AS "
        "(SELECT k AS n FROM t WHERE k = :k UNION ALL SELECT n + 1 FROM r WHERE n < :last) "
        "SELECT n FROM r ORDER BY n"
    )
    result = session.query(sql, {"k": 1, "last": 4})
    assert result.to_arrow().to_pylist() == [{"n": n} for n in (1, 2, 3, 4)]


@pytest.mark.parametrize("sql", REFUSED_BY_SPARK)
def test_a_syntax_error_is_sparks(session: Session, sql: str) -> None:
    condition = "INVALID_SQL_SYNTAX.EMPTY_IN_PREDICATE" if "IN ()" in sql else "PARSE_SYNTAX_ERROR"
    with pytest.raises(AnalysisError, match=condition) as caught:
        session.query(sql)
    assert caught.value.condition == condition
    assert caught.value.line == 1
    assert not caught.value.message.endswith("()")
    assert "parser" not in caught.value.message


def test_another_error_of_spark_tells_what_the_planner_did_not_understand(
    session: Session,
) -> None:
    with pytest.raises(AnalysisError, match="UNRESOLVED_COLUMN") as caught:
        session.query("WITH RECURSIVE r MAX RECURSION LEVEL 9 AS (SELECT 1 AS n) SELECT m FROM r")
    assert "to the planner's parser it is a syntax error near 'MAX'" in caught.value.message


@pytest.mark.parametrize("sql", WRONG)
def test_spark_refuses_what_is_certainly_wrong(spark: SparkSession, sql: str) -> None:
    with pytest.raises(ParseException):
        spark.sql(sql)


@pytest.mark.parametrize("offline", [True, False])
def test_without_spark_it_is_a_syntax_error(session: Session, offline: bool) -> None:
    alone = Session(
        catalog=session.base_catalog,
        settings=session.settings,
        options=PlannerOptions() if offline else PlannerOptions(engine="duckdb"),
        offline=offline,
    )
    with pytest.raises(ParseError, match="syntax error near 'MAX'"):
        alone.plan(READ_BY_SPARK[0])


@pytest.mark.parametrize(
    "relation", ["read_files('/etc')", "python_worker_logs()", "spark_catalog.default.t"]
)
def test_the_plan_of_such_a_text_is_walked(session: Session, relation: str) -> None:
    sql = f"WITH RECURSIVE r MAX RECURSION LEVEL 9 AS (SELECT 1 AS n) SELECT * FROM r, {relation}"
    with pytest.raises((ForbiddenSqlError, AnalysisError)):
        session.query(sql)


def test_a_keyword_that_spark_reads_as_a_name_is_told_as_such(session: Session) -> None:
    # `FROM` is a column, `t` its alias: Spark has no keywords here.
    with pytest.raises(AnalysisError, match="TRAILING_COMMA_IN_SELECT"):
        session.query("SELECT k, FROM t")


@pytest.mark.parametrize("value", OF_ARROW)
def test_a_type_that_only_spark_has_is_returned_as_spark_does(
    session: Session, spark: SparkSession, value: str
) -> None:
    sql = f"SELECT {value} AS x, k FROM t WHERE k = 1"
    table, expected = session.query(sql).to_arrow(), spark.sql(sql).toArrow()
    assert table.to_pylist() == expected.to_pylist()
    assert _bare(table.schema.field("x").type) == _bare(expected.schema.field("x").type)


@pytest.mark.parametrize("value", OF_TEXT)
def test_an_interval_of_months_is_returned_as_text(
    session: Session, spark: SparkSession, value: str
) -> None:
    sql = f"SELECT {value} AS x, k AS x FROM t WHERE k = 1"
    table = session.query(sql).to_arrow()
    texts = spark.sql(f"SELECT CAST({value} AS STRING) AS x FROM t WHERE k = 1").toArrow()
    (found,), (whole,) = table.column(0).to_pylist(), texts.column(0).to_pylist()
    if isinstance(found, str):
        assert found == whole
    else:  # inside of others: their text has the same texts in it
        assert (parts := _texts(found))
        assert all(part in whole for part in parts)
    assert table.column(1).to_pylist() == [1]


def test_such_types_stand_beside_each_other(session: Session) -> None:
    sql = "SELECT TIME '12:00:00' AS t, INTERVAL '3' MONTH AS i, parse_json('1') AS v, k FROM t LIMIT 1"
    (row,) = session.query(sql).to_arrow().to_pylist()
    assert str(row["t"]) == "12:00:00"
    assert row["i"] == "INTERVAL '3' MONTH"


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    parts = list(value.values()) if isinstance(value, dict) else value
    return [t for part in parts for t in _texts(part)] if isinstance(parts, list | tuple) else []


def _bare(kind: pa.DataType) -> str:
    """A type without what says that values are never missing."""
    return str(kind).replace(" not null", "")
