"""NaN lies beyond the bounds in Parquet's footers: no engine of ours may go by them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.planner.options import PlannerOptions
from tests.differential.edge_tables import EdgeTables
from tests.differential.inprocess import InProcessRunner
from tests.differential.query_check import ask_spark, differences

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

VALUES = {"small": [0.0, math.nan, 0.5, None], "same": [5.0, math.nan, 5.0], "none": [math.nan] * 2}
FILTERS = [
    "x < 1D", "x <= 0.5D", "x > 1D", "NOT (x < 1D)", "x <> 5D", "x = double('NaN')", "x <=> double('NaN')", "isnan(x)",
    "x BETWEEN 0D AND 1D", "x IN (5D, double('NaN'))", "coalesce(x, 0D) < 1D", "abs(x) < 2D", "-x > -1D", "y < 1F", "y > 6F",
    "s.x < 1D", "s.x > 6D", "a[0] < 1D", "CASE WHEN x < 1D THEN true ELSE false END", "x + 0D > 6D",
]  # fmt: skip


@pytest.mark.parametrize("names", [("small",), ("same",), ("small", "same", "none")])
def test_filters_see_nan(oracle: SparkSession, tmp_path: Path, names: tuple[str, ...]) -> None:
    tables = _write(tmp_path, names)
    session = oracle.newSession()
    # Spark itself skips row groups by these bounds, and then gives other rows than for any other
    # source of the same values.
    session.conf.set("spark.sql.parquet.filterPushdown", "false")
    session.conf.set("spark.sql.ansi.enabled", "true")
    session.read.parquet(*tables.files["t"]).createOrReplaceTempView("t")
    branches = [f"SELECT {n} AS n, id FROM t WHERE {text}" for n, text in enumerate(FILTERS)]
    compared = ", ".join(f"{text} AS b{n}" for n, text in enumerate(FILTERS))
    for sql in (
        " UNION ALL ".join(branches),
        f"SELECT id, {compared} FROM t",
        "SELECT max(x), min(x), max(y), max(s.x) AS sx, count(*) FROM t",
        "SELECT l.id, r.id AS other FROM t l JOIN t r ON l.x = r.x",
    ):
        expected = ask_spark(session, sql)
        runner = InProcessRunner(tables, session)
        assert expected.rows is not None, expected.error
        assert differences(sql, tables.catalog, runner, expected, PlannerOptions()) == [], sql


def _write(folder: Path, names: tuple[str, ...]) -> EdgeTables:
    """The table `t`, a file for each name."""
    paths = []
    number = 0
    for name in names:
        values = VALUES[name]
        path = folder / "t" / f"{name}.parquet"
        path.parent.mkdir(exist_ok=True)
        table = pa.table(
            {
                "id": pa.array(range(number, number + len(values)), pa.int64()),
                "x": pa.array(values, pa.float64()),
                "y": pa.array(values, pa.float32()),
                "s": pa.array([{"x": value} for value in values]),
                "a": pa.array([[value] for value in values]),
            }
        )
        number += len(values)
        pq.write_table(table, path)
        paths.append(str(path))
    return EdgeTables(folder, {"t": tuple(paths)}, {"t": table.schema})
