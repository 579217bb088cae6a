"""Queries over Iceberg tables beside plain Spark over the rows that a model says they have."""

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
from tests.infra.formats.iceberg.answers import FORCED, as_set, catalog_of
from tests.infra.formats.iceberg.handmade import HandmadeTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SQL = (
    "SELECT * FROM t",
    "SELECT name, count(*) AS n, sum(amount) AS a, max(at) AS m FROM t GROUP BY name",
    "SELECT a.k, b.name, a.place.city AS c FROM t a JOIN t b ON a.k = b.k + 10 WHERE a.k > 12",
    "SELECT k FROM t WHERE at >= TIMESTAMP'2024-01-03' AND extra IS NULL",
    # Only Spark runs this one, over tables that are fed to it.
    "SELECT k, to_xml(named_struct('c', place.city)) AS x FROM t WHERE k < 15",
)


def made(folder: Path) -> tuple[str, list[dict[str, Any]]]:
    """A table with evolution and deletes of every kind, and its rows."""
    table = HandmadeTable(folder / "t", 3)

    def column(number: int, name: str, kind: Any) -> dict[str, Any]:
        return {"id": number, "name": name, "type": kind}

    def place(*names: str) -> dict[str, Any]:
        fields = [{"id": 10 + i, "name": n, "type": "string", "required": False} for i, n in enumerate(names)]  # fmt: skip
        return {"type": "struct", "fields": fields}

    start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    model = [
        {"k": k, "name": None if k % 7 == 0 else f"n{k % 3}", "amount": Decimal(k) / 4, "at": start + dt.timedelta(hours=5 * k), "place": None if k % 5 == 0 else {"city": f"c{k}"}}
        for k in range(40)
    ]  # fmt: skip
    old = pa.schema([("k", pa.int32()), ("label", pa.string()), ("amount", pa.decimal128(9, 2)), ("at", pa.timestamp("us", "UTC")), ("place", pa.struct([("town", pa.string())]))])  # fmt: skip
    new = pa.schema([("k", pa.int64()), ("name", pa.string()), ("amount", pa.decimal128(12, 2)), ("at", pa.timestamp("us", "UTC")), ("place", pa.struct([("city", pa.string())])), ("extra", pa.string())])  # fmt: skip
    ids = {"k": 1, "label": 2, "name": 2, "amount": 3, "at": 4, "place": 5, "place.town": 10, "place.city": 10, "extra": 6}  # fmt: skip
    table.schema(column(1, "k", "int"), column(2, "label", "string"), column(3, "amount", "decimal(9,2)"), column(4, "at", "timestamptz"), column(5, "place", place("town")))  # fmt: skip

    def before(rows: list[dict[str, Any]]) -> pa.Table:
        shown = [{**r, "label": r["name"], "place": r["place"] and {"town": r["place"]["city"]}} for r in rows]  # fmt: skip
        return pa.Table.from_pylist(shown, old)

    one, two = (table.data(before(model[i : i + 10]), ids=ids) for i in (0, 10))
    table.commit(one, two)
    table.schema(column(1, "k", "long"), column(2, "name", "string"), column(3, "amount", "decimal(12,2)"), column(4, "at", "timestamptz"), column(5, "place", place("city")), column(6, "extra", "string"))  # fmt: skip
    three, four = (
        table.data(pa.Table.from_pylist([{**r, "extra": "x"} for r in model[i : i + 10]], new), ids=ids)
        for i in (20, 30)
    )  # fmt: skip
    table.commit(three, four)
    table.commit(
        table.position_deletes({one.path: [1, 2], three.path: [0]}),
        *table.vectors({two.path: [3, 9]}),
        table.equality_deletes(pa.table({"k": pa.array([5, 35, 99])})),
        table.equality_deletes(
            pa.table({"name": pa.array([None], pa.string()), "k": pa.array([14])})
        ),
    )
    gone = {1, 2, 20, 13, 19, 5, 35, 14}
    rows = [{**r, "extra": None if r["k"] < 20 else "x"} for r in model if r["k"] not in gone]
    return table.save(), rows


@pytest.mark.parametrize("engine", ["auto", "spark"])
def test_rows_are_those_of_spark(
    engine: Any, spark: SparkSession, spark_settings: EngineSettings, tmp_path: Path
) -> None:
    location, rows = made(tmp_path)
    catalog = catalog_of(tmp_path, t=location)
    plain = spark.newSession()
    kinds = "k bigint, name string, amount decimal(12,2), at timestamp, place struct<city: string>, extra string"  # fmt: skip
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
