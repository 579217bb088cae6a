"""Logs of failed stages: what a task said comes back with its report and is kept, first failure on top."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from stagecoach.infra.errors import TaskFailedError
from stagecoach.infra.runtime.records.stage_log import read_stage_log, write_stage_log
from stagecoach.infra.shuffle.map_file import OutputPartitioning
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.worker.log_lines import MAX_TASK_LINES, captured_lines
from stagecoach.infra.worker.reports import TaskFailure, TaskReport
from stagecoach.infra.worker.spec import TaskSettings, TaskSpec
from stagecoach.infra.worker.task import log as task_logger
from stagecoach.infra.worker.task import run_task
from stagecoach.planner.types import BIGINT


@pytest.fixture
def spec(tmp_path: Path) -> TaskSpec:
    return TaskSpec(
        query="q",
        stage_id=0,
        fingerprint="a" * 64,
        task_index=3,
        sql="SELECT CAST('x' AS BIGINT) AS c0",
        inputs=(),
        types=(BIGINT,),
        output=OutputPartitioning(),
        settings=TaskSettings(
            store=open_store(tmp_path / "store").to_dict(),
            time_zone="UTC",
            memory_bytes=64 << 20,
            writer_memory_bytes=16 << 20,
            max_spill_bytes=0,
            spill_dir=str(tmp_path / "spill"),
            codec="lz4",
            directories=(),
        ),
    )


def test_a_failed_tasks_report_carries_its_traceback(spec: TaskSpec) -> None:
    report = TaskReport.from_dict(json.loads(json.dumps(run_task(spec).to_dict())))
    assert report.failure is not None
    assert report.log[0] == "Traceback (most recent call last):"
    assert "ConversionException" in "\n".join(report.log)


def test_a_task_that_ends_well_carries_only_what_it_logged(spec: TaskSpec) -> None:
    report = run_task(dataclasses.replace(spec, sql="SELECT 1 AS c0"))
    assert report.failure is None
    assert report.log == ()


def test_lines_are_those_of_the_thread_and_the_last_ones() -> None:
    with captured_lines() as lines:
        for number in range(MAX_TASK_LINES + 5):
            task_logger.warning("line %d", number)
    task_logger.warning("after")
    assert len(lines) == MAX_TASK_LINES
    assert lines[-1].endswith(f"line {MAX_TASK_LINES + 4}")


def test_the_first_failure_is_on_top(tmp_path: Path) -> None:
    store = open_store(tmp_path)

    def report(task: int, ended: float, *, failed: bool) -> TaskReport:
        failure = TaskFailure(kind="other", args=("boom",)) if failed else None
        return TaskReport(
            task_index=task,
            attempt="0_a",
            failure=failure,
            started_at=1.0,
            total_seconds=ended,
            log=(f"said by {task}",),
        )

    reports = [report(0, 1, failed=False), report(1, 9, failed=True), report(2, 5, failed=True)]
    write_stage_log(store, "run", 4, TaskFailedError("q/stage_4", 2, "boom"), reports)
    found = read_stage_log(store, "run", 4)
    assert found is not None
    assert found.uri.endswith("runs/run/logs/stage_4.log")
    assert [line for line in found.lines if line.startswith("  ")] == [
        "  said by 2",
        "  said by 1",
        "  said by 0",
    ]
    assert "task 2, attempt 0_a" in found.lines[0]
    assert read_stage_log(store, "run", 5) is None


def test_a_job_that_died_leaves_sparks_own_words(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    error = TaskFailedError("q/stage_0", None, "Spark failed")
    error.__cause__ = RuntimeError("Job aborted\nExitCode 137")
    write_stage_log(store, "run", 0, error)
    found = read_stage_log(store, "run", 0)
    assert found is not None
    assert found.lines == ("Spark:", "  Job aborted", "  ExitCode 137")
