"""Stages → assets: one asset, one step, one call of `run_stage` per stage.

In: a planned query and its specs. Out: `AssetsDefinition`s and the query's job. The assets need a
resource `engine` (a `StageRunner`).
"""

from collections.abc import Mapping, Sequence
from functools import partial

import dagster as dg

from assets.cancellation import cancel_registry
from assets.engine import StageRequest, StageRunner
from assets.executor import AssetJob, stagecoach_threads
from assets.metadata import StageMetadata
from assets.parameters import parameters_for
from assets.specs import PlannedQuery
from planner.errors import StagecoachError
from planner.stages import Stage

ENGINE_RESOURCE = "engine"
# Ready stages start in this order, so that a small one need not wait behind a large scan.
PRIORITY_TAG = "dagster/priority"
MAX_RETRIES = 2
FIRST_RETRY_SECONDS = 1.0


def build_assets(
    planned: PlannedQuery, specs: Sequence[tuple[Stage, dg.AssetSpec]]
) -> Sequence[dg.AssetsDefinition]:
    """An asset for each stage of the query, leaves first.

    Args:
        planned: The query.
        specs: Its stages and how they look; see `build_stage_specs`.
    """
    return [_stage_asset(planned, stage, spec) for stage, spec in specs]


def build_job(planned: PlannedQuery, assets: Sequence[dg.AssetsDefinition]) -> AssetJob:
    """The job `run_<query>`: all stages of the query as threads of one process."""
    return dg.define_asset_job(
        planned.query.job_name,
        selection=dg.AssetSelection.assets(*(asset.key for asset in assets)),
        description=planned.query.front_matter.description or f"Run the query {planned.query.name}",
        executor_def=stagecoach_threads,
    )


def _stage_asset(planned: PlannedQuery, stage: Stage, spec: dg.AssetSpec) -> dg.AssetsDefinition:
    # One spec, so one step: `@asset` would do the same but takes no spec.
    @dg.multi_asset(
        specs=[spec],
        name="__".join(spec.key.path),
        required_resource_keys={ENGINE_RESOURCE},
        op_tags={PRIORITY_TAG: str(-stage.estimated_bytes.bit_length())},
    )
    def run(context: dg.AssetExecutionContext) -> "dg.MaterializeResult[None]":
        run = context.run
        # A run of another job may span queries, each with pointers and a snapshot of its own.
        suffix = "" if run.job_name == planned.query.job_name else f".{planned.query.name}"
        request = StageRequest(
            graph=planned.graph,
            stage_id=stage.stage_id,
            run_id=f"{run.run_id}{suffix}",
            root_run_id=f"{run.root_run_id or run.run_id}{suffix}",
            parameters=parameters_for(planned.graph, run.tags, alone=not suffix),
        )
        runner: StageRunner = getattr(context.resources, ENGINE_RESOURCE)
        try:
            with cancel_registry.on_cancel(run.run_id, partial(runner.cancel_stage, request)):
                metadata = runner.run_stage(request)
        except StagecoachError as error:
            raise to_dagster_error(
                error,
                stage,
                retries=context.retry_number,
                cancelled=cancel_registry.is_cancelled(run.run_id),
            ) from error
        return to_result(metadata, spec.key)

    return run


def to_result(metadata: StageMetadata, key: dg.AssetKey) -> "dg.MaterializeResult[None]":
    """What a stage that ran reports: its numbers, and its fingerprint as data version."""
    version = dg.DataVersion(metadata.fingerprint) if metadata.fingerprint else None
    return dg.MaterializeResult(asset_key=key, metadata=metadata.to_dagster(), data_version=version)


def to_dagster_error(
    error: StagecoachError, stage: Stage, *, retries: int, cancelled: bool
) -> Exception:
    """What Dagster must do about a failed stage.

    A retry is asked for only where the error says that it can help (a storage or machine fault):
    a mistake in the SQL fails the same way again. The wait doubles from one retry to the next.
    """
    if error.retryable and not cancelled and retries < MAX_RETRIES:
        wait = FIRST_RETRY_SECONDS * 2**retries
        return dg.RetryRequested(max_retries=MAX_RETRIES, seconds_to_wait=wait)
    metadata: Mapping[str, dg.MetadataValue[str]] = {
        "stagecoach/error": dg.MetadataValue.text(type(error).__name__),
        "stagecoach/stage": dg.MetadataValue.text(stage.title),
    }
    return dg.Failure(description=str(error), metadata=metadata, allow_retries=False)
