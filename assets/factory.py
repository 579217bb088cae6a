"""Stages → assets: one asset, one step, one call of `run_stage` per stage.

In: a planned query and its specs. Out: `AssetsDefinition`s and the query's job. The assets need a
resource `engine` (a `StageRunner`).
"""

import inspect
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import dagster as dg

from assets.cancellation import TimeLimit, cancel_registry
from assets.engine import (
    FailureLog,
    HasFailureLog,
    HearsTheEnd,
    Publishes,
    StageRequest,
    StageRunner,
)
from assets.executor import AssetJob, stagecoach_threads
from assets.failures import failure_text, missing_upstream
from assets.metadata import StageMetadata
from assets.partitions import backfill_policy, run_window
from assets.policy import ExecutionPolicy
from assets.publishing import partition_metadata, publish_target, published_metadata
from assets.requests import build_request
from assets.run_page import HasStore, PageMetadata, write_run_page
from assets.specs import PlannedQuery
from planner.errors import StagecoachError
from planner.stages import Stage

ENGINE_RESOURCE = "engine"
# Ready stages start in this order, so that a small one need not wait behind a large scan.
PRIORITY_TAG = "dagster/priority"
DEFAULT_POLICY = ExecutionPolicy()

_ANNOTATIONS = {"context": dg.AssetExecutionContext, "return": dg.MaterializeResult}
_SIGNATURE = inspect.Signature(
    [
        inspect.Parameter(
            "context",
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            annotation=dg.AssetExecutionContext,
        )
    ],
    return_annotation=dg.MaterializeResult,
)


def build_assets(
    planned: PlannedQuery,
    specs: Sequence[tuple[Stage, dg.AssetSpec]],
    policy: ExecutionPolicy | None = None,
) -> Sequence[dg.AssetsDefinition]:
    """An asset for each stage of the query, leaves first.

    Args:
        planned: The query.
        specs: Its stages and how they look; see `build_stage_specs`.
        policy: How its stages are run; by default retried where that can help, without a limit.
    """
    keys = {stage.stage_id: spec.key for stage, spec in specs}
    step = partial(_stage_asset, planned, keys, policy or DEFAULT_POLICY)
    return [step(stage, spec) for stage, spec in specs]


def build_job(
    planned: PlannedQuery,
    assets: Sequence[dg.AssetsDefinition],
    checks: Sequence[dg.AssetChecksDefinition] = (),
) -> AssetJob:
    """The job `run_<query>`: all stages of the query as threads of one process, then its checks."""
    selection = dg.AssetSelection.assets(*(asset.key for asset in assets))
    names = [key for check in checks for key in check.check_keys]
    return dg.define_asset_job(
        planned.query.job_name,
        selection=selection | dg.AssetSelection.checks(*names) if names else selection,
        description=planned.query.front_matter.description or f"Run the query {planned.query.name}",
        executor_def=stagecoach_threads,
    )


