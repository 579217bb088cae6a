"""`stagecoach new`: writes a query file that explains everything front matter can say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stagecoach.api.session import DEFAULT_CATALOG
from stagecoach.arguments.options import catalog_option, debug_option
from stagecoach.arguments.project_files import DEFAULT_QUERIES
from stagecoach.commands.query_template import KINDS

if TYPE_CHECKING:
    from stagecoach.commands.query_template import Kind


_CATALOG = """\
# The tables that queries read. `stagecoach tables add PATH` adds one.
# A location is a file, a folder or a glob; relative ones start from this file's folder.
tables: {}
"""


@click.command()
@click.argument("name")
@click.option("--hourly", is_flag=True, help="A partition for each hour.")
@click.option("--daily", is_flag=True, help="A partition for each day.")
@click.option("--weekly", is_flag=True, help="A partition for each week.")
@click.option("--monthly", is_flag=True, help="A partition for each month.")
@click.option("--static", is_flag=True, help="A partition for each key of a list.")
@click.option("--table", metavar="TABLE", help="Read all columns of this table of the catalog.")
@click.option(
    "--folder",
    metavar="FOLDER",
    default=DEFAULT_QUERIES,
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the file.",
)
@catalog_option
@debug_option
def new(
    name: str, table: str | None, folder: Path, catalog: str, debug: bool, **kinds: bool
) -> None:
    """Write a new query file, NAME.sql, with all keys of its front matter explained.

    It is a query that runs as it stands. A file that is there already is left as it is. In a folder
    without a project, an empty catalog is written, too.
    """
    from stagecoach.assets.project.names import name_problem
    from stagecoach.commands.query_template import Template

    name = name.removesuffix(".sql")
    if problem := name_problem(name):
        raise click.UsageError(problem)
    given = [kind for kind in KINDS if kinds.get(kind)]
    if len(given) > 1:
        options = " and ".join(f"--{kind}" for kind in given)
        raise click.UsageError(f"{options} cannot be used together; a query has one partitioning")
    path = folder / f"{name}.sql"
    _refuse_taken(name, path, folder, catalog)
    info = None
    if table is not None:
        from stagecoach.infra.catalog.catalog import load_catalog
        from stagecoach.infra.config.settings import load_settings

        source = load_catalog(catalog, load_settings().storage_options)
        info = source.table(source.source(table).name)
    chosen: Kind = given[0] if given else "none"
    text = Template(name=name, kind=chosen, table=info).text
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise click.UsageError(_taken(name, path)) from None
    if catalog == DEFAULT_CATALOG and not Path(catalog).exists():
        Path(catalog).parent.mkdir(parents=True, exist_ok=True)
        Path(catalog).write_text(_CATALOG, encoding="utf-8")
        click.echo(f"{catalog}: written; `stagecoach tables add PATH` adds a table to it")
    click.echo(f"{path}: written; edit it, then run `stagecoach check {path}`")


def _refuse_taken(name: str, path: Path, folder: Path, catalog: str) -> None:
    """A query of that name in a subfolder, or a table of the catalog, has the name already."""
    if path.exists():
        raise click.UsageError(_taken(name, path))
    for other in sorted(folder.rglob("*.sql")) if folder.is_dir() else ():
        if other.stem.lower() == name.lower():
            raise click.UsageError(_taken(name, other))
    if Path(catalog).is_file():
        from stagecoach.infra.catalog.catalog import load_catalog

        for table in load_catalog(catalog).table_names():
            if table.lower() == name.lower():
                raise click.UsageError(
                    f"'{table}' is a table of {catalog}; give the query another name"
                )


def _taken(name: str, path: Path) -> str:
    return f"{path} already exists and is not changed; choose another name than '{name}'"
