"""Runs one query as one Dagster run in this process, for the command line and the API.

The run's events are kept as JSON lines in `runs/<run_id>/events.jsonl` of the store.

The same assets and the same executor as in the UI, on an ephemeral instance unless one is given.
"""

import threading
import uuid
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType

import dagster as dg

from stagecoach.assets.definitions.factory import ENGINE_RESOURCE, build_assets, build_job
from stagecoach.assets.definitions.query_jobs import resolve_alone
from stagecoach.assets.definitions.specs import build_stage_specs
from stagecoach.assets.definitions.translator import StageProps, StageTranslator
from stagecoach.assets.execution.engine import (
    ListeningRunner,
    RunListener,
    SilentListener,
    StageRunner,
)
from stagecoach.assets.execution.executor import execute_in_process, was_interrupted
from stagecoach.assets.in_process.events import asset_name, moment_text, save_events
from stagecoach.assets.in_process.outcome import RunOutcome
from stagecoach.assets.plans.planned import PlannedQuery
from stagecoach.assets.project.parameters import parameter_tags, with_zone
from stagecoach.assets.project.queries import Query
from stagecoach.assets.report.metadata import StageMetadata, plain_value
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.plan.stages import Stage, StageGraph

QUERY_TAG = "stagecoach/query"


def run_graph(
    graph: StageGraph,
    *,
    runner: StageRunner,
    parameters: Mapping[str, str] | None = None,
    instance: dg.DagsterInstance | None = None,
    listener: RunListener | None = None,
    store: ObjectStore | None = None,
    max_concurrent: int | None = None,
    run_id: str | None = None,
    debug: bool = False,
) -> RunOutcome:
    """Run a planned query and return when it has ended, well or not.

    Args:
        graph: The planned query; its name need not be one that an asset can have.
        runner: What runs a stage.
        parameters: Parameter values by name, as canonical text (see `Literal`).
        instance: Where the run is recorded; an ephemeral instance of this process by default.
        listener: Who hears of the progress.
        store: Where the run's events are kept; nowhere if not given.
        max_concurrent: How many stages run at a time; the executor's default if not given.
        run_id: The run's id; a new one if not given.
        debug: Whether Dagster's own log lines go to standard error.

    Returns:
        The outcome; a failed stage is not an exception. An interrupt (Ctrl-C) cancels the run's
        jobs and gives an outcome that is `cancelled`.
    """
    record = _Record(listener or SilentListener())
    job = _build_job(graph, ListeningRunner(runner, record), is_shown=instance is not None)
    values = with_zone(graph, parameters or {})
    run_id = run_id or str(uuid.uuid4())
    config: dict[str, object] = {"execution": {"config": {"max_concurrent": max_concurrent}}}
    if not debug:
        config["loggers"] = {"console": {"config": {"log_level": "CRITICAL"}}}
    where = instance or _ephemeral_instance()
    try:
        result = execute_in_process(
            job,
            instance=where,
            run_config=config,
            run_id=run_id,
            tags={QUERY_TAG: graph.query[:63], **parameter_tags(values)},
        )
        if store is not None:
            save_events(store, run_id, map(_event, where.all_logs(run_id)))
    finally:
        if instance is None:
            where.delete_run(run_id)
    return _outcome(result, record)


class _Record:
    """A listener that remembers how each stage ended, and passes everything on."""

    def __init__(self, listener: RunListener) -> None:
        self._listener = listener
        self._lock = threading.Lock()
        self.finished: dict[int, StageMetadata] = {}
        self.failed: dict[int, BaseException] = {}

    def stage_started(self, stage: Stage) -> None:
        self._listener.stage_started(stage)

    def task_progress(self, stage: Stage, finished: int, total: int) -> None:
        self._listener.task_progress(stage, finished, total)

    def stage_finished(self, stage: Stage, metadata: StageMetadata) -> None:
        with self._lock:
            self.finished[stage.stage_id] = metadata
            self.failed.pop(stage.stage_id, None)  # a retry helped
        self._listener.stage_finished(stage, metadata)

    def stage_failed(self, stage: Stage, error: BaseException) -> None:
        with self._lock:
            self.failed[stage.stage_id] = error
        self._listener.stage_failed(stage, error)


def _build_job(graph: StageGraph, runner: StageRunner, *, is_shown: bool) -> dg.JobDefinition:
    name = asset_name(graph)
    planned = PlannedQuery(query=Query(name=name, sql=graph.sql), graph=graph)
    specs = build_stage_specs(planned, StageTranslator()) if is_shown else _bare_specs(planned)
    assets = build_assets(planned, specs)
    engine = dg.ResourceDefinition.hardcoded_resource(runner)
    return resolve_alone(build_job(planned, assets), assets, {ENGINE_RESOURCE: engine})


def _bare_specs(planned: PlannedQuery) -> Sequence[tuple[Stage, dg.AssetSpec]]:
    """Specs that say only what runs after what: nobody looks at the assets of such a run."""
    translator = StageTranslator()
    keys = [
        translator.get_asset_key(StageProps(query=planned.query, graph=planned.graph, stage=stage))
        for stage in planned.graph.stages
    ]
    return [
        (stage, dg.AssetSpec(key=key, deps=[keys[i] for i in stage.inputs]))
        for stage, key in zip(planned.graph.stages, keys, strict=True)
    ]


_instance_lock = threading.Lock()


def _ephemeral_instance() -> dg.DagsterInstance:
    """One for the process: making it costs as much as a small query."""
    with _instance_lock:
        return _make_instance()


@cache
def _make_instance() -> dg.DagsterInstance:
    from stagecoach.assets.in_process.instance import ephemeral_instance

    return ephemeral_instance()


def _outcome(result: dg.ExecuteInProcessResult, record: _Record) -> RunOutcome:
    problem = None
    if not result.success and not record.failed:
        problem = next((e.message for e in result.all_events if e.is_run_failure), None)
    return RunOutcome(
        success=result.success,
        run_id=result.run_id,
        stages=MappingProxyType(dict(record.finished)),
        failures=MappingProxyType(dict(record.failed)),
        cancelled=was_interrupted(result),
        problem=problem,
    )


def _event(entry: dg.EventLogEntry) -> dict[str, object]:
    """An event as plain data: when, what, which step, and its numbers."""
    line: dict[str, object] = {
        "time": moment_text(entry.timestamp),
        "type": entry.dagster_event.event_type_value if entry.dagster_event else "LOG",
        "step": entry.step_key,
        "message": entry.user_message,
    }
    event = entry.dagster_event
    if event and event.is_step_materialization:
        materialization = event.step_materialization_data.materialization
        line["asset"] = list(materialization.asset_key.path)
        line["metadata"] = {k: _plain(v.value) for k, v in materialization.metadata.items()}
    elif event and event.is_step_failure and event.step_failure_data.error:
        line["error"] = event.step_failure_data.error.to_string()
    return {key: value for key, value in line.items() if value is not None}


def _plain(value: object) -> object:
    """A metadata value as JSON holds it."""
    if isinstance(value, dg.TableSchema):
        return [{"name": column.name, "type": column.type} for column in value.columns]
    return plain_value(value)
