"""Makes one asset of a query, its stages being the ops of a graph.

    table ─(Nothing)─▶ stage_0 ─(Nothing)─▶ stage_2 ─▶ the asset
    table ─(Nothing)─▶ stage_1 ─(Nothing)──┘

No value travels between ops: outputs of stages are in storage, and Dagster knows the order alone.
"""

from collections.abc import Mapping

import dagster as dg

from stagecoach.assets.definitions.factory import PRIORITY_TAG
from stagecoach.assets.execution.engine import ENGINE_RESOURCE
from stagecoach.assets.execution.policy import ExecutionPolicy
from stagecoach.assets.execution.stage_places import StageOps
from stagecoach.assets.execution.step import StageStep
from stagecoach.assets.plans.planned import PlannedQuery
from stagecoach.assets.project.partitions import backfill_policy
from stagecoach.planner.plan.stages import Stage

_RESULT = "result"


def build_query_asset(
    planned: PlannedQuery, spec: dg.AssetSpec, policy: ExecutionPolicy
) -> dg.AssetsDefinition:
    """Return the asset of a query.

    Args:
        planned: The query.
        spec: How the asset looks; see `build_query_spec`.
        policy: How each op is run.
    """
    graph = planned.graph
    node = "__".join(spec.key.path)
    keys = {stage.stage_id: spec.key for stage in graph.stages}
    places = StageOps(keys, node, graph.head.stage_id)
    # Every leaf waits for all tables of the query: a run reads them as they are when it begins.
    tables = {f"table_{i}": dep.asset_key for i, dep in enumerate(spec.deps)}
    ops = [_stage_op(planned, stage, places, policy, tables) for stage in graph.stages]
    leaves = [places.op_name(stage.stage_id) for stage in graph.stages if not stage.inputs]
    ends_in = places.op_name(graph.head.stage_id)
    definition = dg.GraphDefinition(
        node,
        node_defs=ops,
        dependencies={
            dg.NodeInvocation(
                _definition_name(places, stage), alias=places.op_name(stage.stage_id)
            ): {name: dg.DependencyDefinition(name) for name in map(places.op_name, stage.inputs)}
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
                graph_output_name=_RESULT,
                mapped_node_name=ends_in,
                mapped_node_output_name=_RESULT,
            )
        ],
    )
    return dg.AssetsDefinition(
        node_def=definition,
        keys_by_input_name=tables,
        keys_by_output_name={_RESULT: spec.key},
        specs=[spec],
        backfill_policy=backfill_policy(planned.query.front_matter),
    )


def _definition_name(places: StageOps, stage: Stage) -> str:
    """The name of a stage's op, which no other op of the same job may have, also of other graphs.

    In its graph it goes by a shorter one.
    """
    return f"{places.node}__{places.op_name(stage.stage_id)}"


def _stage_op(
    planned: PlannedQuery,
    stage: Stage,
    places: StageOps,
    policy: ExecutionPolicy,
    tables: Mapping[str, dg.AssetKey],
) -> dg.OpDefinition:
    step = StageStep(planned=planned, stage=stage, places=places, policy=policy)
    inputs = map(places.op_name, stage.inputs) if stage.inputs else tables

    @dg.op(
        name=_definition_name(places, stage),
        description=f"{stage.title}\n\nRuns on **{stage.engine}**: {stage.engine_reason}",
        ins={name: dg.In(dg.Nothing) for name in inputs},
        out={_RESULT: dg.Out(dg.Nothing)},
        required_resource_keys={ENGINE_RESOURCE},
        tags={PRIORITY_TAG: str(-stage.estimated_bytes.bit_length())},
        pool=policy.pool,
    )
    def run(context: dg.AssetExecutionContext) -> "dg.Output[None]":
        return step.run(context)

    return run
