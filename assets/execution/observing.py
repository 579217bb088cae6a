"""Log context and metrics of the stages that this process runs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stagecoach.assets.execution.engine import StageRequest
from stagecoach.assets.report.metadata import StageMetadata
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.telemetry.logs import log_as_json, stage_context
from stagecoach.infra.telemetry.metrics import StageMetrics, StageOutcome, metrics_of

# It imports the runtime and so pyspark, which loading a code location need not wait for.
if TYPE_CHECKING:
    from stagecoach.infra.publishing.publish import Published


class Observer:
    """What an engine tells the outside world; nothing unless the settings ask for it.

    Args:
        settings: Whether log lines are JSON, and where metrics go.

    Attributes:
        metrics: What it counts with; None where nobody collects metrics.
    """

    def __init__(self, settings: EngineSettings) -> None:
        self._gateway = settings.metrics_pushgateway
        self.metrics: StageMetrics | None = metrics_of(self._gateway)
        if settings.log_format == "json":
            log_as_json()

    @contextmanager
    def stage(self, request: StageRequest) -> Iterator[list[StageMetadata]]:
        """Log lines name the stage while the block runs, and it is counted at the end.

        The block appends what the stage told to the list that it is given.
        """
        told: list[StageMetadata] = []
        started = time.perf_counter()
        with stage_context(
            run=request.run_id,
            query=request.graph.query,
            stage=request.stage_id,
            attempt=request.attempt,
        ):
            try:
                yield told
            finally:
                if self.metrics is not None:
                    seconds = time.perf_counter() - started
                    self.metrics.stage(_outcome(request, told[0] if told else None, seconds))

    def query_ended(self, request: StageRequest) -> None:
        """The head stage has ended, or a stage has failed for good: push what was counted."""
        if self.metrics is not None and self._gateway:
            self.metrics.push(self._gateway, request.graph.query)

    def published(self, published: "Published") -> None:
        """A result was published, or was there already."""
        if self.metrics is not None and not published.reused:
            self.metrics.published(published.version.table)


def _outcome(request: StageRequest, told: StageMetadata | None, seconds: float) -> StageOutcome:
    query, retried = request.graph.query, request.attempt > 0
    if told is None:
        return StageOutcome(
            query=query,
            engine=request.stage.engine,
            outcome="failed",
            seconds=seconds,
            retried=retried,
        )
    reused = bool(told.reused)
    outcome = "deferred" if told.deferred is not None else "reused" if reused else "computed"
    computed = outcome == "computed"
    return StageOutcome(
        query=query,
        engine=told.engine or request.stage.engine,
        outcome=outcome,
        seconds=told.seconds or seconds,
        rows=(told.rows or 0) if computed else 0,
        bytes_read=told.bytes_read or 0,
        bytes_written=(told.bytes or 0) if computed else 0,
        saved_bytes=told.saved_bytes or 0,
        saved_seconds=told.saved_seconds or 0.0,
        fell_back=computed and told.fallback_reason is not None,
        retried=retried,
    )
