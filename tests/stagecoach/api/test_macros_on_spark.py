"""Queries with macros, staged and as a whole on Spark, against the same SQL written by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.api.session import Session
from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.planner.errors import SqlError
from stagecoach.planner.options import PlannerOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.infra.config.settings import EngineSettings

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MACROS = """
CREATE FUNCTION shifted(xs ARRAY<INT>, k INT) RETURNS ARRAY<BIGINT> RETURN transform(xs, x -> x + k);
CREATE FUNCTION share(part BIGINT, of BIGINT) RETURNS DECIMAL(5,2) RETURN part / of * 100;
CREATE FUNCTION plain(a DOUBLE) RETURN from_json('{"a": 1}', 'a INT').a + a;
CREATE VIEW big AS SELECT k, x, share(k, 2) AS s FROM t WHERE k > 0
"""
BY_HAND = "(SELECT k, x, CAST(CAST(k AS BIGINT) / CAST(2 AS BIGINT) * 100 AS DECIMAL(5,2)) AS s FROM t WHERE k > 0)"
PAIRS = (
    (
        "SELECT shifted(array(k, 1), x) AS a FROM big ORDER BY k",
        "SELECT transform(CAST(array(k, 1) AS ARRAY<INT>), y -> y + x) AS a FROM t WHERE k > 0 "
        "ORDER BY k",
    ),
    (
        "SELECT x, share(count(*), sum(count(*)) OVER ()) AS p FROM big GROUP BY x ORDER BY x",
        f"SELECT x, CAST(count(*) / sum(count(*)) OVER () * 100 AS DECIMAL(5,2)) AS p FROM "
        f"{BY_HAND} GROUP BY x ORDER BY x",
    ),
    # Spark runs these as they are written out.
    (
        "SELECT plain(k) AS a, s FROM big WHERE rand() >= 0 ORDER BY a",
        f"SELECT from_json('{{\"a\": 1}}', 'a INT').a + CAST(k AS DOUBLE) AS a, s FROM {BY_HAND} "
        "ORDER BY a",
    ),
    (
        "SELECT typeof(parse_json('1')) AS v, max(s) AS s FROM big",
        f"SELECT typeof(parse_json('1')) AS v, max(s) AS s FROM {BY_HAND}",
    ),
)


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, spark_settings: EngineSettings, tmp_path_factory: pytest.TempPathFactory
) -> Session:
    folder: Path = tmp_path_factory.mktemp("macros")
    integers = [pa.array(values, pa.int32()) for values in ([1, 2, 3, None], [7, 8, 7, None])]
    (folder / "t").mkdir()
    (folder / "macros").mkdir()
    pq.write_table(pa.table(integers, ["k", "x"]), folder / "t" / "a.parquet")
    (folder / "catalog.yaml").write_text("tables: {t: {location: t}}")
    (folder / "macros" / "all.sql").write_text(MACROS)
    spark.read.parquet(str(folder / "t")).createOrReplaceTempView("t")
    settings = replace(spark_settings, storage_root=str(folder / "storage"))
    return Session(
        catalog=load_catalog(folder / "catalog.yaml"), settings=settings, options=PlannerOptions()
    )


def test_macros_give_the_rows_of_the_same_sql_by_hand(
    session: Session, spark: SparkSession
) -> None:
    fallbacks = 0
    for sql, by_hand in PAIRS:
        planned = session.plan(sql)
        fallbacks += planned.graph.fallback_reason is not None
        rows = session.run(planned).to_arrow().to_pylist()
        assert rows == spark.sql(by_hand).toArrow().to_pylist(), sql
    assert 0 < fallbacks < len(PAIRS)


def test_what_spark_refuses_is_told_at_the_call(session: Session) -> None:
    with pytest.raises(SqlError) as caught:
        session.query("SELECT 1 AS one, from_json('1', 'a INT'),\n  share(k, array(k)) FROM big")
    assert caught.value.line == 2
