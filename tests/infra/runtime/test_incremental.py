"""Incremental stages: what is taken over from an earlier commit, what is not, and why."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.faults.local_runs import LocalRuns, tasks_here
from stagecoach.assets.report.stage_metadata import stage_metadata
from stagecoach.infra.runtime.stages.run import StageResult
from stagecoach.infra.runtime.stages.run_stage import read_result, run_stage
from stagecoach.infra.shuffle.commit import load_manifest, mark_lost
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.upkeep.gc import collect_garbage
from stagecoach.infra.upkeep.usage import storage_usage
from stagecoach.infra.upkeep.verify.outputs import output_checks
from stagecoach.planner.options import PlannerOptions
from stagecoach.terminal.progress import describe_stage
from tests.contexts import run_stages, small_settings

OPTIONS = PlannerOptions(incremental=True, single_task_bytes=0, num_partitions=2, inline_bytes=0)
TOTALS = "SELECT day, sum(k) AS total FROM t GROUP BY day ORDER BY day"
FILTERED = "SELECT day, sum(k) AS total FROM t WHERE k < :most GROUP BY day"
JOINED = "SELECT label, sum(k) AS total FROM t JOIN u ON day = u.id GROUP BY label ORDER BY label"


class Project:
    """A table `t` of a file for each day, a table `u`, and runs over them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for table in ("t", "u"):
            (folder / table).mkdir()
        (folder / "catalog.yaml").write_text("tables:\n  t: {location: t}\n  u: {location: u}\n")
        for day in range(5):
            self.add_day(day)
        self.write("u", "a", {"id": list(range(9)), "label": ["x", "y", "z"] * 3})
        self.settings = small_settings(folder)
        self.store: ObjectStore = self.settings.open_store()

    def add_day(self, day: int, first: int = 0) -> None:
        self.write("t", f"day-{day}", {"day": [day] * 10, "k": list(range(first, first + 10))})

    def write(self, table: str, name: str, columns: Mapping[str, Any]) -> None:
        path = self.folder / table / f"{name}.parquet"
        path.unlink(missing_ok=True)  # a new file, as a job that replaces it writes one
        pq.write_table(pa.table(columns), path)

    def runs(self) -> LocalRuns:
        return LocalRuns(self.folder / "catalog.yaml", self.settings)

    def run(
        self, sql: str = TOTALS, options: PlannerOptions = OPTIONS, **changes: Any
    ) -> tuple[list[dict[str, Any]], list[StageResult]]:
        runs = self.runs()
        context = runs.context(runs.plan("q", options, sql), **changes)
        with tasks_here():
            table, results = run_stages(context)
        runs.end(context)
        return table.to_pylist(), results

    def totals(self) -> list[dict[str, Any]]:
        """What the totals are, read from the files by pyarrow."""
        rows = pq.read_table(self.folder / "t").group_by("day").aggregate([("k", "sum")])
        return [{"day": r["day"], "total": r["k_sum"]} for r in rows.sort_by("day").to_pylist()]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def manifest_of(result: StageResult) -> Manifest:
    assert result.manifest is not None
    return result.manifest


def told(result: StageResult) -> tuple[int, int]:
    """Tasks of a stage, and those that were taken over."""
    found = manifest_of(result).metrics["incremental"]
    return found["tasks"], found["taken_over"]


def why(result: StageResult) -> str:
    reason: str = manifest_of(result).metrics["incremental"].get("reason", "")
    return reason


def test_only_new_files_are_computed(project: Project) -> None:
    rows, (first, *_) = project.run()
    assert (rows, told(first)) == (project.totals(), (5, 0))
    assert why(first) == "there is no earlier commit"
    project.add_day(5)
    rows, (second, *_) = project.run()
    assert (rows, told(second)) == (project.totals(), (6, 5))
    assert [report.rows_in for report in second.reports] == [(10,)]
    manifest = manifest_of(second)
    assert [file.home for file in manifest.files] == [first.fingerprint] * 5 + [""]
    assert [file.task_index for file in manifest.files] == list(range(6))
    assert manifest.metrics["inputs"]["scans"][0]["files"] == 1
    assert [task.get("taken_over", False) for task in manifest.metrics["tasks"]] == [True] * 5 + [
        False
    ]
    assert manifest.metrics["adaptive"][-1] == {
        "kind": "incremental",
        "text": f"6 groups of files, 5 taken over from the last commit "
        f"({sum(f.num_bytes for f in manifest.files[:5]):,} bytes), 1 computed",
    }


def test_another_file_may_store_a_type_in_another_way(project: Project) -> None:
    def write(name: str, day: int, *, as_integer: bool) -> None:
        path = project.folder / "t" / f"{name}.parquet"
        path.unlink(missing_ok=True)
        values = pa.array([Decimal(day), None, Decimal("0.05")], pa.decimal128(15, 2))
        rows = pa.table({"day": [day] * 3, "k": values})
        pq.write_table(rows, path, store_decimal_as_integer=as_integer)

    for day in range(5):
        write(f"day-{day}", day, as_integer=True)
    project.run()
    write("a-day", 5, as_integer=False)  # the first, from which all others differ now
    rows, (last, *_) = project.run()
    assert (rows, told(last)) == (project.totals(), (6, 5))


