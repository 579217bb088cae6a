"""Conditions on members of structs, over files whose statistics hide that a member is NULL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.differential.edge_tables import EdgeTables
from tests.differential.inprocess import InProcessRunner
from tests.differential.query_check import SHUFFLED, SINGLE, ask_spark, differences

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema(
    {
        "k": pa.int64(),
        "st": pa.struct(
            {"a": pa.int32(), "b": pa.string(), "in": pa.struct({"c": pa.int32()}), "d": pa.bool_()}
        ),
    }
)
ROWS = [
    {"k": 1, "st": {"a": 1, "b": "x", "in": {"c": 1}, "d": True}},
    {"k": 2, "st": {"a": None, "b": None, "in": {"c": None}, "d": None}},
    {"k": 3, "st": {"a": None, "b": "x", "in": None, "d": True}},
    {"k": 4, "st": None},
]
CONDITIONS = [
    "st.a IN (1)", "st.a IN (1, -3)", "NOT st.a IN (1, 2)", "st.a IN (1, NULL)", "st.a NOT IN (7, NULL)", "st.b IN ('x', 'y')",
    "st.b NOT IN ('y')", "st.in.c IN (1, 2)", "CAST(st.a AS BIGINT) IN (1, 5000000000)", "upper(st.b) IN ('X')",
    "st.a = 1", "st.a <=> 1", "st.a BETWEEN 0 AND 3", "st.a >= 1", "st.a <> 5", "st.a = 1 OR st.a = 2", "st.b LIKE 'x%'", "st.a IS NULL",
    "(st.a IN (1)) IS NOT TRUE", "st.d", "NOT st.d", "k > 0 AND st.d", "st.b LIKE '%x'", "contains(st.b, 'x')", "startswith(st.b, 'x')", "endswith(st.b, 'x')",
    "st.b RLIKE 'x'", "st.a IN (1) OR st.a IN (2)", "st.a IN (1) AND st.d", "st.a IN (1) OR k = 4", "st.in.c = 1", "st.b >= 'x'", "st.b = 'x' OR st.b = 'y' OR st.b = 'z'",
]  # fmt: skip
QUERIES = [
    *(f"SELECT {what} FROM m WHERE {c}" for c in CONDITIONS for what in ("k", "*")),
    "SELECT k, st.a IN (1, 2) AS v FROM m",
    "SELECT k FROM (SELECT k, st.a AS a FROM m) WHERE a IN (1, 2)",
    "SELECT k FROM (SELECT k, st.a IN (1, 2) AS v FROM m) WHERE v",
    "WITH q AS (SELECT k, st.b AS b FROM m) SELECT * FROM q WHERE b IN ('x', 'y') UNION ALL SELECT * FROM q WHERE b IN ('x')",
    "SELECT b, count(*) AS n FROM (SELECT st.b AS b FROM m) GROUP BY b HAVING b IN ('x', 'y')",
    "SELECT m.k FROM m JOIN (SELECT 1 AS a UNION SELECT 2) r ON m.st.a = r.a WHERE m.st.a IN (1, 2)",
    "SELECT k FROM m WHERE st.a IN (SELECT 1)",
    "SELECT l.k, m.k FROM m AS l LEFT JOIN m ON l.k = m.k AND m.st.a IN (1)",
    "SELECT l.k, m.k FROM m AS l RIGHT JOIN m ON l.k = m.k AND l.st.b LIKE 'x%' AND m.st.d",
    "SELECT l.k, m.k FROM m AS l FULL JOIN m ON l.k = m.k AND m.st.a IN (1)",
    "SELECT l.k FROM m AS l JOIN m ON l.k = m.k AND (m.st.a IN (1) OR l.st.b IN ('x', 'y'))",
    "SELECT k FROM m AS l WHERE EXISTS (SELECT 1 FROM m WHERE m.k = l.k AND m.st.d)",
    "SELECT k FROM m AS l WHERE NOT EXISTS (SELECT 1 FROM m WHERE m.k = l.k AND m.st.a IN (1))",
    "SELECT k FROM m AS l LEFT ANTI JOIN m ON l.k = m.k AND m.st.b LIKE '%x'",
    "SELECT * FROM (SELECT st.a AS x, row_number() OVER (PARTITION BY st.a ORDER BY k) AS r FROM m) WHERE x IN (1)",
    "SELECT * FROM (SELECT st.d AS x, count(*) OVER (PARTITION BY st.d) AS n FROM m) WHERE x",
    "SELECT st.b AS b, count(*) AS n FROM m GROUP BY st.b HAVING st.b LIKE 'x%'",
    "SELECT st.d AS d, count(*) AS n FROM m GROUP BY st.d HAVING st.d",
    "SELECT a FROM (SELECT DISTINCT st.a AS a FROM m) WHERE a IN (1)",
    "SELECT b FROM (SELECT st.b AS b FROM m UNION SELECT st.b FROM m) WHERE b IN ('x')",
    "SELECT a FROM (SELECT st.a AS a FROM m EXCEPT SELECT 7) WHERE a IN (1)",
    "SELECT k FROM (SELECT k, st.a AS a FROM m ORDER BY k LIMIT 10) WHERE a IN (1)",
    "SELECT k, count(*) FILTER (WHERE st.a IN (1)) AS n FROM m GROUP BY k",
    "SELECT k, CASE WHEN st.a IN (1) THEN 1 ELSE 2 END AS c FROM m",
    "SELECT k FROM m WHERE CASE WHEN k > 0 THEN st.a IN (1) ELSE false END",
    "SELECT k FROM m WHERE coalesce(st.a IN (1), false)",
    "SELECT k FROM m WHERE if(st.d, true, NULL)",
    "SELECT k, x FROM m LATERAL VIEW explode(array(st.a, 5)) AS x WHERE x IN (1)",
    "SELECT n.k FROM (SELECT k, named_struct('p', st.a) AS q FROM m) AS n WHERE n.q.p IN (1)",
    "SELECT n.k FROM (SELECT k, st.in AS q FROM m) AS n WHERE n.q.c IN (1)",
    "SELECT max(k) AS k FROM m WHERE st.a IN (1) HAVING max(st.a) IN (1)",
]


@pytest.mark.spark
@pytest.mark.parametrize("sql", QUERIES)
def test_conditions_on_members_equal_spark(sql: str, spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "m" / "part-0.parquet"
    file.parent.mkdir()
    pq.write_table(pa.Table.from_pylist(ROWS, SCHEMA), file)
    tables = EdgeTables(tmp_path, {"m": (str(file),)}, {"m": SCHEMA})
    plain = spark.newSession()
    plain.read.parquet(str(file)).createOrReplaceTempView("m")
    expected = ask_spark(plain, sql)
    assert expected.rows is not None, expected.error
    for options in (SINGLE, SHUFFLED[3]):
        assert not differences(sql, tables.catalog, InProcessRunner(tables), expected, options)
