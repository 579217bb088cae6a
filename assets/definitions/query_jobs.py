"""Jobs that Dagster resolves without looking at every asset of the code location.

For each job Dagster looks at every asset of the code location, several times, so the time for all
jobs grows with the square of their number (200 jobs of 1,000 assets: 1.3 s, and every process that
runs or serves the location pays it). A query's job needs its own assets and what these read.

As in `assets.executor`, `dagster._core` is what Dagster keeps to itself (`dagster>=1.13,<1.14`).
"""

from collections.abc import Mapping, Sequence

import dagster as dg
from dagster._core.definitions.assets.graph.asset_graph import AssetGraph
from dagster._core.definitions.assets.job.asset_job import JobScopedAssetGraph

from stagecoach.assets.execution.executor import AssetJob


class QueryJob(AssetJob):
    """A job of assets that is resolved among these and their parents alone."""

    def resolve(
        self,
        asset_graph: AssetGraph,
        default_executor_def: dg.ExecutorDefinition | None = None,
        resource_defs: Mapping[str, dg.ResourceDefinition] | None = None,
    ) -> dg.JobDefinition:
        """The job; Dagster calls this with all assets of the code location."""
        job = super().resolve(
            _around(asset_graph, self.selection), default_executor_def, resource_defs
        )
        own = job.asset_layer.asset_graph
        if isinstance(own, JobScopedAssetGraph):
            # A run of this job may be asked for any asset of the location.
            own._source_asset_graph = asset_graph
        return job


def query_job(
    name: str,
    *,
    assets: Sequence[dg.AssetKey],
    checks: Sequence[dg.AssetCheckKey] = (),
    description: str,
    executor: dg.ExecutorDefinition,
) -> AssetJob:
    """The job of these assets and checks, as `dg.define_asset_job` makes it."""
    selection: dg.AssetSelection = dg.AssetSelection.assets(*assets)
    if checks:
        selection = selection | dg.AssetSelection.checks(*checks)
    return QueryJob(name, selection, description=description, executor_def=executor)


def resolve_alone(
    job: AssetJob,
    assets: Sequence[dg.AssetsDefinition],
    resources: Mapping[str, dg.ResourceDefinition],
) -> dg.JobDefinition:
    """The job over assets of no code location, whose other definitions would be made for nothing.

    Args:
        job: The job.
        assets: All assets that it runs.
        resources: What these require.
    """
    return job.resolve(AssetGraph.from_assets(assets), resource_defs=resources)


def _around(graph: AssetGraph, selection: dg.AssetSelection) -> AssetGraph:
    """The part of a graph that a job of some assets, and of checks of these, is made from."""
    selected = [graph.get(key) for key in selection.resolve(graph)]
    parents = [graph.get(key) for node in selected for key in node.parent_keys]
    checks = [check for node in selected for check in node.check_keys]
    return AssetGraph(
        {node.key: node for node in (*selected, *parents)},
        {check: graph.assets_def_for_key(check) for check in checks},
    )
