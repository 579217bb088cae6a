"""Reads a folder of queries into a `Project` whose names Dagster accepts.

Nothing is planned and no table is looked at here.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from stagecoach.assets.project.front_matter import (
    FrontMatter,
    FrontMatterError,
    Problem,
    parse_front_matter,
)
from stagecoach.assets.project.front_matter.checks import NoRowsCheck
from stagecoach.assets.project.names import JOB_PREFIX as JOB_PREFIX
from stagecoach.assets.project.names import name_problem as name_problem
from stagecoach.planner.errors import SqlError, StagecoachError
from stagecoach.planner.syntax.macros.expand import Macros
from stagecoach.planner.syntax.macros.expansion import Expansion


class ProjectError(StagecoachError):
    """The folder of queries cannot become Dagster assets."""


@dataclass(frozen=True, kw_only=True)
class Query:
    """One query of a project.

    Args:
        name: From the file name; the result's asset key, the group of all its stages.
        sql: Text of the file, front matter included (so that lines in errors are the file's), with
            the macros of the project written out.
        path: The file; None for a query given as text.
        front_matter: What its author says about it.
        expansion: Where the parts of its text come from, if it uses macros.
    """

    name: str
    sql: str
    path: Path | None = None
    front_matter: FrontMatter = field(default_factory=FrontMatter)
    expansion: Expansion | None = field(default=None, repr=False, compare=False)

    @property
    def written(self) -> str:
        """The text as its author wrote it."""
        return self.sql if self.expansion is None else self.expansion.written

    def places(self) -> AbstractContextManager[None]:
        """Errors of the body about `sql` become errors about the text as it was written."""
        return nullcontext() if self.expansion is None else self.expansion.places()

    @property
    def source(self) -> str:
        """Where the query comes from, for messages."""
        return str(self.path) if self.path else f"query '{self.name}'"

    @property
    def table(self) -> str:
        """Name of the table that its result is published as."""
        return self.front_matter.output_table(self.name)

    @property
    def job_name(self) -> str:
        """Name of the job that runs it."""
        return f"{JOB_PREFIX}{self.name}"


@dataclass(frozen=True, kw_only=True)
class Project:
    """Queries by name, in the order of their names."""

    queries: tuple[Query, ...]
    folder: Path | None = None

    def query(self, name: str) -> Query:
        """The query of that name.

        Raises:
            ProjectError: There is none.
        """
        for query in self.queries:
            if query.name == name:
                return query
        known = ", ".join(q.name for q in self.queries) or "none"
        raise ProjectError(f"there is no query '{name}' in {self.folder}; there are: {known}")


def load_project(
    folder: Path | str, *, tables: Iterable[str] = (), macros: Macros | None = None
) -> Project:
    """The queries of a folder: every `*.sql` file in it and in its subfolders.

    Args:
        folder: Where the files are.
        tables: Names of base tables, which no query may bear.
        macros: The macros of the project, such as those of a catalog.

    Raises:
        ProjectError: The folder does not exist, or (one error that lists them all) a name cannot
            be an asset, two names clash, or front matter cannot be read.
    """
    root = Path(folder)
    if not root.is_dir():
        raise ProjectError(f"{root} is not a folder; put the queries there as <name>.sql files")
    queries, broken, problems = read_queries(sorted(root.rglob("*.sql")), macros)
    problems += name_clashes([*queries, *broken], tables)
    if problems:
        head = f"{len(problems)} problem(s) in {root}:"
        raise ProjectError("\n  ".join([head, *map(str, problems)]))
    return Project(folder=root, queries=tuple(sorted(queries, key=lambda q: q.name)))


def read_queries(
    paths: Iterable[Path], macros: Macros | None = None
) -> tuple[list[Query], list[Query], list[Problem]]:
    """The queries of files, those whose front matter is wrong (without it), and all problems.

    Args:
        paths: The files.
        macros: The macros of the project, which are written into the queries.
    """
    macros = macros or Macros()
    queries: list[Query] = []
    broken: list[Query] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            # utf-8-sig: editors on Windows put a byte order mark first, which is no SQL.
            sql = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            problems.append(Problem(str(path), 1, 1, f"{error}; save the file as UTF-8"))
        except OSError as error:
            problems.append(Problem(str(path), 1, 1, f"cannot be read: {error.strerror or error}"))
        else:
            query = Query(name=path.stem, sql=sql, path=path)
            try:
                front_matter = parse_front_matter(sql, path)
            except FrontMatterError as error:
                problems += error.problems
                broken.append(query)
            else:
                made, found = with_macros(replace(query, front_matter=front_matter), macros)
                problems += found
                (broken if found else queries).append(made)
    return queries, broken, problems


def with_macros(query: Query, macros: Macros) -> tuple[Query, list[Problem]]:
    """A query with macros written into its SQL and that of its checks, and what is wrong there."""
    if not macros:
        return query, []
    problems: list[Problem] = []
    if query.name.lower() in macros.queries or query.table.lower() in macros.queries:
        shared = macros.queries.get(query.name.lower()) or macros.queries[query.table.lower()]
        place = shared.body.source.place(shared.start)
        message = f"the name '{shared.name}' is also used by the macro in {place}; rename one"
        problems.append(Problem(query.source, 1, 1, message))
    try:
        expansion = macros.expand(query.sql)
    except SqlError as error:
        line, column = error.line or 1, error.column or 1
        return query, [*problems, Problem(query.source, line, column, error.message)]
    checks = []
    for i, check in enumerate(query.front_matter.checks):
        if isinstance(check, NoRowsCheck):
            try:
                sql = macros.expand(check.no_rows.sql).text
            except SqlError as error:
                location = ("checks", i, "no_rows", "sql")
                message = f"check '{check.check_name}': {error}"
                found = query.front_matter.places.problem(location, message)
                problems.append(Problem(query.source, found.line, found.column, message))
                continue
            no_rows = check.no_rows.model_copy(update={"sql": sql})
            check = check.model_copy(update={"no_rows": no_rows})
        checks.append(check)
    if expansion.macros:
        query = replace(query, sql=expansion.text, expansion=expansion)
    if checks and checks != list(query.front_matter.checks):
        front_matter = query.front_matter.model_copy(update={"checks": tuple(checks)})
        query = replace(query, front_matter=front_matter)
    return query, problems


def find_clashes(queries: Iterable[Query], tables: Iterable[str] = ()) -> list[str]:
    """What keeps these queries from being assets of one code location, each with its source."""
    return [str(problem) for problem in name_clashes(queries, tables)]


def name_clashes(queries: Iterable[Query], tables: Iterable[str] = ()) -> list[Problem]:
    """What keeps these queries from being assets of one code location, each with its place.

    Case does not matter to Spark, so names that differ only in case clash.
    """
    ordered = list(queries)
    seen: dict[str, Query] = {}
    clashes: list[Problem] = []
    table_names = {table.lower(): table for table in tables}
    for query in ordered:
        key = query.name.lower()
        if problem := name_problem(query.name):
            clashes.append(_clash(query, f"{problem}; rename the file"))
        if key in seen:
            clashes.append(
                _clash(
                    query,
                    f"the name '{query.name}' is also used by {seen[key].source}; "
                    "rename one of them",
                )
            )
        if key in table_names:
            clashes.append(
                _clash(
                    query,
                    f"the name '{query.name}' is also used by the table '{table_names[key]}'; "
                    "rename the query",
                )
            )
        seen.setdefault(key, query)
    for query in ordered:
        job_of = query.name.lower().removeprefix(JOB_PREFIX)
        if job_of != query.name.lower() and job_of in seen:
            clashes.append(
                _clash(
                    query,
                    f"the name '{query.name}' is also used by the job of {seen[job_of].source}; "
                    "rename one of them",
                )
            )
    return [*clashes, *_output_clashes(ordered, seen, table_names)]


def _output_clashes(
    queries: Iterable[Query], by_name: Mapping[str, Query], tables: Mapping[str, str]
) -> Iterator[Problem]:
    """Output tables that bear the name of something else; those of the queries' own are unique."""
    made: dict[str, Query] = {}
    for query in queries:
        table = query.front_matter.output.table
        if table is None or table.lower() == query.name.lower():
            continue
        key = table.lower()
        other = made.setdefault(key, query)
        what = ""
        if key in tables:
            what = f"a table of the catalog, '{tables[key]}'"
        elif key in by_name:
            what = f"the query {by_name[key].source}"
        elif other is not query:
            what = f"the output of {other.source}"
        if what:
            message = f"the output table '{table}' has the same name as {what}; choose another"
            place = query.front_matter.places.problem(("output", "table"), message)
            yield Problem(query.source, place.line, place.column, message)


def _clash(query: Query, message: str) -> Problem:
    return Problem(query.source, 1, 1, message)
