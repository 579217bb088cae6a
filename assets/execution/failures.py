"""Describes a failed stage for the log of its step."""

from typing import Any

from stagecoach.assets.execution.engine import FailureLog, StageRequest
from stagecoach.assets.execution.stage_places import StagePlaces
from stagecoach.infra.errors import ShuffleReadError, with_doctor
from stagecoach.planner.errors import StagecoachError

MAX_LOG_LINES = 200


def failure_text(
    error: StagecoachError, request: StageRequest, log: FailureLog | None = None
) -> str:
    """What went wrong, the engine's own class and words first, then what the tasks logged.

    Args:
        error: The stage's error.
        request: Which stage of which query.
        log: What its tasks said, if they said anything.
    """
    stage = request.stage
    kind = getattr(error, "condition", None) or type(error).__name__
    text = str(error)
    task = getattr(error, "task", None)
    place = f"query {request.graph.query}, stage_{stage.stage_id} ({stage.title})"
    lines = [
        with_doctor(text if kind in text else f"{kind}: {text}", error),
        place if task is None else f"{place}, task {task}",
    ]
    if log is not None:
        shown = log.lines[:MAX_LOG_LINES]
        how_many = f"the first {len(shown)} of " if len(shown) < len(log.lines) else ""
        lines.append(f"log of its tasks ({how_many}{len(log.lines)} lines): {log.uri}")
        lines += [f"  {line}" for line in shown]
    return "\n".join(lines)


def missing_upstream(
    error: StagecoachError, request: StageRequest, places: StagePlaces[Any]
) -> str | None:
    """What to materialise first, where a run of part of a query lacks the output of a stage.

    Args:
        error: The stage's error.
        request: Which stage of which query.
        places: Where its stages are in Dagster.
    """
    if not isinstance(error, ShuffleReadError):
        return None
    for stage_id in request.outside:
        if error.stage == f"{request.graph.query}/stage_{stage_id}":
            name = places.name(stage_id)
            why = (
                "the run is fresh, so it may not use what is there"
                if request.fresh
                else "it has not run for these parameters and tables, or its output is removed"
            )
            return (
                f"there is no output of the asset '{name}' to read: {why}; materialise '{name}' "
                f"first, or select it together with '{places.name(request.stage_id)}'"
            )
    return None
