"""Queries over Delta tables beside plain Spark over the rows that a model says they have."""

from __future__ import annotations

import dataclasses
import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from stagecoach.infra.config.settings import EngineSettings
from stagecoach.planner.planning import plan_query
from tests.contexts import new_context, run_stages
from tests.infra.formats.delta.handmade import HandmadeTable, catalog_of, field, struct
from tests.infra.formats.iceberg.answers import FORCED, as_set

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SQL = (
    "SELECT * FROM t",
    "SELECT name, count(*) AS n, sum(amount) AS a, max(at) AS m FROM t GROUP BY name",
    "SELECT a.k, b.name, a.place.city AS c FROM t a JOIN t b ON a.k = b.k + 10 WHERE a.k > 12",
    "SELECT k FROM t WHERE at >= TIMESTAMP'2024-01-03' AND extra IS NULL",
    "SELECT x, count(*) AS n FROM t WHERE x IS NOT NULL GROUP BY x",
    # Only Spark runs this one, over tables that are fed to it.
    "SELECT k, to_xml(named_struct('c', place.city)) AS x FROM t WHERE k < 15",
)


def made(folder: Path) -> tuple[Path, list[dict[str, Any]]]:
    """A table with evolution, partitions and deletion vectors of every kind, and its rows."""
    mode = {"delta.columnMapping.mode": "name"}
    table = HandmadeTable(folder / "t", ["columnMapping", "deletionVectors", "typeWidening"], mode)

    def column(number: int, name: str, kind: Any) -> dict[str, Any]:
        return field(name, kind, id_=number, physical=f"c{number}")

    start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    model = [
        {
            "k": k, "name": None if k % 7 == 0 else f"n{k % 3}", "amount": Decimal(k) / 4, "at": start + dt.timedelta(hours=5 * k),
            "place": None if k % 5 == 0 else {"city": f"c{k}"}, "x": [0.0, -0.0, float("nan"), None][k % 4], "p": ["a b", None, "%"][k // 10 % 3],
        }
        for k in range(40)
    ]  # fmt: skip
    table.schema(column(1, "k", "integer"), column(2, "label", "string"), column(3, "amount", "decimal(9,2)"), column(4, "at", "timestamp"), column(5, "place", struct(column(6, "town", "string"))), column(7, "x", "double"), column(9, "q", "string"), partitioned=["q"])  # fmt: skip

    def add(first: int, *, is_new: bool) -> dict[str, Any]:
        key, amount = (pa.int64(), 12) if is_new else (pa.int32(), 9)
        kinds = [("c1", key), ("c2", pa.string()), ("c3", pa.decimal128(amount, 2)), ("c4", pa.timestamp("us", "UTC")), ("c5", pa.struct([("c6", pa.string())])), ("c7", pa.float64())]  # fmt: skip
        rows = [
            {"c1": r["k"], "c2": r["name"], "c3": r["amount"], "c4": r["at"], "c5": r["place"] and {"c6": r["place"]["city"]}, "c7": r["x"], "c8": "x"}
            for r in model[first : first + 10]
        ]  # fmt: skip
        kinds += [("c8", pa.string())] if is_new else []
        return table.data(pa.Table.from_pylist(rows, pa.schema(kinds)), {"c9": model[first]["p"]})

    one, two = add(0, is_new=False), add(10, is_new=False)
    table.commit(one, two)
    table.schema(column(1, "k", "long"), column(2, "name", "string"), column(3, "amount", "decimal(12,2)"), column(4, "at", "timestamp"), column(5, "place", struct(column(6, "city", "string"))), column(7, "x", "double"), column(8, "extra", "string"), column(9, "p", "string"), partitioned=["p"])  # fmt: skip
    three, four = add(20, is_new=True), add(30, is_new=True)
    table.commit(three, four)
    table.delete(one, [1, 2])
    table.delete(two, [3, 9], "i")
    table.checkpoint("classic")
    table.delete(three, [0], "p")
    gone = {1, 2, 13, 19, 20}
    rows = [{**r, "extra": None if r["k"] < 20 else "x"} for r in model if r["k"] not in gone]
    return table.folder, rows


@pytest.mark.parametrize("engine", ["auto", "spark"])
def test_rows_are_those_of_spark(
    engine: Any, spark: SparkSession, spark_settings: EngineSettings, tmp_path: Path
) -> None:
    location, rows = made(tmp_path)
    catalog = catalog_of(tmp_path, t=location)
    plain = spark.newSession()
    kinds = "k bigint, name string, amount decimal(12,2), at timestamp, place struct<city: string>, x double, extra string, p string"  # fmt: skip
    plain.createDataFrame(rows, kinds).createOrReplaceTempView("t")
    settings = dataclasses.replace(spark_settings, storage_root=str(tmp_path / "store"))
    options = dataclasses.replace(FORCED, engine=engine)
    for sql in SQL if engine == "auto" else SQL[:3:2]:
        graph = plan_query(sql, catalog, options, name="q")
        found, results = run_stages(new_context(graph, settings, catalog, lambda: spark))
        expected = plain.sql(sql).toArrow().cast(found.schema).to_pylist()
        assert expected, sql
        assert as_set(found.to_pylist()) == as_set(expected), sql
        if engine == "auto":
            is_sparks = "to_xml" in sql
            assert {r.engine for r in results} == {"spark" if is_sparks else "duckdb"}, sql
