"""Plans that are committed: in, a folder of compiled plans; out, the plan of a query that has one.

With such plans a code location loads without looking at any table. A plan that is not of the
query's present text is not used: `stagecoach compile --check` says so in CI, a warning here.
"""

import logging
from pathlib import Path

from assets.dependencies import sql_reads, type_changes
from assets.plan_files import CompiledPlan, plan_file, read_plan
from assets.planning import PlanQuery
from assets.project import ProjectError, Query
from assets.project_catalog import ProjectCatalog
from assets.shown import ShownPlan, ShowsPlans
from planner.catalog import Catalog
from planner.errors import GraphFormatError
from planner.stages import StageGraph

logger = logging.getLogger(__name__)


class CompiledPlans:
    """Plans queries, committed plans first; a `PlanQuery`.

    Args:
        plan: How a query is planned that has no fresh compiled plan.
        folder: Where `<query>.json` files are.
    """

    def __init__(self, plan: PlanQuery, folder: Path) -> None:
        self._plan = plan
        self._folder = folder
        self._read: dict[tuple[str, str], CompiledPlan | None] = {}

    def __call__(self, query: Query, catalog: Catalog) -> StageGraph:
        """The query's plan.

        Raises:
            ProjectError: A table that another query makes has columns of other types now than when
                the plan was compiled.
            StagecoachError: As planning does.
        """
        found = self.compiled(query)
        if found is None:
            return self._plan(query, catalog)
        _check_types(found.graph, query, catalog)
        return found.graph

    def is_compiled(self, query: Query) -> bool:
        """Whether the query has a fresh compiled plan."""
        return self.compiled(query) is not None

    def shown(self, query: Query) -> ShownPlan | None:
        """What is shown of the query's plan; see `ShowsPlans`."""
        found = self.compiled(query)
        if found is not None:
            return found.shown
        return self._plan.shown(query) if isinstance(self._plan, ShowsPlans) else None

    def reads(self, query: Query) -> tuple[str, ...]:
        """The tables that a query reads; its SQL is only parsed where it is not compiled."""
        found = self.compiled(query)
        return sql_reads(query) if found is None else tuple(name for name, _ in found.graph.tables)

    def compiled(self, query: Query) -> CompiledPlan | None:
        """The query's compiled plan if there is one of its present text, whatever its tables."""
        asked = (query.name, query.sql)
        if asked not in self._read:
            self._read[asked] = self._load(query)
        return self._read[asked]

    def _load(self, query: Query) -> CompiledPlan | None:
        path = plan_file(self._folder, query)
        if not path.exists():
            return None
        try:
            plan = read_plan(path, later=True)
        except GraphFormatError as error:
            logger.warning("compiled plan is not used: %s", error)
            return None
        if plan.graph.sql == query.sql and plan.graph.query == query.name:
            return plan
        logger.warning(
            "compiled plan %s is not used: %s has changed; run `stagecoach compile`",
            path,
            query.source,
        )
        return None


def _check_types(graph: StageGraph, query: Query, catalog: Catalog) -> None:
    """Refuse a plan over a table of the project that has other columns now."""
    changes: list[str] = []
    for name, columns in graph.tables:
        # Only what is planned is looked at: a base table would be read for it.
        made = catalog.made(name) if isinstance(catalog, ProjectCatalog) else None
        if made is not None:
            changes += type_changes(made.name, columns, made.columns, [query])
    if changes:
        advice = "compile the readers again with `stagecoach compile`"
        raise ProjectError("; ".join([*changes, advice]))
