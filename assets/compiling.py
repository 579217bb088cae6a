"""A project compiled as a whole: in, queries that read each other's tables; out, their plans.

Each query is compiled over the base tables and what the queries before it make, and with it the
queries of its checks. So a code location that loads these plans plans nothing.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from assets.checks import check_queries
from assets.dependencies import CircleError, order_and_circles
from assets.plan_files import CompiledPlan, compile_query
from assets.planning import planned_table
from assets.project import ProjectError, Query
from assets.project_catalog import ProjectCatalog
from planner.catalog import Catalog
from planner.errors import SqlError, StagecoachError
from planner.options import PlannerOptions


@dataclass(frozen=True, kw_only=True)
class CompiledQuery:
    """What compiling a query came to.

    Args:
        query: The query.
        catalog: The tables that it was compiled over.
        plans: Its plan and those of its checks, each with the query that it is the plan of.
        error: Why there are no plans.
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
) -> Iterator[CompiledQuery]:
    """Compile some queries of a project, upstream ones first.

    Args:
        queries: All queries of the project whose front matter is sound.
        broken: The others: what reads their tables cannot be compiled.
        wanted: Paths of those to compile; others are planned where these read their tables.
        base: The base tables.
        options: What they are planned with.
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
            made = _compiled(query, catalog, options, with_checks=query.source in wanted)
        if made.error is not None:
            lost[query.name] = f"{query.source} has no plan"
        if query.source in wanted:
            yield made


def _compiled(
    query: Query, catalog: ProjectCatalog, options: PlannerOptions, *, with_checks: bool
) -> CompiledQuery:
    try:
        plan = compile_query(query, catalog, options)
        table = planned_table(query, plan.graph)
        catalog.add(table)
        plans = [(query, plan)]
        checks = check_queries(query, table.table_columns or ()) if with_checks else ()
        for check, failing in checks:
            try:
                plan = compile_query(failing, catalog, options, is_asset=False)
                plans.append((failing, plan))
            except SqlError as error:
                raise ProjectError(f"check '{check.check_name}': {error}") from error
    except StagecoachError as error:
        return CompiledQuery(query=query, catalog=catalog, error=error)
    return CompiledQuery(query=query, catalog=catalog, plans=tuple(plans))
