"""Tables with columns that only Spark can read: VARIANT, collated strings, intervals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stagecoach.api.session import Session
from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.planner.options import PlannerOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.infra.config.settings import EngineSettings

pytestmark = [pytest.mark.spark, pytest.mark.slow]

COLUMNS = {
    "variant": "parse_json('{\"x\": 1}')",
    "collated": "'A' COLLATE UTF8_LCASE",
    "months": "INTERVAL '3' MONTH",
    "days": "INTERVAL '3' DAY",
}
STAGED = (
    "SELECT id, name FROM {t} WHERE id > 0",
    "SELECT count(*) AS n, max(name) AS m FROM {t}",
    "SELECT a.id, b.name FROM {t} a JOIN {t} b USING (id)",
)
ONLY_SPARK = {
    "variant": "SELECT id, variant_get(v, '$.x', 'int') + 1 AS x FROM variant",
    "collated": "SELECT id, v = 'a' AS same, v FROM collated",
    "months": "SELECT id FROM months WHERE v > INTERVAL '2' MONTH",
    "days": "SELECT id, v > INTERVAL '2' DAY AS longer FROM days",
}


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, spark_settings: EngineSettings, tmp_path_factory: pytest.TempPathFactory
) -> Session:
    folder: Path = tmp_path_factory.mktemp("columns")
    for name, value in COLUMNS.items():
        frame = spark.sql(f"SELECT id, concat('n', id) AS name, {value} AS v FROM range(3)")
        frame.write.parquet(str(folder / name))
        frame.createOrReplaceTempView(name)
    tables = ", ".join(f"{name}: {{location: {name}}}" for name in COLUMNS)
    (folder / "catalog.yaml").write_text(f"tables: {{{tables}}}")
    settings = replace(spark_settings, storage_root=str(folder / "storage"))
    return Session(
        catalog=load_catalog(folder / "catalog.yaml"), settings=settings, options=PlannerOptions()
    )


def rows(session: Session, sql: str) -> list[dict[str, Any]]:
    return sorted(session.query(sql).to_arrow().to_pylist(), key=str)


@pytest.mark.parametrize("name", COLUMNS)
def test_queries_of_other_columns_are_staged(
    session: Session, spark: SparkSession, name: str
) -> None:
    for sql in (sql.format(t=name) for sql in STAGED):
        planned = session.plan(sql)
        assert planned.graph.fallback_reason is None
        assert {stage.engine for stage in planned.graph.stages} == {"duckdb"}
        assert rows(session, sql) == sorted(spark.sql(sql).toArrow().to_pylist(), key=str)


@pytest.mark.parametrize(("name", "sql"), ONLY_SPARK.items(), ids=ONLY_SPARK)
def test_queries_of_the_column_run_on_spark(
    session: Session, spark: SparkSession, name: str, sql: str
) -> None:
    planned = session.plan(sql)
    assert planned.graph.fallback_reason is not None
    assert rows(session, sql) == sorted(spark.sql(sql).toArrow().to_pylist(), key=str)
