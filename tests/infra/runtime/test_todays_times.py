"""Outputs with times of the day on which Spark ran are not used on another day."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.runtime.stages import attempt, reuse
from stagecoach.infra.runtime.stages.todays_times import identity_of_rows
from tests.infra.runtime.test_stage import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TIMES = ["12:30", "T01:02:03", "2024-05-06 07:08:09"]
LATEST = "SELECT k, max(CAST(s AS TIMESTAMP)) AS at FROM {table} GROUP BY k"

SetDay = Callable[[str], None]


@pytest.fixture
def project(
    tmp_path: Path, spark_settings: EngineSettings, spark: SparkSession
) -> Iterator[Project]:
    made = Project(tmp_path, spark_settings, spark)
    made.table("clocks", pa.table({"k": [0, 1, 2], "s": TIMES}))
    made.table("moments", pa.table({"k": [0, 1], "s": TIMES[2:] * 2}))
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "a.csv").write_text("12:30,1\n2024-05-06 07:08:09,2\n")
    with (tmp_path / "catalog.yaml").open("a") as catalog:
        catalog.write("  lines: {location: lines, format: csv, columns: {s: TIMESTAMP, k: INT}}\n")
    yield made


@pytest.fixture
def set_day(monkeypatch: pytest.MonkeyPatch) -> SetDay:
    def change(day: str) -> None:
        for module in (attempt, reuse):
            monkeypatch.setattr(module, "today", lambda zone: day)

    change("2026-01-01")
    return change


@pytest.mark.parametrize(
    "sql",
    [
        LATEST.format(table="clocks"),
        "SELECT from_json(concat('{\"a\":\"', s, '\"}'), 'a TIMESTAMP').a AS at FROM clocks",
        "SELECT s FROM lines",
        "SELECT length(collate(name, 'UNICODE')) AS n, hour(name) AS h FROM (SELECT s AS name "
        "FROM clocks)",
        "SELECT k, TIMESTAMP'12:30' AS at FROM moments",
    ],
)
def test_times_of_today_are_computed_again_on_another_day(
    project: Project, set_day: SetDay, sql: str
) -> None:
    graph = project.plan(sql)
    _, first = project.run(graph)
    assert "spark" in {result.engine for result in first}
    _, again = project.run(graph)
    assert all(result.reused for result in again)
    set_day("2026-01-02")
    _, later = project.run(graph)
    assert not any(result.reused for result in later)
    _, again = project.run(graph)
    assert all(result.reused for result in again)


@pytest.mark.parametrize(
    "sql",
    [
        LATEST.format(table="moments"),
        "SELECT k, length(collate(s, 'UNICODE')) AS n FROM clocks",
    ],
)
def test_what_has_no_time_of_today_is_used_on_another_day(
    project: Project, set_day: SetDay, sql: str
) -> None:
    graph = project.plan(sql)
    project.run(graph)
    set_day("2026-01-02")
    _, later = project.run(graph)
    assert all(result.reused for result in later)


def test_a_table_gets_the_rows_of_another_day(project: Project, set_day: SetDay) -> None:
    """By the fingerprint alone, a result of today is the one that was published yesterday."""
    _, results = project.run(project.plan(LATEST.format(table="clocks")))
    _, others = project.run(project.plan(LATEST.format(table="moments")))
    (clocks, moments) = (found[-1].manifest for found in (results, others))
    assert clocks is not None
    assert moments is not None
    assert identity_of_rows(clocks) != clocks.fingerprint
    assert identity_of_rows(moments) == moments.fingerprint
