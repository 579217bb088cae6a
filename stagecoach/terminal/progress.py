"""Shows the progress of a run: live bars on a terminal, plain lines elsewhere.

All of it goes to standard error, so that standard output holds the result alone.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Self

from stagecoach.planner.text.sizes import format_bytes
from stagecoach.terminal.interrupts import was_interrupted

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from stagecoach.assets.report.metadata import StageMetadata
    from stagecoach.planner.plan.stages import Stage, StageGraph

_TITLE_WIDTH = 44
_LINE_WIDTH = 90


def make_progress(graph: StageGraph, *, quiet: bool = False) -> StageProgress:
    """What shows the progress of this run best: bars only where somebody watches them."""
    if quiet:
        return StageProgress()
    return LiveProgress(graph) if sys.stderr.isatty() else PlainProgress(graph)


class StageProgress:
    """A `RunListener` and context manager that shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def stage_started(self, stage: Stage) -> None:
        """The stage began."""

    def task_progress(self, stage: Stage, finished: int, total: int) -> None:
        """So many of the stage's tasks are done."""

    def stage_finished(self, stage: Stage, metadata: StageMetadata) -> None:
        """The stage's output is there."""

    def stage_failed(self, stage: Stage, error: BaseException) -> None:
        """The stage failed, for now or for good."""


class PlainProgress(StageProgress):
    """A line when a stage starts and one when it ends: for logs and pipes."""

    def __init__(self, graph: StageGraph) -> None:
        self._query = graph.query
        self._lock = threading.Lock()

    def stage_started(self, stage: Stage) -> None:
        """Print the stage's title."""
        self._print(stage, f"started: {_clip(stage.title, _LINE_WIDTH)}")

    def stage_finished(self, stage: Stage, metadata: StageMetadata) -> None:
        """Print what the stage tells of itself."""
        self._print(stage, describe_stage(metadata))

    def stage_failed(self, stage: Stage, error: BaseException) -> None:
        """Print the first line of the error."""
        if was_interrupted():
            self._print(stage, "cancelled")  # the error only follows from that
        else:
            self._print(stage, f"failed: {_clip(first_line(error), _LINE_WIDTH)}")

    def _print(self, stage: Stage, text: str) -> None:
        line = f"{self._query}, stage {stage.stage_id}: {text}\n"
        with self._lock:
            sys.stderr.write(line)
            sys.stderr.flush()


class LiveProgress(StageProgress):
    """A bar for each stage that has begun."""

    def __init__(self, graph: StageGraph) -> None:
        self._progress = _make_bars()
        self._width = len(str(len(graph.stages) - 1))
        self._bars: dict[int, TaskID] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def stage_started(self, stage: Stage) -> None:
        """Show a bar that waits for its first task."""
        with self._lock:
            if stage.stage_id in self._bars:  # a retry
                bar = self._bars[stage.stage_id]
                self._progress.reset(bar)
                self._progress.update(bar, mark="·", note="again")
                return
            self._bars[stage.stage_id] = self._progress.add_task(
                _clip(stage.title),
                total=None,
                mark="·",
                number=f"{stage.stage_id:>{self._width}}",
                note="",
            )

    def task_progress(self, stage: Stage, finished: int, total: int) -> None:
        """Move the bar."""
        with self._lock:
            if (bar := self._bars.get(stage.stage_id)) is not None:
                self._progress.update(
                    bar, completed=finished, total=total, note=f"{finished}/{total} tasks"
                )

    def stage_finished(self, stage: Stage, metadata: StageMetadata) -> None:
        """Fill the bar."""
        self._end(stage, "✓", describe_stage(metadata))

    def stage_failed(self, stage: Stage, error: BaseException) -> None:
        """Leave the bar where it is."""
        note = "cancelled" if was_interrupted() else _clip(first_line(error))
        self._end(stage, "✗", note, full=False)

    def _end(self, stage: Stage, mark: str, note: str, *, full: bool = True) -> None:
        with self._lock:
            bar = self._bars.get(stage.stage_id)
            if bar is None:
                return
            if full:
                self._progress.update(bar, total=1, completed=1)
            self._progress.update(bar, mark=mark, note=note)
            self._progress.stop_task(bar)


def _make_bars() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Column

    # On a narrow terminal the title gives way, never the numbers.
    title = Column(no_wrap=True, overflow="ellipsis", ratio=1)
    fixed = Column(no_wrap=True, overflow="ignore")
    return Progress(
        TextColumn(
            "{task.fields[mark]} stage {task.fields[number]}", markup=False, table_column=fixed
        ),
        TextColumn("{task.description}", markup=False, table_column=title),
        BarColumn(bar_width=16),
        TextColumn("{task.fields[note]}", markup=False, table_column=fixed.copy()),
        expand=True,
        console=Console(file=sys.stderr, highlight=False),
        refresh_per_second=8,
    )


def describe_stage(metadata: StageMetadata) -> str:
    """What a finished stage tells, in a few words."""
    if metadata.reused:
        parts = ["reused"]
    else:
        parts = [f"{metadata.seconds or 0:.2f} s"]
        if metadata.tasks is not None:
            parts.append(f"{metadata.tasks} task{'' if metadata.tasks == 1 else 's'}")
        if metadata.taken_over:
            parts.append(f"{metadata.taken_over} taken over")
    if metadata.rows is not None:
        parts.append(f"{metadata.rows:,} row{'' if metadata.rows == 1 else 's'}")
    if metadata.bytes is not None:
        parts.append(format_bytes(metadata.bytes))
    if metadata.engine and not metadata.reused:
        parts.append(metadata.engine)
    if metadata.fallback_reason:
        parts.append(f"fell back: {metadata.fallback_reason}")
    if metadata.recovered:
        parts.append(f"recovered: {'; '.join(metadata.recovered.splitlines())}")
    return ", ".join(parts)


def first_line(error: BaseException) -> str:
    """The first line of an error's message."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _clip(text: str, width: int = _TITLE_WIDTH) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