def _stage_asset(
    planned: PlannedQuery,
    keys: Mapping[int, dg.AssetKey],
    policy: ExecutionPolicy,
    stage: Stage,
    spec: dg.AssetSpec,
) -> dg.AssetsDefinition:
    def run(context: dg.AssetExecutionContext) -> "dg.MaterializeResult[None]":
        run_id = context.run.run_id
        request = build_request(context, planned, stage, keys)
        runner: StageRunner = getattr(context.resources, ENGINE_RESOURCE)
        cancel = partial(runner.cancel_stage, request)
        limit = TimeLimit(policy.timeout_seconds)
        is_head = stage is planned.graph.head
        try:
            with cancel_registry.on_cancel(run_id, cancel), limit.over(cancel):
                metadata = runner.run_stage(request)
                published = _publish(context, planned, runner, request) if is_head else {}
        except StagecoachError as error:
            cancelled = cancel_registry.is_cancelled(run_id)
            if not cancelled and not limit.exceeded:
                context.log.error(failure_text(error, request, _failure_log(runner, request)))
            failure = to_dagster_error(
                error,
                request,
                policy,
                keys,
                retries=context.retry_number,
                cancelled=cancelled,
                timed_out=limit.exceeded,
            )
            if isinstance(failure, dg.Failure) and isinstance(runner, HearsTheEnd):
                runner.run_ended(request)
            if isinstance(failure, dg.Failure) and isinstance(runner, HasStore) and not cancelled:
                text = failure.description or str(error)
                page = write_run_page(context, runner.store(), request, keys, text)
                failure = dg.Failure(text, {**failure.metadata, **page}, allow_retries=False)
            raise failure from error
        if metadata.plan_warning is not None:
            context.log.warning(metadata.plan_warning)
        page = {}
        if is_head and isinstance(runner, HearsTheEnd):
            runner.run_ended(request)
        if is_head and isinstance(runner, HasStore):
            page = write_run_page(context, runner.store(), request, keys, metadata)
        return to_result(metadata, spec.key, {**published, **page})

    # Dagster looks at signature and annotations some ten times a step, and there are thousands.
    run.__annotations__ = _ANNOTATIONS
    run.__signature__ = _SIGNATURE  # type: ignore[attr-defined]  # what `inspect.signature` takes
    # One spec, so one step: `@asset` would do the same but takes no spec.
    decorate = dg.multi_asset(
        specs=[spec],
        name="__".join(spec.key.path),
        required_resource_keys={ENGINE_RESOURCE},
        op_tags={PRIORITY_TAG: str(-stage.estimated_bytes.bit_length())},
        pool=policy.pool,
        backfill_policy=backfill_policy(planned.query.front_matter),
    )
    return decorate(run)


def _publish(
    context: dg.AssetExecutionContext,
    planned: PlannedQuery,
    runner: StageRunner,
    request: StageRequest,
) -> Mapping[str, dg.MetadataValue[Any]]:
    """Publish the result as the query's table; what it came to."""
    if not planned.publishes or not isinstance(runner, Publishes):
        return {}
    window = run_window(context, planned.query.front_matter.partitions)
    published = runner.publish(request, publish_target(planned.query, window))
    if window is not None and len(window.keys) > 1:
        for key in window.keys:
            context.add_asset_metadata(partition_metadata(published, key), partition_key=key)
    return published_metadata(published, runner.table_uri(published.version.table))


def _failure_log(runner: StageRunner, request: StageRequest) -> FailureLog | None:
    return runner.failure_log(request) if isinstance(runner, HasFailureLog) else None


def to_result(
    metadata: StageMetadata, key: dg.AssetKey, page: PageMetadata | None = None
) -> "dg.MaterializeResult[None]":
    """What a stage that ran reports: its numbers, and its fingerprint as data version.

    Args:
        metadata: What it tells about itself.
        key: Its asset.
        page: Where the page of the run is, for the head stage.
    """
    version = dg.DataVersion(metadata.fingerprint) if metadata.fingerprint else None
    told = {**metadata.to_dagster(), **(page or {})}
    return dg.MaterializeResult(asset_key=key, metadata=told, data_version=version)


def to_dagster_error(
    error: StagecoachError,
    request: StageRequest,
    policy: ExecutionPolicy,
    keys: Mapping[int, dg.AssetKey],
    *,
    retries: int,
    cancelled: bool,
    timed_out: bool = False,
) -> Exception:
    """What Dagster must do about a failed stage.

    A retry is asked for only where the error says that it can help (a storage or machine fault):
    a mistake in the SQL fails the same way again, and a stage over its time limit is over it again.
    """
    stage, description = request.stage, str(error)
    if timed_out:
        description = (
            f"{request.graph.query}/stage_{stage.stage_id} took longer than its time limit of "
            f"{policy.timeout_seconds:g} s and was cancelled; raise `timeout` in the query's front "
            "matter, or remove it"
        )
    elif error.retryable and not cancelled and retries < policy.max_retries:
        wait = policy.wait_seconds(retries)
        return dg.RetryRequested(max_retries=policy.max_retries, seconds_to_wait=wait)
    elif missing := missing_upstream(error, request, keys):
        description = missing
    metadata: Mapping[str, dg.MetadataValue[str]] = {
        "stagecoach/error": dg.MetadataValue.text(type(error).__name__),
        "stagecoach/stage": dg.MetadataValue.text(stage.title),
    }
    return dg.Failure(description=description, metadata=metadata, allow_retries=False)
