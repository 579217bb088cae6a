"""`approx_count_distinct` on DuckDB is Spark's to the last unit: its constants, estimates and states."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.planner import plan_query
from stagecoach.planner.hyperloglog import constants
from stagecoach.planner.hyperloglog.estimate import PRECISIONS, bias_of, precision_of
from tests.differential.edge_tables import EdgeTables
from tests.differential.engine_mix import mixed, on_spark
from tests.differential.inprocess import InProcessRunner
from tests.differential.query_check import ALL_OPTIONS, ask_spark, differences, graph_differences
from tests.share import share, some_ways

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# Of each precision, the smallest and the greatest deviation that has it.
DEVIATIONS = [
    round(1.106 / 2 ** ((precision - part) / 2), 6) for precision in PRECISIONS for part in (0.01, 0.99)
]  # fmt: skip


@pytest.fixture(scope="module")
def numbers(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[SparkSession, EdgeTables, InProcessRunner]:
    """Groups of 0 to 100,000 distinct values, in two files."""
    folder = tmp_path_factory.mktemp("numbers")
    sizes = [0, 1, 2, 30, 70, 130, 700, 900, 1300, 2500, 5000, 9000, 20000, 60000, 100000]
    groups, values = [], []
    for group, size in enumerate(sizes):
        groups += [group] * (size + 1)
        values += [None, *((group << 32) + 7 * v for v in range(size))]
    table = pa.table(
        {"g": pa.array(groups, pa.int32()), "v": pa.array(values, pa.int64())}
    ).append_column("s", pa.array([None if v is None else f"n{v}" for v in values]))
    path = folder / "t"
    path.mkdir()
    files = tuple(str(path / f"{part}.parquet") for part in range(2))
    for part, file in enumerate(files):
        pq.write_table(table.filter(pa.array([i % 2 == part for i in range(len(values))])), file)
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "true")
    session.read.parquet(*files).createOrReplaceTempView("t")
    tables = EdgeTables(folder, {"t": files}, {"t": table.schema})
    return session, tables, InProcessRunner(tables, session)


def helper(spark: SparkSession, deviation: float) -> JavaObject:
    return spark._jvm.org.apache.spark.sql.catalyst.util.HyperLogLogPlusPlusHelper(deviation)


def test_constants_are_sparks(spark: SparkSession) -> None:
    spark_has = helper(spark, 0.05)
    for precision in PRECISIONS:
        place = precision - 4
        assert constants.THRESHOLDS[precision] == spark_has.THRESHOLDS()[place]
        assert constants.raw_estimates(precision) == tuple(spark_has.RAW_ESTIMATE_DATA()[place])
        assert constants.biases(precision) == tuple(spark_has.BIAS_DATA()[place])


def test_biases_are_sparks(spark: SparkSession) -> None:
    for deviation in DEVIATIONS:
        precision = precision_of(deviation)
        assert precision is not None
        spark_has = helper(spark, deviation)
        estimates = constants.raw_estimates(precision)
        between = [(a + b) / 2 + shift for a, b in zip(estimates, estimates[6:], strict=False) for shift in (-0.1, 0.1)]  # fmt: skip
        for estimate in [0.5, *estimates[::7], *between[::5], estimates[-1] + 0.1, 5 * 2.0**precision]:  # fmt: skip
            assert bias_of(estimate, precision) == spark_has.estimateBias(estimate)


@pytest.mark.parametrize("options", ["single", "shuffle-3"])
def test_estimates_of_any_number_are_sparks(
    numbers: tuple[SparkSession, EdgeTables, InProcessRunner], options: str
) -> None:
    session, tables, runner = numbers
    deviations = share(DEVIATIONS, 6)
    items = ", ".join(f"approx_count_distinct(v, {d!r}D) AS d{i}" for i, d in enumerate(deviations))
    for sql in (
        f"SELECT g, {items}, approx_count_distinct(s) AS s FROM t GROUP BY g",
        f"SELECT {items}, approx_count_distinct(s) AS s FROM t",
    ):
        wrong = differences(sql, tables.catalog, runner, ask_spark(session, sql), ALL_OPTIONS[options])  # fmt: skip
        assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT g, approx_count_distinct(v) AS n, approx_count_distinct(s, 0.02) AS m FROM t GROUP BY g",
        "SELECT g % 3 AS k, g % 2 AS l, approx_count_distinct(v) FILTER (WHERE v % 3 = 0) AS n, count(*) AS c FROM t GROUP BY CUBE (g % 3, g % 2)",
        "SELECT approx_count_distinct(v) AS n FROM t WHERE v < 0",
        "SELECT a.g, (SELECT approx_count_distinct(v) FROM t b WHERE b.g = a.g + 14) AS n FROM t a WHERE v IS NULL",
        "SELECT g FROM t GROUP BY g HAVING approx_count_distinct(v) > 1000",
    ],
)  # fmt: skip
def test_states_of_both_engines_merge(
    numbers: tuple[SparkSession, EdgeTables, InProcessRunner], sql: str
) -> None:
    session, tables, runner = numbers
    expected = ask_spark(session, sql)
    assert expected.rows is not None
    wrong = []
    for name, options in some_ways(sql, ALL_OPTIONS).items():
        graph = plan_query(sql, tables.catalog, options)
        wrong += graph_differences(graph, runner, expected)
        if name.startswith("shuffle"):
            for variant in (on_spark(graph), mixed(graph, name), mixed(graph, sql)):
                wrong += graph_differences(variant, runner, expected, native=False)
    assert not wrong, "\n".join(wrong)


def test_precisions_outside_the_tables_stay_on_spark(
    numbers: tuple[SparkSession, EdgeTables, InProcessRunner],
) -> None:
    _, tables, _ = numbers
    for deviation in ("0.3", "0.14", "0.005", "0.069125", "0.001"):
        graph = plan_query(f"SELECT approx_count_distinct(v, {deviation}) AS n FROM t", tables.catalog)  # fmt: skip
        assert "spark" in {stage.engine for stage in graph.stages}, deviation