def test_a_file_that_was_taken_over_is_taken_over_again(project: Project) -> None:
    _, (first, *_) = project.run()
    for day in (5, 6):
        project.add_day(day)
        rows, (last, *_) = project.run()
    homes = [file.home for file in manifest_of(last).files]
    assert homes[:5] == [first.fingerprint] * 5
    assert len(set(homes)) == 3
    assert rows == project.totals()


def test_removed_and_replaced_files_are_not_taken_over(project: Project) -> None:
    project.run()
    (project.folder / "t" / "day-1.parquet").unlink()
    project.add_day(3, first=1000)
    rows, (found, *_) = project.run()
    assert (rows, told(found)) == (project.totals(), (4, 3))


def test_nothing_is_run_where_all_is_there(project: Project) -> None:
    project.run()
    project.add_day(5)
    project.run()
    (project.folder / "t" / "day-5.parquet").unlink()
    (project.folder / "t" / "day-4.parquet").unlink()
    rows, (found, *_) = project.run()
    assert (rows, told(found), found.reports) == (project.totals(), (4, 4), ())


def test_the_content_is_that_of_a_run_that_computes_everything(project: Project) -> None:
    project.run()
    project.add_day(5)
    _, (taken, *_) = project.run()
    _, (computed, *_) = project.run(fresh=True)
    assert why(computed) == "the run is to compute everything"
    assert manifest_of(taken).content_hash == manifest_of(computed).content_hash


def test_another_constant_is_another_stage(project: Project) -> None:
    project.run(FILTERED.replace(":most", "5"))
    _, (other, *_) = project.run(FILTERED.replace(":most", "6"))
    assert why(other) == "there is no earlier commit"
    project.add_day(5)
    _, (same, *_) = project.run(FILTERED.replace(":most", "5"))
    assert told(same) == (6, 5)


@pytest.mark.parametrize("broadcast_bytes", [0, 1 << 30])
def test_a_changed_side_of_a_join_is_not_joined_with_old_rows(
    broadcast_bytes: int, project: Project
) -> None:
    options = dataclasses.replace(OPTIONS, broadcast_bytes=broadcast_bytes)
    project.run(JOINED, options)
    project.write("u", "a", {"id": list(range(9)), "label": ["p", "q", "q"] * 3})
    rows, _ = project.run(JOINED, options)
    days = {"p": [0, 3], "q": [1, 2, 4]}
    assert rows == [{"label": k, "total": 45 * len(v)} for k, v in days.items()]


def reading(results: list[StageResult], runs_of: str, project: Project) -> StageResult:
    """The stage that reads a table."""
    graph = project.runs().plan("q", BROADCAST, JOINED)
    return next(r for r in results if runs_of in graph.stages[r.stage_id].tables)


BROADCAST = dataclasses.replace(OPTIONS, broadcast_bytes=1 << 30)


def test_a_join_with_an_unchanged_broadcast_is_taken_over(project: Project) -> None:
    project.run(JOINED, BROADCAST)
    project.add_day(5)
    _, results = project.run(JOINED, BROADCAST)
    assert told(reading(results, "t", project)) == (6, 5)


@pytest.mark.parametrize("inline_bytes", [0, 1 << 20])
def test_no_groups_where_every_task_reads_what_has_changed(
    inline_bytes: int, project: Project
) -> None:
    """A broadcast of another stage, and a small table that each task reads."""
    options = dataclasses.replace(BROADCAST, inline_bytes=inline_bytes)

    def run() -> tuple[StageResult, Manifest]:
        rows, results = project.run(JOINED, options)
        assert sum(row["total"] for row in rows) == 45 * len(list(project.folder.glob("t/*")))
        graph = project.runs().plan("q", options, JOINED)
        found = next(r for r in results if "t" in graph.stages[r.stage_id].tables)
        assert bool(inline_bytes) is ("u" in graph.stages[found.stage_id].tables)
        return found, manifest_of(found)

    run()
    for label in "pq":  # with each run
        project.write("u", "b", {"id": [9], "label": [label]})
        project.add_day(ord(label) % 9)
        found, manifest = run()
        assert told(found) == (2, 0)
        assert manifest.metrics["adaptive"][-1]["text"] == (
            "not divided into groups of files: what every task reads has changed since the last "
            "commit"
        )
    project.add_day(6)
    found, _ = run()
    assert why(found) == "the earlier commit has no groups of files"
    assert told(found)[0] > 2
    project.add_day(7)
    found, _ = run()
    assert told(found)[1] > 0


def test_a_lost_file_is_not_taken_over(project: Project) -> None:
    _, (first, *_) = project.run()
    manifest = manifest_of(first)
    project.store.delete([manifest.file_key(manifest.files[2])])
    project.add_day(5)
    rows, (found, *_) = project.run()
    assert (rows, told(found)) == (project.totals(), (6, 4))


