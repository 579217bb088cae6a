"""Statistics of NaN, infinity and numbers whose powers are infinite: Spark's results, or none."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.errors import QueryError
from stagecoach.planner import plan_query
from tests.differential.edge_tables import EdgeTables
from tests.differential.inprocess import InProcessRunner, multiset
from tests.differential.query_check import SINGLE, ask_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

VALUES = [math.nan, math.inf, -math.inf, 1.0, 1e-300, 1e300, -0.0, None]
NATIVE = ["stddev_samp(x)", "stddev_pop(x)", "var_samp(x)", "var_pop(x)", "var_pop(DISTINCT x)", "stddev_pop(f)", "corr(x, y)", "regr_avgx(x, y)", "regr_avgy(x, y)", "regr_count(x, y)", "sum(x)", "avg(x)"]  # fmt: skip
GUARDED = ["skewness(x)", "kurtosis(x)", "covar_pop(x, y)", "covar_samp(x, y)", "regr_sxx(x, y)", "regr_syy(x, y)", "regr_sxy(x, y)", "regr_slope(x, y)", "regr_intercept(x, y)", "regr_r2(x, y)"]  # fmt: skip


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> EdgeTables:
    """Groups of one, two and three rows; of those below 0 every number is an ordinary one."""
    rows: list[tuple[int, float | None, float | None]] = []
    odd = [c for n in (1, 2, 3) for c in itertools.combinations_with_replacement(VALUES, n)]
    for number, xs in enumerate(odd):
        rows += [(number, x, y) for x, y in zip(xs, reversed(xs), strict=True)]
    tame = itertools.product([2.5, -7.0, 0.0, None], repeat=3)
    for number, xs in enumerate(tame):
        rows += [(-1 - number, x, y) for x, y in zip(xs, (*xs[1:], 4.0), strict=True)]
    g, x, y = zip(*rows, strict=True)
    xs64 = pa.array(x, pa.float64())
    table = pa.table({"g": g, "x": xs64, "y": y, "f": xs64.cast(pa.float32(), safe=False)})
    folder = tmp_path_factory.mktemp("odd")
    path = folder / "t" / "a.parquet"
    path.parent.mkdir()
    pq.write_table(table, path)
    return EdgeTables(folder, {"t": (str(path),)}, {"t": table.schema})


def test_statistics_of_odd_floats_are_sparks(oracle: SparkSession, groups: EdgeTables) -> None:
    session = oracle.newSession()
    session.conf.set("spark.sql.ansi.enabled", "true")
    session.read.parquet(*groups.files["t"]).createOrReplaceTempView("t")
    runner = InProcessRunner(groups)

    def both(calls: list[str], where: str) -> list[str]:
        items = ", ".join(f"{call} AS c{i}" for i, call in enumerate(calls))
        sql = f"SELECT g, {items} FROM t WHERE {where} GROUP BY g"
        expected = ask_spark(session, sql).rows
        assert expected is not None
        graph = plan_query(sql, groups.catalog, SINGLE)
        assert {stage.engine for stage in graph.stages} == {"duckdb"}
        found = runner.run(graph)
        assert found.num_rows == expected.num_rows > 0
        left, right = (sorted(t.to_pylist(), key=lambda row: row["c0"]) for t in (
            expected.rename_columns(found.schema.names), found))  # fmt: skip
        return [
            f"{calls[i]} of group {ours['c0']}: {theirs[name]} in Spark, ours {ours[name]}"
            for theirs, ours in zip(left, right, strict=True)
            for i, name in enumerate(found.schema.names[1:])
            if not same(theirs[name], ours[name])
        ]

    assert both(NATIVE, "true") == []
    assert both(GUARDED, "g < 0") == []
    for call in GUARDED:  # the stage runs on Spark, whose answer is right
        for where in ("x = double('NaN')", "x = double('Infinity')", "x = 1e300"):
            sql = f"SELECT {call} AS v FROM t WHERE {where} OR x = 1"
            with pytest.raises(QueryError):
                runner.run(plan_query(sql, groups.catalog, SINGLE))


def test_one_value_of_many_keeps_the_sign_of_zero(groups: EdgeTables) -> None:
    names = ["max_by(f, g)", "min_by(x, g)", "first(f)", "any_value(x)", "max_by(x, g)"]
    items = ", ".join(f"{call} AS c{i}" for i, call in enumerate(names))
    graph = plan_query(f"SELECT {items} FROM t WHERE g = 6", groups.catalog, SINGLE)
    assert {stage.engine for stage in graph.stages} == {"duckdb"}
    (row,) = InProcessRunner(groups).run(graph).to_pylist()
    assert [str(value) for value in row.values()] == ["-0.0"] * len(names)
    for call in ("max_by(array(x), g)", "first(array(x))", "any_value(struct(f))"):
        graph = plan_query(f"SELECT {call} AS v FROM t", groups.catalog, SINGLE)
        assert {stage.engine for stage in graph.stages} == {"spark"}, call


EXTREMES = ", ".join(f"{call} AS c{i}" for i, call in enumerate(["min(x)", "max(x)", "min(f)", "max(f)", "min(-y) FILTER (WHERE y < 1)"]))  # fmt: skip


def test_of_both_zeros_the_first_is_kept(oracle: SparkSession, groups: EdgeTables) -> None:
    session = oracle.newSession()
    session.read.parquet(*groups.files["t"]).createOrReplaceTempView("t")
    for sql in (f"SELECT g, {EXTREMES} FROM t GROUP BY g", f"SELECT {EXTREMES} FROM t WHERE x = 0"):
        expected = ask_spark(session, sql).rows
        assert expected is not None
        graph = plan_query(sql, groups.catalog, SINGLE)
        assert {stage.engine for stage in graph.stages} == {"duckdb"}
        assert multiset(InProcessRunner(groups).run(graph)) == multiset(expected)


def test_several_threads_know_no_first_zero(groups: EdgeTables) -> None:
    graph = plan_query(f"SELECT {EXTREMES} FROM t WHERE x = 0", groups.catalog, SINGLE)
    (stage,) = graph.stages
    wide = replace(graph, stages=(replace(stage, cores=2),))
    with pytest.raises(QueryError, match="both zeros"):
        InProcessRunner(groups).run(wide)
    graph = plan_query("SELECT min(x) AS c FROM t WHERE x >= 1", groups.catalog, SINGLE)
    wide = replace(graph, stages=(replace(graph.head, cores=2),))
    assert InProcessRunner(groups).run(wide).to_pydict() == {"c0": [1.0]}


def same(theirs: float | None, ours: float | None) -> bool:
    if theirs is None or ours is None:
        return theirs is ours
    both_nan = math.isnan(theirs) and math.isnan(ours)
    return both_nan or math.isclose(theirs, ours, rel_tol=1e-9, abs_tol=1e-9)
