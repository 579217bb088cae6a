"""Scans that several places of one task read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.faults.local_runs import LocalRuns, tasks_here
from stagecoach.planner.distribution import wide_tasks
from stagecoach.planner.options import PlannerOptions
from tests.contexts import run_stages, small_settings

OPTIONS = PlannerOptions(single_task_bytes=0, inline_bytes=0)
DAYS = 10


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalRuns:
    """A table with one file for each day, planned as if each part were worth keeping."""
    monkeypatch.setattr(wide_tasks, "_SHARED_SECONDS", float("-inf"))
    monkeypatch.setattr(wide_tasks, "_MAX_FILTER_SHARE", float("inf"))
    (tmp_path / "sales").mkdir()
    for day in range(DAYS):
        rows = {"day": [day] * 20, "price": list(range(20)), "shop": [i % 3 for i in range(20)]}
        pq.write_table(pa.table(rows), tmp_path / "sales" / f"{day}.parquet")
    (tmp_path / "catalog.yaml").write_text("tables:\n  sales: {location: sales}\n")
    return LocalRuns(tmp_path / "catalog.yaml", small_settings(tmp_path))


def run(runs: LocalRuns, sql: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of the result, and what the one stage tells of the scans that it has read."""
    graph = runs.plan("q", OPTIONS, sql)
    assert len(graph.stages) == 1
    assert len(graph.head.leaves) > len(graph.head.leaf_positions) == 1
    context = runs.context(graph)
    with tasks_here():
        table, results = run_stages(context)
    runs.end(context)
    return table.to_pylist(), results[0].manifest.metrics["inputs"]["scans"]


def test_files_are_left_out_by_the_filter_that_all_places_have(runs: LocalRuns) -> None:
    sql = (
        "SELECT count(*) AS n FROM sales WHERE day >= 8 AND price > "
        "(SELECT max(price) - 5 FROM sales WHERE day >= 8 AND shop = 1)"
    )
    rows, scans = run(runs, sql)
    assert rows == [{"n": 5 * 2}]
    assert [(scan["files"], scan["of_files"]) for scan in scans] == [(2, DAYS)]


def test_files_that_one_place_needs_are_read(runs: LocalRuns) -> None:
    sql = (
        "SELECT count(*) AS n FROM sales WHERE price > 3 AND day <> "
        "(SELECT max(day) FROM sales WHERE price > 3 AND day < 2)"
    )
    rows, scans = run(runs, sql)
    assert rows == [{"n": 16 * (DAYS - 1)}]
    assert [(scan["files"], scan["rows"]) for scan in scans] == [(DAYS, 20 * DAYS)]


def test_a_part_with_an_aggregate_counts_once(runs: LocalRuns) -> None:
    sql = (
        "WITH p AS (SELECT shop, count(*) AS n FROM sales WHERE day = 3 GROUP BY shop) "
        "SELECT p.shop FROM p JOIN (SELECT max(n) AS m FROM p) ON n = m"
    )
    rows, scans = run(runs, sql)
    assert sorted(row["shop"] for row in rows) == [0, 1]
    assert [(scan["files"], scan["rows"]) for scan in scans] == [(1, 20)]
