"""How a run in this process ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from stagecoach.assets.report.metadata import StageMetadata


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """How a run ended.

    Args:
        success: Whether every stage's output is there.
        run_id: Dagster's id of the run.
        stages: What each finished stage tells about itself, by number.
        failures: The error of each failed stage, by number; stages after it did not run.
        cancelled: Whether the run was interrupted.
        problem: What went wrong outside of any stage.
    """

    success: bool
    run_id: str
    stages: Mapping[int, StageMetadata] = field(default_factory=lambda: MappingProxyType({}))
    failures: Mapping[int, BaseException] = field(default_factory=lambda: MappingProxyType({}))
    cancelled: bool = False
    problem: str | None = None
