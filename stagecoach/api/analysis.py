"""Analyses of runs, for `stagecoach explain --analyze` and `session.analyze`.

`Recorder` notes when each stage begins and ends. The public names of `assets.report` are here, too.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from stagecoach.assets.report.analysis import Analysis as Analysis
from stagecoach.assets.report.analysis import analyze_result as analyze_result
from stagecoach.assets.report.page import analysis_page as analysis_page
from stagecoach.assets.report.text import analysis_json as analysis_json
from stagecoach.assets.report.text import analysis_text as analysis_text
from stagecoach.assets.report.text import analysis_yaml as analysis_yaml
from stagecoach.terminal.progress import StageProgress

if TYPE_CHECKING:
    from stagecoach.assets.report.metadata import StageMetadata
    from stagecoach.planner.plan.stages import Stage


class Recorder(StageProgress):
    """Notes when stages begin and end, and passes everything on."""

    def __init__(self, inner: StageProgress) -> None:
        self._inner = inner
        self._lock = threading.Lock()
        self.spans: dict[int, tuple[float, float]] = {}

    def stage_started(self, stage: Stage) -> None:
        """Note the time; a retry goes on with the first one."""
        now = time.time()
        with self._lock:
            begun = self.spans.get(stage.stage_id, (now, now))[0]
            self.spans[stage.stage_id] = (begun, now)
        self._inner.stage_started(stage)

    def task_progress(self, stage: Stage, finished: int, total: int) -> None:
        """Pass it on."""
        self._inner.task_progress(stage, finished, total)

    def stage_finished(self, stage: Stage, metadata: StageMetadata) -> None:
        """Note the time."""
        self._end(stage)
        self._inner.stage_finished(stage, metadata)

    def stage_failed(self, stage: Stage, error: BaseException) -> None:
        """Note the time."""
        self._end(stage)
        self._inner.stage_failed(stage, error)

    def _end(self, stage: Stage) -> None:
        now = time.time()
        with self._lock:
            begun = self.spans.get(stage.stage_id, (now, now))[0]
            self.spans[stage.stage_id] = (begun, now)
