"""Subplans that are used twice, once joined with an empty table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.faults.local_runs import LocalRuns, tasks_here
from stagecoach.planner.distribution import reduce_builds, wide_tasks
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.physical import ScanExec
from stagecoach.planner.plan.stages import StageGraph
from tests.contexts import run_stages, small_settings

OPTIONS = PlannerOptions(single_task_bytes=0, inline_bytes=0)
SMALL = "(SELECT s.id, s.k FROM small s JOIN other o ON s.id = o.id) t"
NOTHING = "u.day > 100"  # the bounds of the files rule it out


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalRuns:
    """Three tables, of which everything is planned as one task, with all that it may gain."""
    monkeypatch.setattr(wide_tasks, "_SHARED_SECONDS", float("-inf"))
    monkeypatch.setattr(reduce_builds, "_MAX_SHARE", float("inf"))
    monkeypatch.setattr(reduce_builds, "_SAVED_SECONDS", float("-inf"))
    lines = ["tables:"]
    for name in ("small", "other", "large"):
        (tmp_path / name).mkdir()
        rows = {"id": list(range(20)), "k": [i % 7 for i in range(20)], "day": [1] * 20}
        pq.write_table(pa.table(rows), tmp_path / name / "a.parquet")
        lines.append(f"  {name}: {{location: {name}}}")
    (tmp_path / "catalog.yaml").write_text("\n".join(lines) + "\n")
    settings = small_settings(tmp_path)
    return LocalRuns(tmp_path / "catalog.yaml", settings)


def rows_of(runs: LocalRuns, graph: StageGraph) -> list[dict[str, Any]]:
    context = runs.context(graph)
    with tasks_here():
        table, _ = run_stages(context)
    runs.end(context)
    return table.to_pylist()


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            f"SELECT t.id FROM {SMALL} WHERE NOT EXISTS (SELECT 1 FROM large u WHERE u.k = t.k "
            f"AND {NOTHING})",
            20,
        ),
        (f"SELECT t.id, u.id AS u FROM {SMALL} LEFT JOIN large u ON u.k = t.k AND {NOTHING}", 20),
        (
            f"SELECT t.id FROM {SMALL} WHERE EXISTS (SELECT 1 FROM large u WHERE u.k = t.k "
            f"AND {NOTHING})",
            0,
        ),
        # Without a reduction: a part that the query itself has twice.
        (
            "WITH p AS (SELECT k, count(*) AS n FROM small GROUP BY k) "
            "SELECT p.k, q.n FROM p LEFT JOIN (SELECT x.k, x.n FROM p x JOIN large u "
            f"ON x.k = u.k AND {NOTHING}) q ON p.k = q.k",
            7,
        ),
        (
            "WITH p AS (SELECT k, count(*) AS n FROM small GROUP BY k) "
            f"SELECT q.n FROM (SELECT x.k, x.n FROM p x JOIN large u ON x.k = u.k AND {NOTHING}) q "
            "RIGHT JOIN p ON p.k = q.k",
            7,
        ),
    ],
)
def test_rows_that_another_place_needs_are_read(sql: str, expected: int, runs: LocalRuns) -> None:
    graph = runs.plan("q", OPTIONS, sql)
    leaves = [leaf for stage in graph.stages for leaf in stage.leaves if isinstance(leaf, ScanExec)]
    assert len(graph.stages) == 1
    assert len(leaves) > len(set(leaves)), "no subplan is used twice"
    assert len(rows_of(runs, graph)) == expected
