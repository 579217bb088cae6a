"""`stagecoach init`: starts a project, or adds to one."""

from __future__ import annotations

import os
from pathlib import Path

import click

from stagecoach.arguments.options import debug_option


@click.command()
@click.argument(
    "folder", metavar="[DIR]", default=".", type=click.Path(file_okay=False, path_type=Path)
)
@debug_option
def init(folder: Path, debug: bool) -> None:
    """Start a project in DIR, by default here: a catalog, a query, sample data and definitions.

    In a Dagster project of `dg` it adds a component, in another project of Python the folders
    `pipelines` and `data`. Files that are there already are left as they are.
    """
    from stagecoach.scaffold.project import scaffold, write

    plan = scaffold(folder)
    written = 0
    for file, is_new in write(folder, plan.files):
        path = os.path.relpath(folder / file.path)
        click.echo(f"  {path}" if is_new else f"  {path}  (already there, left as it is)")
        written += is_new
    if not written:
        click.echo("nothing to do: all files are there")
        return
    click.echo(f"{written} file(s) written. Next:")
    here = os.path.relpath(folder)
    for step in ([] if here == "." else [f"cd {here}"], plan.steps):
        for line in step:
            click.echo(f"  {line}")
