"""Plans all queries of a project, each over the base tables and the tables of queries before it.

Published tables are planned with the columns that their queries give them and the rows that these
are expected to have, never with what is published: so what a run publishes does not change the
graph that the next run of the same code location finds.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from stagecoach.assets.plans.catalog import ProjectCatalog
from stagecoach.assets.plans.checks import PlannedCheck, plan_checks
from stagecoach.assets.plans.comments import Comments, result_comments
from stagecoach.assets.plans.planned import PlannedQuery
from stagecoach.assets.plans.planned import PlanQuery as PlanQuery
from stagecoach.assets.plans.query_problems import result_problems
from stagecoach.assets.plans.shown import ShowsPlans
from stagecoach.assets.project.dependencies import QueryOrder
from stagecoach.assets.project.queries import Query
from stagecoach.infra.catalog.planned import PlannedTable
from stagecoach.infra.errors import StorageError
from stagecoach.infra.publishing.check import check_publishable
from stagecoach.planner.catalog import Catalog
from stagecoach.planner.errors import CatalogError, StagecoachError
from stagecoach.planner.plan.stages import StageGraph


@dataclass(frozen=True, kw_only=True)
class PlannedProject:
    """What planning a project came to.

    Args:
        queries: Planned queries, upstream ones first.
        checks: Their checks about rows, by name of the query.
        tables: The tables that they make.
        blocked: Queries without a plan because the data of a table cannot be had, each with the
            reason.
        mistakes: What is wrong in the queries, a line each, with file, line and column.
    """

    queries: tuple[PlannedQuery, ...]
    checks: dict[str, tuple[PlannedCheck, ...]]
    tables: tuple[PlannedTable, ...]
    blocked: tuple[tuple[Query, str], ...]
    mistakes: tuple[str, ...]


def plan_project(
    order: QueryOrder,
    base: Catalog,
    plan: PlanQuery,
    is_compiled: Callable[[Query], bool] = lambda query: False,
    comments_of: Callable[[str], Comments] = lambda table: {},
) -> PlannedProject:
    """Plan every query of a project; a mistake in one does not keep the others from being planned.

    Args:
        order: The queries, upstream ones first.
        base: The base tables.
        plan: How one query, or the query of a check, gets its plan.
        is_compiled: Whether a query, and with it its checks, has been compiled: then the plans of
            the checks are only looked at by the runs that need them.
        comments_of: Gives the comments of a base table's columns, without looking at its data.
    """
    catalog = ProjectCatalog(base, [query.table for query in order.queries])
    queries: list[PlannedQuery] = []
    checks: dict[str, tuple[PlannedCheck, ...]] = {}
    tables: list[PlannedTable] = []
    blocked: list[tuple[Query, str]] = []
    mistakes: list[str] = []
    without_plan: dict[str, str] = {}
    made: dict[str, Comments] = {}  # by the lower-case name of the table

    def comments(table: str) -> Comments:
        return made[table.lower()] if table.lower() in made else comments_of(table)

    for query in order.queries:
        missing = [q for q in order.upstream(query) if q.name in without_plan]
        if missing:
            without_plan[query.name] = without_plan[missing[0].name]
            blocked.append((query, f"it reads '{missing[0].table}': {without_plan[query.name]}"))
            continue
        try:
            graph = plan(query, catalog)
            if problems := result_problems(query, graph):
                without_plan[query.name] = f"{query.source} has mistakes"
                mistakes += [str(problem) for problem in problems]
                continue
            output = query.front_matter.output
            check_publishable(
                graph.result,
                output.partition_by,
                output.format_name,
                output.key or (),
                output.delete_column,
            )
            table = planned_table(query, graph)
            catalog.add(table)
            planned = plan_checks(query, table.table_columns or (), catalog, plan)
            if not is_compiled(query):
                for check in planned:
                    _ = check.graph  # a mistake in it is one of the project
            checks[query.name] = planned
        except (CatalogError, StorageError) as error:
            without_plan[query.name] = str(error)
            blocked.append((query, str(error)))
        except StagecoachError as error:
            without_plan[query.name] = f"{query.source} has mistakes"
            mistakes.append(f"{query.source}: {error}")
        else:
            tables.append(table)
            kept = plan.shown(query) if isinstance(plan, ShowsPlans) else None
            item = PlannedQuery(query=query, graph=graph, publishes=True, kept=kept)
            made[query.table.lower()] = result_comments(item, comments)
            queries.append(replace(item, comments=made[query.table.lower()]))
    return PlannedProject(
        queries=tuple(queries),
        checks=checks,
        tables=tuple(tables),
        blocked=tuple(blocked),
        mistakes=tuple(mistakes),
    )


def planned_table(query: Query, graph: StageGraph) -> PlannedTable:
    """The table that a planned query makes."""
    return PlannedTable(
        name=query.table,
        columns=query.front_matter.output.stored_columns(graph.result) or None,
        partition_by=query.front_matter.output.partition_by,
        estimated_rows=graph.head.estimated_rows,
        format=query.front_matter.output.format_name,
    )
