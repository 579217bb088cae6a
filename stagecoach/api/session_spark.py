"""The Spark of one session: it starts when it is needed, and is let go when the session ends."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from stagecoach.infra.spark.leases import SparkLease

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.infra.config.settings import EngineSettings
    from stagecoach.infra.spark.early_start import EarlyStart


class SessionSpark:
    """Starts Spark when a session needs it, or a little sooner, by its settings at that time."""

    def __init__(self) -> None:
        self._lease = SparkLease()
        self._early: EarlyStart | None = None

    @property
    def is_used(self) -> bool:
        """Whether the session has asked for it."""
        return self._lease.is_held

    def get(self, settings: EngineSettings) -> SparkSession:
        """Return the Spark session; it starts when it is first asked for."""
        from stagecoach.infra.spark.session import get_session

        self._lease.take()
        return get_session(settings)

    def expect(self, settings: EngineSettings) -> None:
        """Start it in a thread because it will surely be used, unless it has been started."""
        from stagecoach.infra.spark.early_start import EarlyStart

        if self._early is None:
            self._early = EarlyStart(settings)

    def start(self, settings: EngineSettings) -> None:
        """Let it start in a thread, unless it is there: it will be asked for in a moment."""
        from stagecoach.infra.spark.early_start import EarlyStart

        if self._lease.is_held:
            return
        self._lease.take()
        if self._early is None:
            # Before the thread, so that it need not share the interpreter until its JVM starts.
            importlib.import_module("stagecoach.infra.spark.session")
            EarlyStart(settings)

    def end(self) -> None:
        """Stop it unless another session uses it; end a start that nobody has waited for."""
        if self._lease.is_held:
            self._lease.release()
        elif self._early is not None:
            self._early.abandon()
            self._early = None
