"""Runs a planned query: from storage if all of it is there, else through Dagster and Spark."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from stagecoach.api.result import Result
from stagecoach.assets.execution.engine import StageRequest
from stagecoach.assets.execution.stage_engine import StageEngine
from stagecoach.assets.in_process.reused_run import run_reused
from stagecoach.assets.project.parameters import with_zone
from stagecoach.planner.errors import StagecoachError

if TYPE_CHECKING:
    from stagecoach.api.planned_run import PlannedRun
    from stagecoach.assets.execution.engine import RunListener
    from stagecoach.infra.catalog.planned import TableCatalog
    from stagecoach.infra.config.settings import EngineSettings
    from stagecoach.infra.storage.object_store import ObjectStore


def run_planned(
    planned: PlannedRun,
    *,
    settings: EngineSettings,
    catalog: TableCatalog,
    store: ObjectStore,
    needs_spark: Callable[[], None],
    listener: RunListener,
    fresh: bool = False,
    debug: bool = False,
    run_id: str | None = None,
) -> Result:
    """Run a planned query.

    Args:
        planned: The query.
        settings: The knobs of the run.
        catalog: The base tables.
        store: The storage root.
        needs_spark: Called as soon as it is known that the run computes something.
        listener: Who hears of the progress.
        fresh: Whether every stage runs even where its output is there already.
        debug: Whether Dagster's own log lines go to standard error.
        run_id: The run's id; a new one if not given.

    Raises:
        StagecoachError: The run failed.
        KeyboardInterrupt: The run was interrupted; its jobs are cancelled.
    """
    graph = planned.graph
    engine = StageEngine(settings, catalog, fresh=fresh)
    parameters = {k: v.text for k, v in planned.parameters.items() if v.text is not None}
    run_id = run_id or str(uuid.uuid4())
    head = StageRequest(
        graph=graph,
        stage_id=graph.head.stage_id,
        run_id=run_id,
        root_run_id=run_id,
        parameters=with_zone(graph, parameters),
    )
    outcome = run_reused(head, engine=engine, listener=listener, store=store)
    if outcome is None:
        needs_spark()
        from stagecoach.assets.in_process.run import run_graph  # Dagster, while Spark starts

        outcome = run_graph(
            graph,
            runner=engine,
            parameters=parameters,
            listener=listener,
            store=store,
            run_id=run_id,
            debug=debug,
        )
    if outcome.cancelled:
        raise KeyboardInterrupt
    if outcome.failures:
        raise outcome.failures[min(outcome.failures)]
    if not outcome.success:
        raise StagecoachError(f"the run failed outside of any stage: {outcome.problem}")

    def run_again() -> str:
        needs_spark()
        return engine.run_stage(head).fingerprint or ""

    return Result(
        graph=graph,
        run_id=run_id,
        stages=tuple(outcome.stages[stage.stage_id] for stage in graph.stages),
        store=store,
        settings=settings,
        run_again=run_again if settings.recover else None,
        known=engine.known_output(head),
    )
