"""Differences from Spark that only running both shows; see the page of differences."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError

from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.engines.spark.arbiter import SparkArbiter
from stagecoach.infra.errors import QueryError
from stagecoach.planner.errors import ForbiddenSqlError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.planning import plan_query
from tests.differential.edge_tables import EdgeTables
from tests.differential.inprocess import InProcessRunner, close, collect
from tests.differential.query_check import SHUFFLED, SINGLE
from tests.infra.spark_runs import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def ours(
    runner: InProcessRunner, tables: EdgeTables, sql: str, options: PlannerOptions
) -> pa.Table:
    return runner.run(plan_query(sql, tables.catalog, options))


@pytest.mark.parametrize("function", ["first", "last", "any_value"])
def test_first_and_last_are_some_row_of_their_group(
    oracle: SparkSession, tables: EdgeTables, runner: InProcessRunner, function: str
) -> None:
    values: dict[object, set[object]] = {}
    rows = collect(oracle.sql("SELECT k, id FROM x")).to_pydict()
    for key, value in zip(*rows.values(), strict=True):
        values.setdefault(key, set()).add(value)
    for options in SHUFFLED.values():
        found = ours(runner, tables, f"SELECT k, {function}(id) FROM x GROUP BY k", options)
        keys, picked = found.to_pydict().values()
        assert set(keys) == set(values)
        assert all(value in values[key] for key, value in zip(keys, picked, strict=True))


def test_sums_of_floats_differ_in_their_last_digits_only(
    oracle: SparkSession, tables: EdgeTables, runner: InProcessRunner
) -> None:
    sql = "SELECT sum(v / 3.0D), avg(v / 7.0D), sum(abs(v / 3.0D)) FROM x"
    (expected,) = collect(oracle.sql(sql)).to_pylist()
    for options in SHUFFLED.values():
        (found,) = ours(runner, tables, sql, options).to_pylist()
        pairs = zip(expected.values(), found.values(), strict=True)
        assert all(close(a, b, expected["c2"]) for a, b in pairs)


@pytest.mark.parametrize(
    ("call", "values"),
    [
        ("sum", ("9223372036854775807", "1", "-1")),
        ("sum", ("INTERVAL '106751991' DAY", "INTERVAL '10' DAY", "INTERVAL '-10' DAY")),
        ("avg", ("INTERVAL '106751991' DAY", "INTERVAL '10' DAY", "INTERVAL '-10' DAY")),
    ],
)
def test_a_sum_may_overflow_on_the_way(
    oracle: SparkSession,
    tables: EdgeTables,
    runner: InProcessRunner,
    call: str,
    values: tuple[str, str, str],
) -> None:
    first, second, third = (f"({value})" for value in values)

    def query(rows: str) -> str:
        of_one_task = f"SELECT /*+ COALESCE(1) */ a FROM VALUES {rows} AS t(a)"
        return f"SELECT {call}(a) AS s FROM ({of_one_task}) AS q"

    sql = query(f"{first}, {second}, {third}")
    with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
        collect(oracle.sql(sql))
    (other,) = collect(oracle.sql(query(f"{second}, {third}, {first}"))).to_pylist()
    for options in SHUFFLED.values():
        (found,) = ours(runner, tables, sql, options).to_pylist()
        assert [*found.values()] == [*other.values()]


def test_the_smallest_of_both_zeros_is_one_of_them(
    oracle: SparkSession, tables: EdgeTables, runner: InProcessRunner
) -> None:
    sql = "SELECT min(abs(kd) * 0D), max(CAST(kd * 0D AS FLOAT)) FROM x WHERE kd < 2"
    (expected,) = collect(oracle.sql(sql)).to_pylist()
    for options in SHUFFLED.values():
        (found,) = ours(runner, tables, sql, options).to_pylist()
        assert [*found.values()] == [*expected.values()] == [0.0, 0.0]


def test_one_of_several_errors_is_reported(
    oracle: SparkSession, tables: EdgeTables, runner: InProcessRunner
) -> None:
    sql = "SELECT 1 / (id - id), CAST('x' || id AS INT) FROM x"
    with pytest.raises(Exception, match=r"DIVIDE_BY_ZERO|CAST_INVALID_INPUT"):
        collect(oracle.sql(sql))
    with pytest.raises(QueryError, match=r"DIVIDE_BY_ZERO|CAST_INVALID_INPUT|Conversion Error"):
        ours(runner, tables, sql, SINGLE)


@pytest.mark.parametrize(
    "sql", ["SELECT max(1 / 0) AS a FROM z", "SELECT v FROM x WHERE v > 1000 AND 1 / 0 > v"]
)
def test_an_error_that_no_row_needs_is_not_raised(
    oracle: SparkSession, tables: EdgeTables, runner: InProcessRunner, sql: str
) -> None:
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        collect(oracle.sql(sql))
    assert ours(runner, tables, sql, SINGLE).num_rows <= 1


def test_a_shift_may_follow_an_array(
    oracle: SparkSession, tables: EdgeTables, runner: InProcessRunner
) -> None:
    with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR"):
        oracle.sql("SELECT array(id) AS a, id >> 1 AS b FROM x")
    found = ours(runner, tables, "SELECT array(id) AS a, id >> 1 AS b FROM x", SINGLE)
    expected = collect(oracle.sql("SELECT id >> 1 AS b, array(id) AS a FROM x"))
    assert sorted(found["c1"].to_pylist()) == sorted(expected["c0"].to_pylist())


@pytest.mark.parametrize("call", ["current_user()", "current_database()", "current_catalog()", "version()"])  # fmt: skip
def test_functions_of_the_session_are_those_of_the_runs_spark(
    spark: SparkSession, tables: EdgeTables, call: str
) -> None:
    graph = plan_query(f"SELECT {call} FROM x", tables.catalog, arbiter=SparkArbiter(lambda: spark))
    assert graph.head.engine == "spark"


@pytest.mark.parametrize("moment", ["current_timestamp()", "current_date() - INTERVAL 1 DAY"])
def test_time_travel_to_a_computed_moment_is_refused(
    spark: SparkSession, tables: EdgeTables, moment: str
) -> None:
    sql = f"SELECT id FROM x TIMESTAMP AS OF {moment}"
    with pytest.raises(ForbiddenSqlError, match="RelationTimeTravel"):
        plan_query(sql, tables.catalog, arbiter=SparkArbiter(lambda: spark))


def test_an_alias_in_a_generator_is_read(
    oracle: SparkSession, tables: EdgeTables, runner: InProcessRunner
) -> None:
    sql = "SELECT id + 1 AS a, explode(array(a)) AS b FROM x"
    with pytest.raises(Py4JJavaError, match="INTERNAL_ERROR"):
        collect(oracle.sql(sql))
    left, right = ours(runner, tables, sql, SINGLE).to_pydict().values()
    assert left == right


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "csc", "sec", "cot"])
def test_sines_run_on_spark_unless_they_need_not_be_exact(tables: EdgeTables, name: str) -> None:
    sql = f"SELECT {name}(id) FROM x"
    engines = {
        exact: plan_query(sql, tables.catalog, PlannerOptions(exact_math=exact)).head.engine
        for exact in (True, False)
    }
    assert engines == {True: "spark", False: "duckdb"}


def test_spark_leaves_out_negative_zeros_of_a_parquet_dictionary(
    oracle: SparkSession, spark_settings: EngineSettings, tmp_path: Path
) -> None:
    """parquet-mr looks for 0.0 in the dictionary with `Double.equals`, by which -0.0 is another."""
    file = tmp_path / "zeros.parquet"
    pq.write_table(pa.table({"f": pa.array([-0.0] * 5, pa.float64())}), file)
    (tmp_path / "catalog.yaml").write_text(f"tables:\n  zeros:\n    location: {file}\n")
    catalog = load_catalog(tmp_path / "catalog.yaml")
    settings = dataclasses.replace(spark_settings, storage_root=str(tmp_path / "store"))
    oracle.read.parquet(str(file)).createOrReplaceTempView("zeros")
    for condition in ("f = 0", "f >= 0D", "f IN (0D, 1D)"):
        sql = f"SELECT count(*) AS n FROM zeros WHERE {condition}"
        assert collect(oracle.sql(sql)).to_pydict() == {"c0": [0]}
        rows, _ = run(plan_query(sql, catalog, PlannerOptions()), catalog, settings, oracle)
        assert rows == ['{"n": 5}']
