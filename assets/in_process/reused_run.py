"""Runs a query of which every stage is reused, without Dagster and without Spark.

Such a run leaves in storage what any run leaves: marks, the snapshot, a pointer for each stage, and
events with Dagster's names for them.
"""

import time
from collections.abc import Iterator
from types import MappingProxyType

from stagecoach.assets.execution.engine import RunListener, StageRequest
from stagecoach.assets.execution.hosted_runs import hosted_runs
from stagecoach.assets.execution.stage_engine import StageEngine
from stagecoach.assets.in_process.events import asset_name, moment_text, save_events
from stagecoach.assets.in_process.outcome import RunOutcome
from stagecoach.assets.project.names import JOB_PREFIX, stage_path
from stagecoach.assets.report.metadata import StageMetadata
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.plan.stages import Stage, StageGraph


def run_reused(
    head: StageRequest, *, engine: StageEngine, listener: RunListener, store: ObjectStore
) -> RunOutcome | None:
    """Run a query if all of it is there; None, with nothing told to anybody, if it is not.

    In that case `run_graph` continues with the same run id and with what was found.

    Args:
        head: The head stage of the run.
        engine: What looks for the outputs.
        listener: Who hears of the stages.
        store: Where the run's events are kept.
    """
    graph, began = head.graph, time.time()
    with hosted_runs.hosting(head.run_id):
        stages = engine.reuse(head)
    if stages is None:
        return None
    for stage, metadata in zip(graph.stages, stages, strict=True):
        listener.stage_started(stage)
        listener.stage_finished(stage, metadata)
    save_events(store, head.run_id, _events(graph, stages, began))
    engine.run_ended(head.run_id)
    found = {stage.stage_id: told for stage, told in zip(graph.stages, stages, strict=True)}
    return RunOutcome(success=True, run_id=head.run_id, stages=MappingProxyType(found))


def _events(
    graph: StageGraph, stages: tuple[StageMetadata, ...], began: float
) -> Iterator[dict[str, object]]:
    name, at = asset_name(graph), moment_text(began)
    job = f"{JOB_PREFIX}{name}"
    started = f'Started execution of run for "{job}".'
    yield {"time": at, "type": "PIPELINE_START", "message": started}
    for stage, metadata in zip(graph.stages, stages, strict=True):
        began += metadata.seconds or 0.0
        yield from _stage_events(graph, stage, metadata, name, (at, moment_text(began)))
        at = moment_text(began)
    ended = f'Finished execution of run for "{job}".'
    yield {"time": moment_text(time.time()), "type": "PIPELINE_SUCCESS", "message": ended}


def _stage_events(
    graph: StageGraph, stage: Stage, metadata: StageMetadata, name: str, times: tuple[str, str]
) -> Iterator[dict[str, object]]:
    path = stage_path(name, None if stage is graph.head else stage.stage_id)
    step = "__".join(path)
    begin, end = times
    started = f'Started execution of step "{step}".'
    yield {"time": begin, "type": "STEP_START", "step": step, "message": started}
    yield {
        "time": end,
        "type": "ASSET_MATERIALIZATION",
        "step": step,
        "message": f"Materialized value {' '.join(path)}.",
        "asset": list(path),
        "metadata": metadata.to_event(),
    }
    milliseconds = round(1000 * (metadata.seconds or 0.0))
    ended = f'Finished execution of step "{step}" in {milliseconds}ms.'
    yield {"time": end, "type": "STEP_SUCCESS", "step": step, "message": ended}
