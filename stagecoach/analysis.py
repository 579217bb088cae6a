"""How a run went, for `stagecoach explain --analyze` and `session.analyze`.

In: what a `RunListener` hears. Out: when each stage began and ended, which `assets.report` needs.
Its public names are here, too.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from assets.report.analysis import Analysis as Analysis
from assets.report.analysis import analyze_result as analyze_result
from assets.report.page import analysis_page as analysis_page
from assets.report.text import analysis_json as analysis_json
from assets.report.text import analysis_text as analysis_text
from assets.report.text import analysis_yaml as analysis_yaml
from stagecoach.progress import StageProgress

if TYPE_CHECKING:
    from assets.metadata import StageMetadata
    from planner.stages import Stage


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
