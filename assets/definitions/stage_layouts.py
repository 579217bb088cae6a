"""The ways in which the stages of a query appear in Dagster.

    assets   [lineitem] ─▶ [q01/stage_0] ─▶ [q01/stage_1] ─▶ [q01]
    ops      [lineitem] ─▶ [q01]: a graph of the ops stage_0 ─▶ stage_1 ─▶ stage_2

With `assets` the output of each stage has a history of its own and can be materialized by itself;
with `ops` the catalog shows the tables alone.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import dagster as dg

from stagecoach.assets.definitions.factory import build_assets
from stagecoach.assets.definitions.query_ops import build_query_asset
from stagecoach.assets.definitions.specs import (
    NO_MAKERS,
    Makers,
    build_query_spec,
    build_stage_specs,
)
from stagecoach.assets.definitions.translator import StageTranslator
from stagecoach.assets.execution.audit import Audit
from stagecoach.assets.execution.policy import ExecutionPolicy
from stagecoach.assets.plans.planned import PlannedQuery
from stagecoach.assets.project.front_matter import StagesAs
from stagecoach.planner.plan.stages import Stage


class StageLayout(ABC):
    """A way to show the stages of a query."""

    @abstractmethod
    def specs(
        self, planned: PlannedQuery, translator: StageTranslator, makers: Makers = NO_MAKERS
    ) -> Sequence[tuple[Stage, dg.AssetSpec]]:
        """Return the stages of a query that are assets, leaves first, the head last.

        Args:
            planned: The query.
            translator: How stages look.
            makers: Queries whose tables it may read; any other table is a base table.
        """

    @abstractmethod
    def assets(
        self,
        planned: PlannedQuery,
        specs: Sequence[tuple[Stage, dg.AssetSpec]],
        policy: ExecutionPolicy,
        audit: Audit | None = None,
    ) -> Sequence[dg.AssetsDefinition]:
        """Return the assets of a query, leaves first.

        Args:
            planned: The query.
            specs: What `specs` returned.
            policy: How its stages are run.
            audit: What the result must pass to be published; None to publish it at once.
        """


class _AsAssets(StageLayout):
    def specs(
        self, planned: PlannedQuery, translator: StageTranslator, makers: Makers = NO_MAKERS
    ) -> Sequence[tuple[Stage, dg.AssetSpec]]:
        return build_stage_specs(planned, translator, makers)

    def assets(
        self,
        planned: PlannedQuery,
        specs: Sequence[tuple[Stage, dg.AssetSpec]],
        policy: ExecutionPolicy,
        audit: Audit | None = None,
    ) -> Sequence[dg.AssetsDefinition]:
        return build_assets(planned, specs, policy, audit)


class _AsOps(StageLayout):
    def specs(
        self, planned: PlannedQuery, translator: StageTranslator, makers: Makers = NO_MAKERS
    ) -> Sequence[tuple[Stage, dg.AssetSpec]]:
        return [(planned.graph.head, build_query_spec(planned, translator, makers))]

    def assets(
        self,
        planned: PlannedQuery,
        specs: Sequence[tuple[Stage, dg.AssetSpec]],
        policy: ExecutionPolicy,
        audit: Audit | None = None,
    ) -> Sequence[dg.AssetsDefinition]:
        ((_, spec),) = specs
        return [build_query_asset(planned, spec, policy, audit)]


LAYOUTS: Mapping[StagesAs, StageLayout] = MappingProxyType({"assets": _AsAssets(), "ops": _AsOps()})
"""By the word that front matter and `build_definitions` take."""
