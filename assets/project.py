"""A folder of queries: in, `queries/*.sql`; out, a `Project` whose names Dagster can hold.

Nothing is planned and no table is looked at here.
"""

import keyword
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from assets.front_matter import FrontMatter, FrontMatterError, parse_front_matter
from planner.errors import StagecoachError

JOB_PREFIX = "run_"
MAX_NAME_LENGTH = 100
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
# Names that Dagster refuses for an op (`dagster._core.definitions.utils.DISALLOWED_NAMES`).
_RESERVED = frozenset(
    {"context", "conf", "config", "meta", "arg_dict", "dict", "input_arg_dict", "output_arg_dict"}
    | {"int", "str", "float", "bool", "input", "output", "type"}
)


class ProjectError(StagecoachError):
    """The folder of queries cannot become Dagster assets."""


@dataclass(frozen=True, kw_only=True)
class Query:
    """One query of a project.

    Args:
        name: From the file name; the result's asset key, the group of all its stages.
        sql: Text of the file, front matter included (so that lines in errors are the file's).
        path: The file; None for a query given as text.
        front_matter: What its author says about it.
    """

    name: str
    sql: str
    path: Path | None = None
    front_matter: FrontMatter = field(default_factory=FrontMatter)

    @property
    def source(self) -> str:
        """Where the query comes from, for messages."""
        return str(self.path) if self.path else f"query '{self.name}'"

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


def load_project(folder: Path | str, *, tables: Iterable[str] = ()) -> Project:
    """The queries of a folder: every `*.sql` file in it and in its subfolders.

    Args:
        folder: Where the files are.
        tables: Names of base tables, which no query may bear.

    Raises:
        ProjectError: The folder does not exist, or (one error that lists them all) a name cannot
            be an asset, two names clash, or front matter cannot be read.
    """
    root = Path(folder)
    if not root.is_dir():
        raise ProjectError(f"{root} is not a folder; put the queries there as <name>.sql files")
    problems: list[str] = []
    queries: list[Query] = []
    for path in sorted(root.rglob("*.sql")):
        try:
            sql = path.read_text(encoding="utf-8")
            front_matter = parse_front_matter(sql)
        except (OSError, UnicodeDecodeError, FrontMatterError) as error:
            problems.append(f"{path}: {error}")
            continue
        queries.append(Query(name=path.stem, sql=sql, path=path, front_matter=front_matter))
    problems += find_clashes(queries, tables)
    if problems:
        raise ProjectError("\n  ".join([f"{len(problems)} problem(s) in {root}:", *problems]))
    return Project(folder=root, queries=tuple(sorted(queries, key=lambda q: q.name)))


def find_clashes(queries: Iterable[Query], tables: Iterable[str] = ()) -> list[str]:
    """What keeps these queries from being assets of one code location, each with its source.

    Case does not matter to Spark, so names that differ only in case clash.
    """
    clashes: list[str] = []
    seen: dict[str, Query] = {}
    table_names = {table.lower(): table for table in tables}
    ordered = list(queries)
    for query in ordered:
        if problem := name_problem(query.name):
            clashes.append(f"{query.source}: {problem}")
        key = query.name.lower()
        if key in seen:
            clashes.append(
                f"{query.source}: the name '{query.name}' is also that of {seen[key].source}"
            )
        if key in table_names:
            clashes.append(
                f"{query.source}: the name '{query.name}' is also that of the table "
                f"'{table_names[key]}'; rename the query"
            )
        seen.setdefault(key, query)
    for query in ordered:
        job_of = query.name.lower().removeprefix(JOB_PREFIX)
        if job_of != query.name.lower() and job_of in seen:
            clashes.append(
                f"{query.source}: the name '{query.name}' is also that of the job of "
                f"{seen[job_of].source}; rename one of them"
            )
    return clashes


def name_problem(name: str) -> str | None:
    """Why `name` cannot be that of a query, or None where it can."""
    advice = "use letters, digits and single underscores, a letter first"
    if not _NAME.fullmatch(name):
        return f"'{name}' cannot be the name of an asset; {advice}"
    if "__" in name:
        return f"'{name}' holds '__', which Dagster puts between a query and its stage; {advice}"
    if name in _RESERVED or keyword.iskeyword(name):
        return f"'{name}' is a reserved word in Dagster; choose another name"
    if len(name) > MAX_NAME_LENGTH:
        return f"'{name}' has {len(name)} characters; at most {MAX_NAME_LENGTH} are allowed"
    return None
