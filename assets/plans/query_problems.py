"""Checks a single query without running it.

Nothing is started and no data is read but the footers of the tables that the queries name. The
catalog is the caller's: what `check_query` finds in it, it takes for a table of the project.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from stagecoach.assets.plans.catalog import ProjectCatalog
from stagecoach.assets.plans.planned import PlanQuery
from stagecoach.assets.plans.planner import planner_of
from stagecoach.assets.project.front_matter import (
    PARTITION_KEY,
    PARTITION_PARAMETERS,
    Problem,
    StaticPartitions,
    check_against,
)
from stagecoach.assets.project.front_matter.checks import NoRowsCheck
from stagecoach.assets.project.names import closest, did_you_mean
from stagecoach.assets.project.queries import Query
from stagecoach.infra.catalog.planned import PlannedTable
from stagecoach.infra.errors import StorageError
from stagecoach.planner.catalog import Catalog
from stagecoach.planner.errors import CatalogError, PlacedError, SqlError, StagecoachError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.syntax.parse import parameter_places, read_query
from stagecoach.planner.syntax.parsed_query import Place

# How the message begins where not the query is wrong but a table's data cannot be had.
UNREADABLE = "a table cannot be read"


@dataclass(frozen=True, kw_only=True)
class CheckedQuery:
    """A query and what is wrong with it.

    Args:
        query: The query.
        problems: In the order of the file.
        graph: Its plan; None where there is none because of the problems.
    """

    query: Query
    problems: tuple[Problem, ...]
    graph: StageGraph | None = None


def check_query(
    query: Query, catalog: Catalog | None, plan: PlanQuery | None = None
) -> CheckedQuery:
    """Everything that can be known to be wrong with a query before it runs.

    Args:
        query: The query, whose front matter is sound.
        catalog: Its tables; None to look at the text only.
        plan: Plans a query; by default with the default options, without asking Spark.
    """
    plan = plan or planner_of(PlannerOptions())
    try:
        with query.places():
            used = _written_places(query, read_query(query.sql).parameters)
    except SqlError as error:
        return CheckedQuery(query=query, problems=(_placed(query, error),))
    problems = [*_parameter_problems(query, used), *window_problems(query, used)]
    graph: StageGraph | None = None
    undeclared = set(used) - set(query.front_matter.parameter_types)
    if catalog is not None and not undeclared:
        try:
            graph = plan(query, catalog)
        except (CatalogError, StorageError) as error:
            problems.append(_at_start(query, f"{UNREADABLE}: {error}"))
        except StagecoachError as error:
            problems.append(_placed(query, error))
        else:
            problems += check_against(query.front_matter, graph.result)
    problems += _check_sql_problems(query, catalog, plan, graph)
    ordered = tuple(sorted(set(problems), key=lambda p: (p.line, p.column, p.message)))
    return CheckedQuery(query=query, problems=ordered, graph=graph)


def syntax_problems(query: Query) -> list[Problem]:
    """Why the text is not a query, whatever its front matter says; the first mistake."""
    try:
        with query.places():
            read_query(query.sql)
    except SqlError as error:
        return [_placed(query, error)]
    return []


def result_problems(query: Query, graph: StageGraph) -> list[Problem]:
    """What the front matter says that does not fit the planned query; for definitions."""
    used = {parameter.name for parameter in graph.parameters}
    return [*window_problems(query, used), *check_against(query.front_matter, graph.result)]


def window_problems(query: Query, used: Collection[str]) -> list[Problem]:
    """Where a partitioned query does not use its partition as it must.

    A query that uses no parameter of its partition would make the same rows for each of them, and
    report success.

    Args:
        query: The query.
        used: The parameters of its partition that its SQL uses, and whatever others.
    """
    front_matter = query.front_matter
    if front_matter.partitions is None:
        return []
    types = front_matter.partitions.parameter_types
    found: list[Problem] = []
    if not {*types, *PARTITION_PARAMETERS} & set(used):
        names = " or ".join(f":{name}" for name in types)
        message = (
            f"the query is partitioned, but its SQL does not use {names}: every partition would "
            "hold the same rows; filter by one, or remove 'partitions'"
        )
        found.append(front_matter.places.problem(("partitions",), message, at_key=True))
    if PARTITION_KEY in used and front_matter.backfill_policy.max_partitions_per_run != 1:
        message = (
            ":partition_key is one key, and this backfill makes several partitions in one run; use "
            ":partition_start and :partition_end, or write run_per_partition"
        )
        found.append(front_matter.places.problem(("backfill",), message))
    return [_of(query, problem) for problem in found]


# ---------------------------------------------------------------- parameters


def _parameter_problems(query: Query, used: Mapping[str, Place]) -> Iterator[Problem]:
    front_matter = query.front_matter
    known = front_matter.parameter_types
    meant: set[str | None] = set()
    for name, (line, column) in used.items():
        if name not in known:
            meant.add(closest(name, known))
            yield Problem(query.source, line or 1, column or 1, _undeclared(query, name))
    in_checks = {p for check in _sql_checks(query) for p in parameter_places(check.no_rows.sql)}
    for name in front_matter.parameters:
        if name not in used and name not in in_checks and name not in meant:
            message = f"parameter '{name}' is declared and not used; remove it, or use :{name}"
            problem = front_matter.places.problem(("parameters", name), message, at_key=True)
            yield _of(query, problem)


def _undeclared(query: Query, name: str) -> str:
    known = query.front_matter.parameter_types
    if name in PARTITION_PARAMETERS:
        if isinstance(query.front_matter.partitions, StaticPartitions):
            return f"':{name}' is for time windows; a static partition has :partition_key"
        return f"':{name}' needs the key 'partitions' in the front matter; add it"
    if name.isdigit():
        return "'?' has no declared type; write :name, and declare it in the front matter"
    if known:
        fix = did_you_mean(name, known, what="declare it there; declared are")
        return f"parameter ':{name}' is not declared in the front matter{fix}"
    return f"parameter ':{name}' is not declared; add 'parameters: {{{name}: …}}' to front matter"


# ---------------------------------------------------------------- SQL of checks


def _sql_checks(query: Query) -> list[NoRowsCheck]:
    return [c for c in query.front_matter.checks if isinstance(c, NoRowsCheck)]


def _check_sql_problems(
    query: Query, catalog: Catalog | None, plan: PlanQuery, graph: StageGraph | None
) -> Iterator[Problem]:
    places = query.front_matter.places
    for i, check in enumerate(query.front_matter.checks):
        if not isinstance(check, NoRowsCheck):
            continue
        sql = check.no_rows.sql
        try:
            read_query(sql)
            if catalog is not None and graph is not None:
                with_own = ProjectCatalog(catalog)
                made = PlannedTable(
                    name=query.table,
                    columns=query.front_matter.output.stored_columns(graph.result) or None,
                    format=query.front_matter.output.format_name,
                )
                with_own.add(made)
                plan(replace(query, sql=sql, expansion=None), with_own)
        except StagecoachError as error:
            message = f"check '{check.check_name}': {error}"
            yield _of(query, places.problem(("checks", i, "no_rows", "sql"), message))


# ---------------------------------------------------------------- places


def _written_places(query: Query, places: Mapping[str, Place]) -> Mapping[str, Place]:
    """Places in the query's text as it was written."""
    if (expansion := query.expansion) is None:
        return places
    return {
        name: (None, None) if line is None else expansion.written_place(line, column)[:2]
        for name, (line, column) in places.items()
    }


def _placed(query: Query, error: StagecoachError) -> Problem:
    if isinstance(error, PlacedError):
        return Problem(query.source, error.line or 1, error.column or 1, error.message)
    return _at_start(query, str(error))


def _at_start(query: Query, message: str) -> Problem:
    return Problem(query.source, 1, 1, message)


def _of(query: Query, problem: Problem) -> Problem:
    """The problem with the query's own name, where its front matter came as text."""
    return Problem(query.source, problem.line, problem.column, problem.message)


def sorted_problems(problems: Iterable[Problem]) -> list[Problem]:
    """By file, line and column, each once."""
    return sorted(set(problems))
