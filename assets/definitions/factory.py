"""Makes an asset of each stage: one asset, one step, one call of `run_stage`.

The assets need a resource `engine` (a `StageRunner`). The query's job runs all of them.
"""

import inspect
from collections.abc import Iterator, Sequence

import dagster as dg

from stagecoach.assets.definitions.checks import check_specs
from stagecoach.assets.definitions.query_jobs import query_job
from stagecoach.assets.execution.audit import Audit
from stagecoach.assets.execution.audited_step import AuditedStep
from stagecoach.assets.execution.engine import ENGINE_RESOURCE as ENGINE_RESOURCE
from stagecoach.assets.execution.executor import AssetJob, stagecoach_threads
from stagecoach.assets.execution.policy import ExecutionPolicy
from stagecoach.assets.execution.stage_places import StageAssets
from stagecoach.assets.execution.step import StageStep
from stagecoach.assets.plans.planned import PlannedQuery
from stagecoach.assets.project.partitions import backfill_policy
from stagecoach.planner.plan.stages import Stage

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
    audit: Audit | None = None,
) -> Sequence[dg.AssetsDefinition]:
    """An asset for each stage of the query, leaves first.

    Args:
        planned: The query.
        specs: Its stages and how they look; see `build_stage_specs`.
        policy: How its stages are run; by default retried where that can help, without a limit.
        audit: What the result must pass to be published; None to publish it at once.
    """
    places = StageAssets({stage.stage_id: spec.key for stage, spec in specs})
    policy = policy or DEFAULT_POLICY
    found = [_stage_asset(planned, places, policy, stage, spec) for stage, spec in specs[:-1]]
    if audit is None:
        return [*found, _stage_asset(planned, places, policy, *specs[-1])]
    return [*found, _audited_asset(planned, places, policy, audit, *specs[-1])]


def build_job(
    planned: PlannedQuery,
    assets: Sequence[dg.AssetsDefinition],
    checks: Sequence[dg.AssetChecksDefinition] = (),
    executor: dg.ExecutorDefinition = stagecoach_threads,
) -> AssetJob:
    """The job `run_<query>`: all stages of the query, then its checks.

    Args:
        planned: The query.
        assets: Its stages.
        checks: Its checks.
        executor: What runs them; by default threads of one process.
    """
    return query_job(
        planned.query.job_name,
        assets=[asset.key for asset in assets],
        checks=[key for check in checks for key in check.check_keys],
        description=planned.query.front_matter.description or f"Run the query {planned.query.name}",
        executor=executor,
    )


def _stage_asset(
    planned: PlannedQuery,
    places: StageAssets,
    policy: ExecutionPolicy,
    stage: Stage,
    spec: dg.AssetSpec,
) -> dg.AssetsDefinition:
    step = StageStep(planned=planned, stage=stage, places=places, policy=policy)

    def run(context: dg.AssetExecutionContext) -> "dg.MaterializeResult[None]":
        return step.run(context)

    # Dagster looks at signature and annotations some ten times a step, and there are thousands.
    run.__annotations__ = _ANNOTATIONS
    vars(run)["__signature__"] = _SIGNATURE  # what `inspect.signature` takes
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


def _audited_asset(
    planned: PlannedQuery,
    places: StageAssets,
    policy: ExecutionPolicy,
    audit: Audit,
    stage: Stage,
    spec: dg.AssetSpec,
) -> dg.AssetsDefinition:
    """The asset of a result, and its checks; a run may select these alone."""
    step = AuditedStep(planned=planned, stage=stage, places=places, policy=policy, audit=audit)

    @dg.multi_asset(
        specs=[spec],
        name="__".join(spec.key.path),
        check_specs=check_specs(planned.query, spec.key, audit.checks),
        can_subset=True,
        required_resource_keys={ENGINE_RESOURCE},
        op_tags={PRIORITY_TAG: str(-stage.estimated_bytes.bit_length())},
        pool=policy.pool,
        backfill_policy=backfill_policy(planned.query.front_matter),
    )
    def run(
        context: dg.AssetExecutionContext,
    ) -> "Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]":
        yield from step.run_audited(context)

    return run
