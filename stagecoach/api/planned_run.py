"""A planned query with the values of its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stagecoach.api.parameters import ParameterValue
    from stagecoach.planner.plan.stages import StageGraph


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """A query that is ready to run.

    Args:
        graph: Its plan.
        parameters: Its parameter values.
    """

    graph: StageGraph
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)
