"""`stagecoach check`: reports every mistake in query files, with an exit code for CI.

Nothing is run: files are read, and queries are planned over footers. Spark starts for a query that
the planner does not understand, and only to analyse it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stagecoach.arguments.options import ProjectRequest, project_options
from stagecoach.terminal.errors import EXIT_FAILED
from stagecoach.terminal.streams import configure_logging

if TYPE_CHECKING:
    from stagecoach.api.session import Session
    from stagecoach.assets.plans.planned import PlanQuery
    from stagecoach.assets.project.front_matter import Problem
    from stagecoach.infra.catalog.planned import TableCatalog
    from stagecoach.planner.catalog import Catalog
    from stagecoach.planner.syntax.macros.expand import Macros


@click.command()
@click.option(
    "--plans",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of compiled plans, which must fit the tables that they read.  "
    "[default: plans beside the project's folder, if there is one]",
)
@click.option(
    "--no-tables",
    is_flag=True,
    help="Check only names, front matter, syntax and parameters, without looking at tables.",
)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of front matter and exit.")
@project_options
def check(request: ProjectRequest, plans: Path | None, no_tables: bool, schema: bool) -> None:
    """Check queries without running them: front matter, names, SQL, parameters, columns.

    Without files or folders, all queries of the project. Spark decides about queries that the
    planner does not understand; with --remote, about all of them. Each problem is a line
    FILE:LINE:COLUMN: MESSAGE, and the exit code is 1 if there is one. A note on standard error says
    which compiled plans were made for far more or less data than there is.
    """
    if schema:
        from stagecoach.assets.project.front_matter import schema_text

        click.echo(schema_text(), nl=False)
        return
    from stagecoach.assets.plans.query_problems import UNREADABLE

    configure_logging(debug=request.debug)
    files = request.files("check")
    plans = plans or files.plans
    with request.session() as session:
        files = request.selected(files, session, plans)
        chosen = files.chosen
        problems = check_files(
            chosen,
            files.files,
            session.base_catalog,
            _planner(session),
            plans=plans if plans.is_dir() else None,
            with_tables=not no_tables,
            macros=session.base_catalog.macros,
        )
    for problem in problems:
        click.echo(str(problem))
    if plans.is_dir() and not no_tables:
        for path, note in _plan_notes(chosen, plans, session.base_catalog):
            click.echo(f"note: {path}: {note}", err=True)
    count = f"{len(chosen)} quer{'y' if len(chosen) == 1 else 'ies'}"
    if problems:
        words = f"{len(problems)} problem{'' if len(problems) == 1 else 's'}"
        click.echo(f"{words} in {len({p.path for p in problems})} of {count}", err=True)
        if any(p.message.startswith(UNREADABLE) for p in problems):
            click.echo("to check without the tables' data, use --no-tables", err=True)
        raise click.exceptions.Exit(EXIT_FAILED)
    click.echo(f"{count}, no problems")


def _planner(session: Session) -> PlanQuery:
    """Plans a query; Spark is asked about every query only where it is running already."""
    from stagecoach.assets.plans.planner import confirmed_by, planner_of

    arbiter = session.arbiter()
    plan = planner_of(session.options, arbiter)
    return confirmed_by(arbiter, plan) if arbiter and session.settings.remote else plan


def _plan_notes(
    chosen: Sequence[Path], plans: Path, catalog: TableCatalog
) -> list[tuple[Path, str]]:
    from stagecoach.assets.plans.project_problems import plan_notes
    from stagecoach.assets.project.queries import read_queries

    return list(plan_notes(read_queries(chosen, catalog.macros)[0], plans, catalog))


def check_files(
    chosen: Sequence[Path],
    files: Sequence[Path],
    catalog: Catalog,
    plan: PlanQuery,
    *,
    plans: Path | None = None,
    with_tables: bool = True,
    macros: Macros | None = None,
) -> list[Problem]:
    """What is wrong with some files of a project, by file, line and column.

    Args:
        chosen: The files to check.
        files: All files of the project, whose names must differ, and whose tables may be read.
        catalog: The base tables.
        plan: Plans one query.
        plans: Folder of compiled plans, which must still fit the tables that they read; or None.
        with_tables: Whether to look at the tables, so that the SQL can be planned.
        macros: The macros of the project.
    """
    from stagecoach.assets.plans.project_problems import ProjectFiles, check_project
    from stagecoach.assets.plans.query_problems import sorted_problems, syntax_problems
    from stagecoach.assets.project.queries import name_clashes, read_queries

    queries, broken, problems = read_queries(files, macros)
    problems += name_clashes([*queries, *broken], catalog.table_names())
    problems += [problem for query in broken for problem in syntax_problems(query)]
    wanted = {str(path) for path in chosen}
    project = ProjectFiles(queries=queries, broken=broken, plans=plans)
    problems += check_project(project, wanted, catalog, plan, with_tables=with_tables)
    return [p for p in sorted_problems(problems) if p.path in wanted]
