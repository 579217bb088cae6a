"""Finds the files of a project that a command is asked to work on.

stagecoach check pipelines/queries/a.sql     a.sql beside all of pipelines/queries
stagecoach check queries                     all of queries, a project of its own
stagecoach check elsewhere.sql               that file alone
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from stagecoach.assets.project.selection import Selection
    from stagecoach.planner.syntax.macros.expand import Macros

DEFAULT_QUERIES = "pipelines/queries"
PLANS_FOLDER = "plans"
_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class ChosenFiles:
    """Query files that a command is about.

    Args:
        chosen: The files that were named, or are in a folder that was, sorted.
        files: All files of the project, the others first, so that a clash of names is told of the
            file that is looked at.
        folder: The project's folder; None for files that are in none.
        whole: Whether a whole folder was named.
    """

    chosen: tuple[Path, ...]
    files: tuple[Path, ...]
    folder: Path | None
    whole: bool

    @property
    def plans(self) -> Path:
        """Where compiled plans are unless something else is said: beside the project's folder."""
        return Path(PLANS_FOLDER) if self.folder is None else self.folder.parent / PLANS_FOLDER


def project_option(command: _F) -> _F:
    """`--project`."""
    return click.option(
        "--project",
        metavar="FOLDER",
        default=DEFAULT_QUERIES,
        show_default=True,
        type=click.Path(path_type=Path),
        help="The folder of the project's queries: a query in it may read what the others make.",
    )(command)


def selection_options(command: _F) -> _F:
    """`--select` and `--exclude`."""
    select = click.option(
        "--select",
        "-s",
        "select",
        metavar="SELECTOR",
        multiple=True,
        help="Only these queries: a name, tag:NAME or state:modified, with + before it for what "
        "they read and + behind it for what reads them; may be repeated.",
    )
    exclude = click.option(
        "--exclude",
        "exclude",
        metavar="SELECTOR",
        multiple=True,
        help="Leave these queries out; may be repeated.",
    )
    return select(exclude(command))


def read_selection(select: Sequence[str], exclude: Sequence[str]) -> Selection | None:
    """What is selected; None for everything.

    Raises:
        click.UsageError: A text is not a selector.
    """
    if not select and not exclude:
        return None
    from stagecoach.assets.project.selection import SelectorError, parse_selection

    try:
        return parse_selection(select, exclude)
    except SelectorError as error:
        raise click.UsageError(str(error)) from error


def selected_paths(
    selection: Selection, files: Sequence[Path], macros: Macros, plans: Path
) -> Sequence[Path]:
    """The files of the queries that are selected, upstream ones first.

    Args:
        selection: What is selected.
        files: All files of the project.
        macros: The macros of the project.
        plans: Folder of compiled plans, by which queries are modified or not.

    Raises:
        click.UsageError: There is no such query, table or tag.
    """
    from stagecoach.assets.plans.staleness import is_modified
    from stagecoach.assets.project.dependencies import order_and_circles
    from stagecoach.assets.project.queries import read_queries
    from stagecoach.assets.project.selection import SelectorError

    queries, broken, _ = read_queries(files, macros)
    order, circles = order_and_circles([*queries, *broken])
    # Queries in a circle are selected by name, so that `check` can tell it.
    rest = [query for circle in circles for query in circle]
    order = replace(order, queries=(*order.queries, *rest))
    try:
        found = selection.queries(order, partial(is_modified, plans))
    except SelectorError as error:
        raise click.UsageError(str(error)) from error
    return [query.path for query in found if query.path is not None]


def choose_files(paths: Sequence[Path], project: Path, verb: str) -> ChosenFiles:
    """The files that a user names; without any, all of the project.

    Args:
        paths: Files and folders.
        project: The project's folder.
        verb: What the command does to them, for messages.

    Raises:
        click.UsageError: There is no such file, or none at all.
    """
    paths = paths or (project,)
    found: list[Path] = []
    folder: Path | None = None
    for path in paths:
        if path.is_dir():
            found += sorted(path.rglob("*.sql"))
            folder = folder or (project if _is_inside(path, project) else path)
        elif path.is_file():
            found.append(path)
            folder = folder or (project if _is_inside(path, project) else None)
        else:
            start = ", or start a project with `stagecoach init`" if path == project else ""
            raise click.UsageError(
                f"there is no file or folder {path}; name SQL files to {verb}{start}"
            )
    if not found:
        raise click.UsageError(f"there are no .sql files in {', '.join(map(str, paths))}")
    # One file may be named in two ways; it is one query.
    own = {path.resolve(): path for path in reversed(found)}
    others = sorted(folder.rglob("*.sql")) if folder is not None else []
    rest = {path.resolve(): path for path in others if path.resolve() not in own}
    chosen = sorted(own.values())
    return ChosenFiles(
        chosen=tuple(chosen),
        files=(*sorted(rest.values()), *chosen),
        folder=folder,
        whole=any(path.is_dir() for path in paths),
    )


def _is_inside(path: Path, folder: Path) -> bool:
    return folder.resolve() in (path.resolve(), *path.resolve().parents)
