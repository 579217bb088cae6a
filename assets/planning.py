"""All queries of a project, planned in order: each over the base tables and what comes before it.

In: ordered queries, a catalog of base tables, how one query is planned. Out: plans, the tables that
they make, the queries that cannot be planned because of data, and every mistake.

Published tables are planned with the columns that their queries give them and the rows that these
are expected to have, never with what is published: so what a run publishes does not change the
graph that the next run of the same code location finds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from assets.checking import result_problems
from assets.checks import PlannedCheck, plan_checks
from assets.checks import PlanQuery as PlanQuery
from assets.dependencies import QueryOrder
from assets.parameters import query_parameters
from assets.project import Query
from assets.specs import PlannedQuery
from infra.errors import StorageError
from infra.tables.catalog import PlannedTable
from infra.tables.target import check_publishable
from planner import plan_query
from planner.catalog import Catalog, TableInfo, TableStats
from planner.errors import CatalogError, StagecoachError
from planner.options import PlannerOptions
from planner.stages import StageGraph


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


class ProjectCatalog:
    """Base tables and the tables of queries that are planned already; a planner's `Catalog`.

    Args:
        base: The base tables.
        names: The tables that the project makes, planned or not, for messages about unknown names.
    """

    def __init__(self, base: Catalog, names: Sequence[str] = ()) -> None:
        self._base = base
        self._names = names
        self._made: dict[str, TableInfo] = {}
        self._unknown: dict[str, str] = {}

    def add(self, table: PlannedTable) -> None:
        """From now on there is this table, too."""
        columns = table.table_columns
        if columns is None:
            self._unknown[table.name.lower()] = table.name
            return
        rows = table.estimated_rows
        stats = None if rows is None else TableStats(rows, rows * len(columns) * _VALUE_BYTES)
        self._made[table.name.lower()] = TableInfo(name=table.name, columns=columns, stats=stats)

    def made(self, name: str) -> TableInfo | None:
        """The table of that name that a planned query makes, or None."""
        return self._made.get(name.lower())

    def table(self, name: str) -> TableInfo | None:
        """The table of that name, or None.

        Raises:
            CatalogError: Its columns are not known before its query has run.
        """
        if (made := self._unknown.get(name.lower())) is not None:
            raise CatalogError(
                f"the columns of table '{made}' are not known before it is made, because Spark "
                "runs the whole query that makes it; write that query so that it can be planned"
            )
        return self._made.get(name.lower()) or self._base.table(name)

    def table_names(self) -> Sequence[str]:
        """All names, the base tables first."""
        made = [*self._names, *(table.name for table in self._made.values())]
        return list(dict.fromkeys([*self._base.table_names(), *made]))


_VALUE_BYTES = 8


def plan_project(
    order: QueryOrder,
    base: Catalog,
    plan: PlanQuery,
    is_compiled: Callable[[Query], bool] = lambda query: False,
) -> PlannedProject:
    """Plan every query of a project; a mistake in one does not keep the others from being planned.

    Args:
        order: The queries, upstream ones first.
        base: The base tables.
        plan: How one query, or the query of a check, gets its plan.
        is_compiled: Whether a query, and with it its checks, has been compiled: then the plans of
            the checks are only looked at by the runs that need them.
    """
    catalog = ProjectCatalog(base, [query.table for query in order.queries])
    queries: list[PlannedQuery] = []
    checks: dict[str, tuple[PlannedCheck, ...]] = {}
    tables: list[PlannedTable] = []
    blocked: list[tuple[Query, str]] = []
    mistakes: list[str] = []
    without_plan: dict[str, str] = {}
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
            check_publishable(graph.result, query.front_matter.output.partition_by)
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
            queries.append(PlannedQuery(query=query, graph=graph, publishes=True))
    return PlannedProject(
        queries=tuple(queries),
        checks=checks,
        tables=tuple(tables),
        blocked=tuple(blocked),
        mistakes=tuple(mistakes),
    )


def planner_of(options: PlannerOptions) -> PlanQuery:
    """Plans a query anew, with the parameters that its front matter declares."""

    def plan(query: Query, catalog: Catalog) -> StageGraph:
        parameters = query_parameters(query.sql, query.front_matter, options.time_zone)
        return plan_query(query.sql, catalog, options, name=query.name, parameters=parameters)

    return plan


def planned_table(query: Query, graph: StageGraph) -> PlannedTable:
    """The table that a planned query makes."""
    return PlannedTable(
        name=query.table,
        columns=graph.result or None,
        partition_by=query.front_matter.output.partition_by,
        estimated_rows=graph.head.estimated_rows,
    )
