"""A query together with its plan, and the function type that makes the plan."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from stagecoach.assets.plans.shown import ShownPlan
from stagecoach.assets.project.queries import Query
from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.catalog import Catalog
from stagecoach.planner.plan.stages import StageGraph

PlanQuery = Callable[[Query, Catalog], StageGraph]


@dataclass(frozen=True, kw_only=True)
class PlannedQuery:
    """A query and its plan.

    Args:
        query: The query.
        graph: Its plan.
        publishes: Whether a run publishes the result as the query's table.
        kept: What is shown of the plan, where that was kept beside it.
        comments: What columns of the result mean, by name.
    """

    query: Query
    graph: StageGraph
    publishes: bool = False
    kept: ShownPlan | None = field(default=None, repr=False, compare=False)
    comments: Mapping[str, str] = field(default_factory=dict, compare=False)

    @cached_property
    def shown(self) -> ShownPlan:
        """What is shown of the plan."""
        return ShownPlan(self.graph) if self.kept is None else self.kept
