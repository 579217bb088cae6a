"""Progress lines, bars and the streams they go to."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from stagecoach.assets.report.metadata import StageMetadata
from stagecoach.planner import plan_query
from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.terminal.progress import (
    LiveProgress,
    PlainProgress,
    StageProgress,
    describe_stage,
    format_bytes,
    make_progress,
)

DONE = StageMetadata(rows=1, bytes=1500, tasks=2, seconds=0.5, engine="duckdb", reused=False)


@pytest.fixture
def graph() -> StageGraph:
    return plan_query("SELECT 1 AS a", MappingCatalog([]), name="one")


def test_plain_lines(graph: StageGraph, capsys: pytest.CaptureFixture[str]) -> None:
    with PlainProgress(graph) as progress:
        progress.stage_started(graph.head)
        progress.task_progress(graph.head, 1, 2)
        progress.stage_finished(graph.head, DONE)
        progress.stage_failed(graph.head, ValueError("first\nsecond"))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        f"one, stage 0: started: {graph.head.title}",
        "one, stage 0: 0.50 s, 2 tasks, 1 row, 1.5 kB, duckdb",
        "one, stage 0: failed: first",
    ]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_bars_on_a_terminal(graph: StageGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "100")
    progress = make_progress(graph)
    assert isinstance(progress, LiveProgress)
    with progress:
        progress.stage_started(graph.head)
        progress.task_progress(graph.head, 1, 2)
        progress.stage_failed(graph.head, ValueError("lost"))
        progress.stage_started(graph.head)
        progress.stage_finished(graph.head, DONE)
    assert "✓ stage 0" in terminal.getvalue()
    assert "1.5 kB, duckdb" in terminal.getvalue()


def test_quiet_shows_nothing(graph: StageGraph) -> None:
    assert type(make_progress(graph, quiet=True)) is StageProgress


def test_reused_stage_tells_no_time() -> None:
    assert describe_stage(StageMetadata(rows=3, reused=True, seconds=1.0)) == "reused, 3 rows"


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (999_600, "1 MB"), (123_456_789, "123 MB")],
)
def test_sizes(size: int, text: str) -> None:
    assert format_bytes(size) == text


def test_noise_of_children_goes_to_the_log(tmp_path: Path) -> None:
    code = (
        "import os, subprocess, sys\n"
        "from stagecoach.terminal.streams import divert_noise, log_path\n"
        "divert_noise()\n"
        "os.write(1, b'noise 1\\n'); os.write(2, b'noise 2\\n')\n"
        "subprocess.run(['sh', '-c', 'echo noise 3; echo noise 4 >&2'])\n"
        "print('result'); print('progress', file=sys.stderr)\n"
        "print(log_path().read_text().count('noise'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "result\n4\n"
    assert done.stderr == "progress\n"


def test_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    code = (
        "from stagecoach.terminal.streams import divert_noise\n"
        "divert_noise()\n"
        "print('first')\n"
        "for _ in range(100000): print('more')"
    )
    script = f'"{sys.executable}" -c "$CODE" | head -1'
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=tmp_path, env={"CODE": code}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "first\n"
