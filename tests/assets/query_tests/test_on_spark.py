"""Tests on Spark: what differs from Spark fails, and the values of all types survive the way there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from stagecoach.assets.plans.planner import planner_of
from stagecoach.assets.project.front_matter import parse_front_matter
from stagecoach.assets.project.queries import Query
from stagecoach.assets.query_tests.parse import parse_tests
from stagecoach.assets.query_tests.project_tables import ProjectTables
from stagecoach.assets.query_tests.run import SparkSide, TestResult, TestRunner
from stagecoach.assets.query_tests.unit import TestCase, UnitPlanner
from stagecoach.infra.engines.protocol import Resources
from stagecoach.infra.runtime.in_memory.on_spark import MemorySpark
from stagecoach.planner.catalog import MappingCatalog, TableInfo
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.types import Field, parse_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {
    "i": "int", "x": "double", "d": "date", "t": "timestamp", "n": "timestamp_ntz", "s": "string",
    "b": "binary", "p": "decimal(38,10)", "l": "array<int>", "m": "map<string,double>",
    "q": "struct<a:int,b:date>",
}  # fmt: skip
CATALOG = MappingCatalog([TableInfo("t", tuple(Field(n, parse_type(k)) for n, k in COLUMNS.items()))])  # fmt: skip


def run(sql: str, text: str, folder: Path, spark: SparkSide | None) -> TestResult:
    query = Query(name="q", sql=sql, front_matter=parse_front_matter(sql))
    file, places = parse_tests(text, folder / "q.yaml")
    plan = planner_of(PlannerOptions())
    runner = TestRunner(
        planner=UnitPlanner(
            project=ProjectTables(CATALOG, [query], plan), plan=plan, time_zone="UTC"
        ),
        resources=Resources(
            time_zone="UTC", memory_bytes=256 << 20, spill_dir=str(folder / "spill")
        ),
        spark=spark,
    )
    return runner.run(TestCase(file=file, index=0, path=folder / "q.yaml", places=places, query=query))  # fmt: skip


class OtherSpark:
    """A Spark that gives one row more."""

    def stage(self, *_: Any) -> pa.Table:
        raise AssertionError("no stage needs Spark")

    def query(
        self,
        graph: StageGraph,
        tables: Mapping[str, tuple[Sequence[Field], pa.Table]],
        values: Mapping[str, Any],
    ) -> tuple[tuple[Field, ...], pa.Table]:
        assert list(tables) == ["t"]
        return graph.result, pa.table({"c0": pa.array([1, 2], pa.int32())})


def test_rows_that_are_not_sparks_fail(tmp_path: Path) -> None:
    text = "tests: [{name: a, given: {t: [{i: 1}]}, expect: [{i: 1}]}]"
    assert run("SELECT i FROM t", text, tmp_path, None).outcome == "passed"
    result = run("SELECT i FROM t", text, tmp_path, OtherSpark())
    assert result.outcome == "failed"
    assert "Spark and Stagecoach give different rows" in result.message
    assert result.rows is not None
    assert (result.rows.left, result.rows.right) == ("Spark", "Stagecoach")
    assert result.rows.difference.pairs == ((1, None),)


ROW = """{i: -1, x: .nan, d: 0001-01-01, t: 9999-12-31 23:59:59.999999, n: 1969-12-31 23:59:59.9,
      s: "", b: 0x00ff, p: 1234567890123456789012345678.0123456789, l: [1, null],
      m: {a: -0.0}, q: {b: 2024-02-29}}"""


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM t", f"[{ROW}, {{i: null}}]"),
        ("SELECT *, sin(x) AS y FROM t", f"[{ROW}, {{i: null}}]"),
        ("SELECT count(*) AS i FROM t", "[{i: 2}]"),
        ("SELECT i FROM t LIMIT 0", "[]"),
        ("WITH RECURSIVE r(i) AS (SELECT 1 FROM t UNION ALL SELECT i + 1 FROM r WHERE i < 2) SELECT i FROM r", "[{i: 1}, {i: 1}, {i: 2}, {i: 2}]"),
    ],
)  # fmt: skip
def test_values_survive(sql: str, expected: str, spark: SparkSession, tmp_path: Path) -> None:
    text = f"tests:\n  - name: a\n    given: {{t: [{ROW}, {{}}]}}\n    expect: {expected}\n"
    side = MemorySpark(session=lambda: spark, time_zone="UTC")
    result = run(sql, text, tmp_path, side)
    assert result.outcome == "passed", result


@pytest.mark.slow
@pytest.mark.spark
def test_the_clock_and_tables_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    side = MemorySpark(session=lambda: spark, time_zone="UTC")
    text = "now: 2024-01-31\ntests: [{name: a, given: {t: []}, expect: [{c: 0, d: 2024-01-31}]}]"
    sql = "SELECT count(i) AS c, max(current_date()) AS d FROM (SELECT * FROM t UNION ALL SELECT * FROM t) RIGHT JOIN (SELECT 1 AS one) ON true"
    assert run(sql, text, tmp_path, side).outcome == "passed"
    whole = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 2) SELECT i, current_date() AS d FROM r, t"
    result = run(whole, text, tmp_path, side)
    assert result.outcome == "error"
    assert "its clock cannot be set" in result.message
