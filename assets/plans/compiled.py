"""Compiled plans of a project: how they are made, and how a code location uses them.

`compile_project` plans each query over the base tables and what the queries before it make, and
with it the queries of its checks. `CompiledPlans` takes a query's plan from the folder that they
were written to, so a code location that has them plans nothing and looks at no table. A plan of
another text is not used: `stagecoach compile --check` reports it in CI, a warning does so here.
"""

import functools
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stagecoach.assets.plans.catalog import ProjectCatalog
from stagecoach.assets.plans.checks import check_queries
from stagecoach.assets.plans.files import CompiledPlan, compile_query, plan_file, read_plan
from stagecoach.assets.plans.planned import PlanQuery
from stagecoach.assets.plans.planning import planned_table
from stagecoach.assets.plans.shown import ShownPlan, ShowsPlans
from stagecoach.assets.project.dependencies import (
    CircleError,
    order_and_circles,
    sql_reads,
    type_changes,
)
from stagecoach.assets.project.queries import ProjectError, Query
from stagecoach.planner.catalog import Catalog
from stagecoach.planner.errors import GraphFormatError, SqlError, StagecoachError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.versioned_names import split_name

if TYPE_CHECKING:
    from stagecoach.planner.arbiter import Arbiter

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
        if found is None:
            return sql_reads(query)
        return tuple(dict.fromkeys(split_name(name)[0] for name, _ in found.graph.tables))

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


# ---------------------------------------------------------------- compiling a project


@dataclass(frozen=True, kw_only=True)
class CompiledQuery:
    """What compiling a query came to.

    Args:
        query: The query.
        catalog: The tables that it was compiled over.
        plans: Its plan and those of its checks, each with the query that it is the plan of.
        error: Why it has no plan.
    """

    query: Query
    catalog: ProjectCatalog
    plans: tuple[tuple[Query, CompiledPlan], ...] = ()
    error: Exception | None = None


def compile_project(
    queries: Sequence[Query],
    broken: Sequence[Query],
    wanted: Collection[str],
    base: Catalog,
    options: PlannerOptions,
    *,
    arbiter: "Arbiter | None" = None,
) -> Iterator[CompiledQuery]:
    """Compile some queries of a project, upstream ones first.

    Args:
        queries: All queries of the project whose front matter is sound.
        broken: The others: what reads their tables cannot be compiled.
        wanted: Paths of those to compile; others are planned where these read their tables.
        base: The base tables.
        options: What they are planned with.
        arbiter: Is asked about queries that the planner cannot stage.
    """
    order, circles = order_and_circles([*queries, *broken])
    catalog = ProjectCatalog(base, [query.table for query in [*queries, *broken]])
    makers = {query.table.lower(): query for query in [*queries, *broken]}
    lost = {query.name: f"the front matter of {query.source} has mistakes" for query in broken}
    for circle in circles:
        error = CircleError(circle)
        lost |= {query.name: str(error) for query in circle}
        for query in circle:
            if query.source in wanted:
                yield CompiledQuery(query=query, catalog=catalog, error=error)
    for query in order.needed(q for q in order.queries if q.source in wanted):
        if query.name in lost:
            continue
        read = (makers.get(name.lower()) for name in order.reads[query.name])
        if blocked := [maker for maker in read if maker is not None and maker.name in lost]:
            reason = lost[blocked[0].name]
            text = f"{query.source} reads the table '{blocked[0].table}': {reason}"
            made = CompiledQuery(query=query, catalog=catalog, error=ProjectError(text))
        else:
            compile_one = functools.partial(compile_query, options=options, arbiter=arbiter)
            made = _compiled(query, catalog, compile_one, with_checks=query.source in wanted)
        if made.error is not None:
            lost[query.name] = f"{query.source} has no plan"
        if query.source in wanted:
            yield made


def _compiled(
    query: Query,
    catalog: ProjectCatalog,
    compile_one: Callable[..., CompiledPlan],
    *,
    with_checks: bool,
) -> CompiledQuery:
    try:
        plan = compile_one(query, catalog)
        table = planned_table(query, plan.graph)
        catalog.add(table)
        plans = [(query, plan)]
        checks = check_queries(query, table.table_columns or ()) if with_checks else ()
        for check, failing in checks:
            try:
                plan = compile_one(failing, catalog, is_asset=False)
                plans.append((failing, plan))
            except SqlError as error:
                raise ProjectError(f"check '{check.check_name}': {error}") from error
    except StagecoachError as error:
        return CompiledQuery(query=query, catalog=catalog, error=error)
    return CompiledQuery(query=query, catalog=catalog, plans=tuple(plans))
