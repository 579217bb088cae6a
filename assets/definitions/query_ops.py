"""Makes one asset of a query, its stages being the ops of a graph.

    table ─(Nothing)─▶ stage_0 ─(Nothing)─▶ stage_2 ─▶ the asset
    table ─(Nothing)─▶ stage_1 ─(Nothing)──┘

No value travels between ops: outputs of stages are in storage, and Dagster knows the order alone.
"""

from collections.abc import Iterator, Mapping

import dagster as dg

from stagecoach.assets.definitions.checks import check_specs
from stagecoach.assets.definitions.factory import PRIORITY_TAG
from stagecoach.assets.execution.audit import Audit
from stagecoach.assets.execution.audited_step import AuditedStep, is_selected
from stagecoach.assets.execution.engine import ENGINE_RESOURCE
from stagecoach.assets.execution.policy import ExecutionPolicy
from stagecoach.assets.execution.stage_places import StageOps
from stagecoach.assets.execution.step import StageStep
from stagecoach.assets.plans.planned import PlannedQuery
from stagecoach.assets.project.partitions import backfill_policy
from stagecoach.planner.plan.stages import Stage

_RESULT = "result"


def build_query_asset(
    planned: PlannedQuery,
    spec: dg.AssetSpec,
    policy: ExecutionPolicy,
    audit: Audit | None = None,
) -> dg.AssetsDefinition:
    """Return the asset of a query.

    Args:
        planned: The query.
        spec: How the asset looks; see `build_query_spec`.
        policy: How each op is run.
        audit: What the result must pass to be published; None to publish it at once.
    """
    graph = planned.graph
    node = "__".join(spec.key.path)
    keys = {stage.stage_id: spec.key for stage in graph.stages}
    places = StageOps(keys, node, graph.head.stage_id)
    # Every leaf waits for all tables of the query: a run reads them as they are when it begins.
    tables = {f"table_{i}": dep.asset_key for i, dep in enumerate(spec.deps)}
    ops = [_stage_op(planned, stage, places, policy, tables, audit) for stage in graph.stages]
    checks = {} if audit is None else _checks_by_output(planned, spec, audit)
    leaves = [places.op_name(stage.stage_id) for stage in graph.stages if not stage.inputs]
    ends_in = places.op_name(graph.head.stage_id)
    definition = dg.GraphDefinition(
        node,
        node_defs=ops,
        dependencies={
            # In a job of several queries each op needs a name of its own; its step has the alias.
            dg.NodeInvocation(_op_name(planned, stage), alias=places.op_name(stage.stage_id)): {
                name: dg.DependencyDefinition(name) for name in map(places.op_name, stage.inputs)
            }
            for stage in graph.stages
        },
        input_mappings=[
            dg.InputMapping(
                graph_input_name=table, mapped_node_name=leaf, mapped_node_input_name=table
            )
            for table in tables
            for leaf in leaves
        ],
        output_mappings=[
            dg.OutputMapping(
                graph_output_name=output, mapped_node_name=ends_in, mapped_node_output_name=output
            )
            for output in (_RESULT, *checks)
        ],
    )
    return dg.AssetsDefinition(
        node_def=definition,
        keys_by_input_name=tables,
        keys_by_output_name={_RESULT: spec.key},
        specs=[spec],
        check_specs_by_output_name=checks,
        can_subset=bool(checks),
        backfill_policy=backfill_policy(planned.query.front_matter),
    )


def _checks_by_output(
    planned: PlannedQuery, spec: dg.AssetSpec, audit: Audit
) -> Mapping[str, dg.AssetCheckSpec]:
    found = check_specs(planned.query, spec.key, audit.checks)
    return {f"check_{number}": check for number, check in enumerate(found)}


def _op_name(planned: PlannedQuery, stage: Stage) -> str:
    return f"{planned.query.name}__{StageOps.op_name(stage.stage_id)}"


def _stage_op(
    planned: PlannedQuery,
    stage: Stage,
    places: StageOps,
    policy: ExecutionPolicy,
    tables: Mapping[str, dg.AssetKey],
    audit: Audit | None,
) -> dg.OpDefinition:
    inputs = map(places.op_name, stage.inputs) if stage.inputs else tables
    is_audited = audit is not None and stage is planned.graph.head
    checks = range(len(audit.checks)) if audit is not None and is_audited else ()
    decorate = dg.op(
        name=_op_name(planned, stage),
        description=f"{stage.title}\n\nRuns on **{stage.engine}**: {stage.engine_reason}",
        ins={name: dg.In(dg.Nothing) for name in inputs},
        out={
            _RESULT: dg.Out(dg.Nothing, is_required=not is_audited),
            **{f"check_{i}": dg.Out(dg.Nothing, is_required=False) for i in checks},
        },
        required_resource_keys={ENGINE_RESOURCE},
        tags={PRIORITY_TAG: str(-stage.estimated_bytes.bit_length())},
        pool=policy.pool,
    )
    if audit is not None and is_audited:
        head = AuditedStep(planned=planned, stage=stage, places=places, policy=policy, audit=audit)

        def run_audited(
            context: dg.AssetExecutionContext,
        ) -> "Iterator[dg.Output[None] | dg.AssetCheckResult]":
            yield from head.run_audited(context)

        return decorate(run_audited)
    step = StageStep(planned=planned, stage=stage, places=places, policy=policy)

    def run(context: dg.AssetExecutionContext) -> "dg.Output[None]":
        if audit is not None and not is_selected(context, places.assets[stage.stage_id]):
            return dg.Output(None)  # a run of checks alone, which read what is published
        return step.run(context)

    return decorate(run)
