"""How a code location, `check` and `compile` plan a query of a project."""

import logging
from typing import TYPE_CHECKING

from stagecoach.assets.plans.planned import PlanQuery
from stagecoach.assets.project.parameters import query_parameters
from stagecoach.assets.project.queries import Query
from stagecoach.planner.catalog import Catalog
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import StageGraph

if TYPE_CHECKING:
    from stagecoach.planner.arbiter import Arbiter

logger = logging.getLogger(__name__)


class DecidedByRun:
    """Accepts every query that the planner cannot stage: the Spark of the run decides.

    An `Arbiter` for code locations, which load without starting Spark.
    """

    def check(self, graph: StageGraph) -> None:
        """Accept the query, with a warning; its columns are not known."""
        logger.warning(
            "query '%s' runs as one Spark stage, and Spark may refuse it when it runs: %s; "
            "`stagecoach check` asks Spark now",
            graph.query,
            graph.fallback_reason,
        )


def planner_of(options: PlannerOptions, arbiter: "Arbiter | None" = None) -> PlanQuery:
    """Plans a query anew, with the parameters and options that its front matter declares.

    Args:
        options: Knobs of the planner.
        arbiter: Is asked about queries that the planner cannot stage; see `plan_query`.
    """

    def plan(query: Query, catalog: Catalog) -> StageGraph:
        # A code location with compiled plans does without the planner.
        from stagecoach.planner import plan_query

        parameters = query_parameters(query.sql, query.front_matter, options.time_zone)
        with query.places():
            return plan_query(
                query.sql,
                catalog,
                query.front_matter.planned_with(options),
                name=query.name,
                parameters=parameters,
                arbiter=arbiter,
            )

    return plan


def confirmed_by(arbiter: "Arbiter", plan: PlanQuery) -> PlanQuery:
    """Plans as `plan` does, and asks about the queries that the planner can stage, too."""

    def confirmed(query: Query, catalog: Catalog) -> StageGraph:
        graph = plan(query, catalog)
        if graph.fallback_reason is None:
            arbiter.check(graph)
        return graph

    return confirmed