def test_a_lost_commit_is_not_taken_over(project: Project) -> None:
    _, (first, *_) = project.run()
    mark_lost(project.store, first.fingerprint, manifest_of(first).manifest_hash)
    project.add_day(5)
    rows, (found, *_) = project.run()
    assert (rows, told(found)) == (project.totals(), (6, 0))


def test_what_was_lost_is_computed_whole(project: Project) -> None:
    """A bit of a file that was taken over flips: the file must not be taken over once more."""
    project.run()
    project.add_day(5)
    _, (second, *_) = project.run()
    manifest = manifest_of(second)
    path = Path(project.store.uri(manifest.file_key(manifest.files[0])))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    # Another query over the same stage finds it.
    rows, _ = project.run(f"SELECT * FROM ({TOTALS}) WHERE total >= 0 ORDER BY day")
    assert rows == project.totals()
    again = load_manifest(project.store, second.fingerprint)
    assert again is not None
    assert again.metrics["incremental"]["reason"] == "the output was lost"
    assert all(not file.home for file in again.files)


def test_a_damaged_hint_counts_as_none(project: Project) -> None:
    project.run()
    (key,) = project.store.list(layout.HINTS_ROOT)
    project.store.write_bytes(key, b'{"fingerprint": ')
    project.add_day(5)
    rows, (found, *_) = project.run()
    assert (rows, why(found)) == (project.totals(), "there is no earlier commit")


def age(project: Project, days: float) -> None:
    for path in (project.folder / "store").rglob("*"):
        if path.is_file():
            moment = path.stat().st_mtime - days * 86_400
            os.utime(path, (moment, moment))


def test_gc_keeps_what_later_commits_took_over(project: Project) -> None:
    _, (first, *_) = project.run()
    age(project, 10)
    project.add_day(5)
    _, (second, *_) = project.run()
    old = manifest_of(first)
    age(project, 2)
    project.add_day(6)
    _, (third, *_) = project.run()
    collect_garbage(project.store, older_than=timedelta(days=1))
    assert load_manifest(project.store, second.fingerprint) is not None
    kept = manifest_of(third)
    assert all(project.store.exists(key) for key in kept.file_keys())
    # Of the first commit, only what others took over is left.
    assert load_manifest(project.store, first.fingerprint) is None
    left = set(project.store.list(layout.shuffle_prefix(first.fingerprint)))
    assert left == {old.file_key(file) for file in old.files}
    checks = [more for check in output_checks(project.store) for more in check.run().more]
    assert len(checks) > len(kept.files)
    assert not any(check.run().damages for check in checks)
    used = storage_usage(project.store)
    assert used.uncommitted.num_objects == 0
    age(project, 2)
    report = collect_garbage(project.store, older_than=timedelta(days=1))
    assert list(project.store.list(layout.SHUFFLE_ROOT)) == []
    assert list(project.store.list(layout.HINTS_ROOT)) == []
    assert left <= {key for shuffle in report.expired for key in shuffle.keys}


def test_a_stage_that_fails_on_duckdb_is_not_taken_over_as_spark_s(project: Project) -> None:
    _, (first, *_) = project.run()
    for file in manifest_of(first).files:
        assert len(file.task_fingerprint) == 64
    _, results = project.run(options=dataclasses.replace(OPTIONS, incremental=False, task_cores=1))
    assert all(r.reused for r in results)  # the same rows, so the same fingerprints


def test_a_run_needs_no_spark_where_no_task_is_left(project: Project) -> None:
    project.run()
    (project.folder / "t" / "day-4.parquet").unlink()
    runs = project.runs()

    def no_spark() -> Any:
        raise AssertionError("a Spark session was asked for")

    context = runs.context(runs.plan("q", OPTIONS, TOTALS), spark=no_spark)
    assert told(run_stage(0, context)) == (4, 4)


def test_metadata_and_progress_tell_what_was_taken_over(project: Project) -> None:
    project.run()
    project.add_day(5)
    runs = project.runs()
    context = runs.context(runs.plan("q", OPTIONS, TOTALS))
    with tasks_here():
        result = run_stage(0, context)
    found = stage_metadata(result, context.graph, context.snapshot, context.store)
    assert (found.tasks, found.taken_over) == (6, 5)
    assert found.decisions is not None
    assert "**tasks** 6, one for each group of files" in found.decisions
    assert "5 taken over from the last commit" in found.decisions
    assert "6 tasks, 5 taken over, 6 rows" in describe_stage(found)


def test_read_result_is_whole(project: Project) -> None:
    project.run("SELECT k FROM t WHERE k > 3")
    project.add_day(5)
    runs = project.runs()
    context = runs.context(runs.plan("q", OPTIONS, "SELECT k FROM t WHERE k > 3"))
    with tasks_here():
        run_stages(context)
    assert read_result(context).num_rows == 36
