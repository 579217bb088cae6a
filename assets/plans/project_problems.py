"""Checks a whole project and reports every problem.

    files ─▶ who reads whom ─▶ check_query, upstream ones first, over base tables and what the
                               queries before it make ─▶ compiled plans that no longer fit

A plan that is right and was made for other amounts of data is not a problem, but worth a note.

What reads a query with problems is only looked at as text: its columns are not known.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from stagecoach.assets.plans.catalog import ProjectCatalog
from stagecoach.assets.plans.estimates import is_far_off, planned_rows
from stagecoach.assets.plans.files import plan_file, read_plan
from stagecoach.assets.plans.planned import PlanQuery
from stagecoach.assets.plans.planning import planned_table
from stagecoach.assets.plans.query_problems import CheckedQuery, check_query, sorted_problems
from stagecoach.assets.project.dependencies import (
    CircleError,
    order_and_circles,
    read_place,
    type_changes,
)
from stagecoach.assets.project.front_matter import Problem
from stagecoach.assets.project.queries import Query, name_clashes
from stagecoach.infra.errors import StorageError
from stagecoach.infra.publishing.check import check_publishable
from stagecoach.planner.catalog import Catalog, TableStats
from stagecoach.planner.errors import CatalogError, GraphFormatError, StagecoachError
from stagecoach.planner.text.sizes import format_rows


@dataclass(frozen=True, kw_only=True)
class ProjectFiles:
    """The queries of a project as its files have them.

    Args:
        queries: Those whose front matter is sound.
        broken: The others; what is wrong there is known already.
        plans: Folder of compiled plans, or None.
    """

    queries: Sequence[Query]
    broken: Sequence[Query] = ()
    plans: Path | None = None


def check_project(
    files: ProjectFiles,
    wanted: Collection[str],
    catalog: Catalog,
    plan: PlanQuery,
    *,
    with_tables: bool = True,
) -> list[Problem]:
    """What is wrong with some queries of a project, without running one.

    Args:
        files: All queries of the project, whose tables the wanted ones may read.
        wanted: Paths of the queries to check, as their `source` has them.
        catalog: The base tables.
        plan: Plans one query.
        with_tables: Whether to look at base tables, so that the SQL can be planned.
    """
    check = _ProjectCheck(files, frozenset(wanted), catalog, plan)
    return sorted_problems(check.problems() if with_tables else check.text_problems())


def plan_notes(
    queries: Iterable[Query], plans: Path, catalog: Catalog
) -> Iterator[tuple[Path, str]]:
    """Compiled plans that are right and may be slow, since their tables have grown or shrunk.

    Args:
        queries: Whose plans are looked at.
        plans: Folder of compiled plans.
        catalog: The base tables as they are now.

    Yields:
        The file, and what is to be said of it.
    """
    for query in queries:
        path = plan_file(plans, query)
        try:
            graph = read_plan(path).graph
        except GraphFormatError:
            continue  # none, or none that can be read: `stagecoach compile --check` tells that
        rows = {n: r for stage in graph.stages for n, r in planned_rows(stage).items()}
        for name in sorted(rows) if graph.sql == query.sql else ():
            now = _stats(catalog, name)
            if now is not None and is_far_off(rows[name], now.num_rows):
                size = format_rows(now.num_rows, is_estimate=now.is_estimate)
                yield (
                    path,
                    f"table '{name}' has {size}; the plan was made for {rows[name]:,} and "
                    "may be slow: run `stagecoach compile`",
                )


def _stats(catalog: Catalog, name: str) -> TableStats | None:
    """The size of a base table; None where that is not known, or a query makes it."""
    try:
        table = catalog.table(name)
    except (CatalogError, StorageError):
        return None  # a problem of the queries that read it
    return None if table is None else table.stats


class _ProjectCheck:
    def __init__(
        self,
        files: ProjectFiles,
        wanted: frozenset[str],
        catalog: Catalog,
        plan: PlanQuery,
    ) -> None:
        self._files = files
        self._wanted = wanted
        self._plan = plan
        everything = [*files.queries, *files.broken]
        # A name that clashes is a problem of its own, and no table that others may mean.
        self._clashing = {p.path for p in name_clashes(everything, catalog.table_names())}
        self._sound = [q for q in everything if q.source not in self._clashing]
        self._broken = {query.source for query in files.broken}
        self._catalog = ProjectCatalog(catalog, [query.table for query in self._sound])
        self._makers = {query.table.lower(): query for query in self._sound}
        self._order, self._circles = order_and_circles(self._sound)
        # What is wrong with the queries that have no plan, by name.
        self._without_plan: dict[str, str] = {}

    def text_problems(self) -> Iterator[Problem]:
        """What the text of the wanted queries tells, without a table."""
        for circle in self._circles:
            yield from self._circle_problems(circle)
        for query in self._files.queries:
            if query.source in self._wanted:
                yield from check_query(query, None, self._plan).problems

    def problems(self) -> Iterator[Problem]:
        """All problems of the wanted queries."""
        for circle in self._circles:
            yield from self._circle_problems(circle)
        wanted = [query for query in self._order.queries if query.source in self._wanted]
        for query in self._order.needed(wanted):
            yield from self._query_problems(query)
        in_circles = {query.source for circle in self._circles for query in circle}
        for query in self._files.queries:
            if query.source in self._wanted & (self._clashing | in_circles):
                catalog = None if query.source in in_circles else self._catalog
                yield from check_query(query, catalog, self._plan).problems
        if self._files.plans is not None:
            for query in self._order.queries:
                if any(q in wanted for q in (query, *self._order.upstream(query))):
                    yield from self._plan_problems(query, self._files.plans)

    def _query_problems(self, query: Query) -> Iterator[Problem]:
        """What is wrong with one query whose upstream ones were looked at before."""
        told = query.source in self._wanted
        if query.source in self._broken:
            self._without_plan[query.name] = f"the front matter of {query.source} has mistakes"
            return
        lost = [maker for maker in self._upstream(query) if maker.name in self._without_plan]
        if lost:
            reason = self._without_plan[query.name] = self._without_plan[lost[0].name]
            if told:
                yield from check_query(query, None, self._plan).problems
                if lost[0].source not in self._wanted:
                    line, column = read_place(query, lost[0].table)
                    message = f"table '{lost[0].table}' cannot be planned: {reason}"
                    yield Problem(query.source, line, column, message)
            return
        checked = check_query(query, self._catalog, self._plan)
        if told:
            yield from checked.problems
            yield from _publishing_problems(checked)
        self._add(checked)

    def _upstream(self, query: Query) -> Sequence[Query]:
        """The queries whose tables it reads, those in circles too."""
        read = {name.lower() for name in self._order.reads[query.name]}
        return [maker for table, maker in self._makers.items() if table in read]

    def _add(self, checked: CheckedQuery) -> None:
        """Make the query's table known to those that come after it."""
        query, problems = checked.query, checked.problems
        if checked.graph is not None:
            self._catalog.add(planned_table(query, checked.graph))
        else:
            first = problems[0] if problems else None
            self._without_plan[query.name] = str(first) if first else f"{query.source} has no plan"

    def _circle_problems(self, circle: Sequence[Query]) -> Iterator[Problem]:
        """The circle, told of each of its queries at the place where it reads the one before."""
        for position, query in enumerate(circle):
            read = circle[position - 1]
            self._without_plan[query.name] = "queries depend on each other in a circle"
            if query.source in self._wanted:
                turned = [*circle[position:], *circle[:position]]
                yield Problem(
                    query.source, *read_place(query, read.table), str(CircleError(turned))
                )

    def _plan_problems(self, query: Query, plans: Path) -> Iterator[Problem]:
        """Tables that the compiled plan of a reader was made for and that have changed since."""
        try:
            graph = read_plan(plan_file(plans, query)).graph
        except GraphFormatError:
            return  # none, or none that can be read: `stagecoach compile --check` tells that
        for name, columns in graph.tables if graph.sql == query.sql else ():
            maker, made = self._makers.get(name.lower()), self._catalog.made(name)
            if maker is None or made is None:
                continue
            for change in type_changes(made.name, columns, made.columns, [query]):
                message = f"{change}; compile the readers again with `stagecoach compile`"
                # At the reader if it is looked at, else where the change was made.
                if query.source in self._wanted:
                    yield Problem(query.source, *read_place(query, name), message)
                else:
                    yield Problem(maker.source, 1, 1, message)


def _publishing_problems(checked: CheckedQuery) -> Iterator[Problem]:
    """Why the result cannot be published as a table."""
    query = checked.query
    output = query.front_matter.output
    try:
        if checked.graph is not None and not checked.problems:
            check_publishable(
                checked.graph.result,
                output.partition_by,
                output.format_name,
                output.key or (),
                output.delete_column,
            )
    except StagecoachError as error:
        yield Problem(query.source, 1, 1, str(error))
