"""How far a statement is, stage by stage, as plain data for the action `stagecoach.progress`."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from stagecoach.terminal.progress import StageProgress

if TYPE_CHECKING:
    from stagecoach.assets.report.metadata import StageMetadata
    from stagecoach.planner.plan.stages import Stage, StageGraph


@dataclass
class StageState:
    """How far a stage is.

    Args:
        stage: Its number.
        title: What it does.
        state: `waiting`, `running`, `reused`, `finished` or `failed`.
        tasks: How many tasks it has, as far as that is known.
        finished_tasks: How many have ended.
        rows: Rows of its output; None while it runs.
    """

    stage: int
    title: str
    state: str = "waiting"
    tasks: int | None = None
    finished_tasks: int = 0
    rows: int | None = None


class Progress(StageProgress):
    """A `RunListener` that remembers the state of each stage."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stages: dict[int, StageState] = {}

    def planned(self, graph: StageGraph) -> None:
        """The plan has these stages."""
        with self._lock:
            self._stages = {s.stage_id: StageState(s.stage_id, s.title) for s in graph.stages}

    def stage_started(self, stage: Stage) -> None:
        """The stage began, or begins again."""
        self._change(stage, state="running", finished_tasks=0)

    def task_progress(self, stage: Stage, finished: int, total: int) -> None:
        """So many of the stage's tasks are done."""
        self._change(stage, finished_tasks=finished, tasks=total)

    def stage_finished(self, stage: Stage, metadata: StageMetadata) -> None:
        """The stage's output is there."""
        state = "reused" if metadata.reused else "finished"
        changes: dict[str, Any] = {"state": state, "rows": metadata.rows}
        if metadata.tasks is not None:
            changes |= {"tasks": metadata.tasks, "finished_tasks": metadata.tasks}
        self._change(stage, **changes)

    def stage_failed(self, stage: Stage, error: BaseException) -> None:
        """The stage failed, for now or for good."""
        self._change(stage, state="failed")

    def stages(self) -> list[dict[str, Any]]:
        """Return all stages, leaves first."""
        with self._lock:
            return [asdict(state) for state in self._stages.values()]

    def count(self, state: str) -> int:
        """Return how many stages are in a state."""
        with self._lock:
            return sum(found.state == state for found in self._stages.values())

    def _change(self, stage: Stage, **values: Any) -> None:
        with self._lock:
            state = self._stages.setdefault(stage.stage_id, StageState(stage.stage_id, stage.title))
            for name, value in values.items():
                setattr(state, name, value)
