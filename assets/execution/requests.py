"""Which stage a step of a Dagster run asks for, and under which conditions.

A `StageRequest` says whose snapshot and parameters apply, what may be reused and, for a run of a
part of a query, whose outputs of the other stages are read.
"""

from collections.abc import Collection, Mapping
from typing import Any

import dagster as dg

from stagecoach.assets.execution.engine import EarlierRun, StageRequest
from stagecoach.assets.execution.stage_places import StagePlaces
from stagecoach.assets.plans.planned import PlannedQuery
from stagecoach.assets.project.front_matter import Partitions
from stagecoach.assets.project.parameters import parameters_for
from stagecoach.assets.project.partitions import RunWindow, run_window, window_values
from stagecoach.planner.plan.stages import Stage, StageGraph

FRESH_TAG = "stagecoach/fresh"
# Dagster's own, of a run that was re-executed from failure with a choice of assets, not of steps.
RESUME_TAG = "dagster/is_asset_resume_retry"


def build_request(
    context: dg.AssetExecutionContext,
    planned: PlannedQuery,
    stage: Stage,
    places: StagePlaces[Any],
) -> StageRequest:
    """The stage that this step of a run is to run.

    Args:
        context: Of the step.
        planned: The query.
        stage: Its stage.
        places: Where its stages are in Dagster.
    """
    run = context.run
    partitions = planned.query.front_matter.partitions
    window = run_window(context, partitions)
    root = _root_of(context.instance, run, planned)
    chosen = _chosen(context, planned, places.assets)
    # A re-execution reads what the run that it goes on with has read.
    goes_on = _goes_on(run)
    outside = () if goes_on else _outside(planned, chosen)
    earlier = _earlier(context.instance, planned, [places.assets[i] for i in outside], window)
    return StageRequest(
        graph=planned.graph,
        stage_id=stage.stage_id,
        run_id=f"{run.run_id}{_suffix(run, planned)}",
        root_run_id=root.root_run_id,
        parameters=run_parameters(
            planned.graph, run, window, partitions, alone=run.job_name == planned.query.job_name
        ),
        fresh=root.fresh,
        recover=planned.query.front_matter.recover,
        attempt=context.retry_number,
        stages=chosen if len(chosen) < len(planned.graph.stages) else (),
        outside=outside,
        earlier=earlier,
        regroups=window is not None and (goes_on or bool(earlier)),
    )


def run_parameters(
    graph: StageGraph,
    run: dg.DagsterRun,
    window: RunWindow | None,
    partitions: Partitions | None,
    *,
    alone: bool,
) -> dict[str, str]:
    """The values that a run has for a query: those of its tags, and those of its partition.

    Args:
        graph: The query.
        run: The run.
        window: What the run makes of a partitioned query.
        partitions: Those of the query.
        alone: Whether the run is of this query only; see `parameters_for`.
    """
    bound = window_values(window, partitions) if window and partitions else {}
    known = {p.name for p in graph.parameters}
    return {
        **parameters_for(graph, run.tags, alone=alone),
        **{name: text for name, text in bound.items() if name in known},
    }


def _chosen(
    context: dg.AssetExecutionContext, planned: PlannedQuery, keys: Mapping[int, dg.AssetKey]
) -> tuple[int, ...]:
    """The stages of the query that the run consists of."""
    selected = context.job_def.asset_layer.executable_asset_keys
    return tuple(s.stage_id for s in planned.graph.stages if keys[s.stage_id] in selected)


def _outside(planned: PlannedQuery, chosen: Collection[int]) -> tuple[int, ...]:
    """Stages that stages of the run read and that are not part of it."""
    read = {i for stage_id in chosen for i in planned.graph.stages[stage_id].inputs}
    return tuple(sorted(read.difference(chosen)))


def _earlier(
    instance: dg.DagsterInstance,
    planned: PlannedQuery,
    keys: list[dg.AssetKey],
    window: RunWindow | None,
) -> tuple[EarlierRun, ...]:
    """The runs that made the assets (of these partitions) last, newest first."""
    found: dict[EarlierRun, float] = {}
    for key in keys:
        wanted = dg.AssetRecordsFilter(
            asset_key=key, asset_partitions=list(window.keys) if window else None
        )
        records = instance.fetch_materializations(wanted, limit=1).records
        event = records[0].event_log_entry if records else None
        run = instance.get_run_by_id(event.run_id) if event else None
        if event and run:
            root = _root_of(instance, run, planned)
            found[root] = max(event.timestamp, found.get(root, 0.0))
    return tuple(sorted(found, key=found.__getitem__, reverse=True))


def _root_of(instance: dg.DagsterInstance, run: dg.DagsterRun, planned: PlannedQuery) -> EarlierRun:
    fresh = run.tags.get(FRESH_TAG, "").lower() == "true"
    return EarlierRun(f"{first_run_id(instance, run)}{_suffix(run, planned)}", fresh)


def first_run_id(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    """The first of the runs that this one goes on with; itself where it goes on with none.

    A re-execution of all steps has a parent, too, but starts anew and reads the tables as they are.
    """
    while _goes_on(run) and run.parent_run_id:
        parent = instance.get_run_by_id(run.parent_run_id)
        if parent is None:  # deleted; then the first of all is the best guess
            return run.root_run_id or run.parent_run_id
        run = parent
    return run.run_id


def _goes_on(run: dg.DagsterRun) -> bool:
    """Whether the run continues its parent, from failure or with a choice of its steps."""
    if run.parent_run_id is None:
        return False
    return run.step_keys_to_execute is not None or run.tags.get(RESUME_TAG) == "true"


def _suffix(run: dg.DagsterRun, planned: PlannedQuery) -> str:
    """A run of another job may span queries, each with pointers and a snapshot of its own."""
    return "" if run.job_name == planned.query.job_name else f".{planned.query.name}"
