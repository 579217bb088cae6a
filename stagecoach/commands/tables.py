"""`stagecoach tables`: a catalog in; its tables with rows, bytes and columns on standard output."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from stagecoach.options import catalog_option, debug_option
from stagecoach.progress import format_bytes
from stagecoach.terminal import configure_logging

if TYPE_CHECKING:
    from planner.catalog import TableInfo

_LINE_WIDTH = 94


@click.command()
@click.argument("names", metavar="[TABLE]…", nargs=-1)
@catalog_option
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How they are shown.",
)
@debug_option
def tables(names: tuple[str, ...], catalog: str, output_format: str, debug: bool) -> None:
    """Show the tables of a catalog: rows, bytes, files and columns."""
    from infra.catalog.catalog import load_catalog
    from infra.settings import load_settings
    from planner.errors import StagecoachError

    configure_logging(debug=debug)
    source = load_catalog(catalog, load_settings().storage_options)
    wanted = [source.source(name).name for name in names] or list(source.table_names())
    found: list[tuple[str, TableInfo | StagecoachError]] = []
    for name in wanted:
        try:
            info = source.table(name)
        except StagecoachError as error:
            found.append((name, error))
        else:
            if info is not None:
                found.append((name, info))
    if output_format == "json":
        described = [_as_json(name, item, source.source(name).location) for name, item in found]
        click.echo(json.dumps({"tables": described}, indent=2, ensure_ascii=False))
    else:
        _print_text(found)
    problems = [item for _, item in found if isinstance(item, StagecoachError)]
    if problems:
        for problem in problems:
            click.echo(f"error: {problem}", err=True)
        raise click.exceptions.Exit(2)


def _as_json(name: str, item: TableInfo | Exception, location: str) -> dict[str, object]:
    if isinstance(item, Exception):
        return {"name": name, "location": location, "error": str(item)}
    stats = item.stats
    return {
        "name": name,
        "location": location,
        "rows": stats.num_rows if stats else None,
        "bytes": stats.num_bytes if stats else None,
        "files": stats.num_files if stats else None,
        "columns": [{"name": c.name, "type": str(c.dtype)} for c in item.columns],
        "spark_only": item.native_reason,
    }


def _print_text(found: Sequence[tuple[str, TableInfo | Exception]]) -> None:
    from stagecoach.output import printable

    if not found:
        click.echo("the catalog has no tables; add one under 'tables:'")
    width = max((len(name) for name, _ in found), default=0)
    for name, item in found:
        if isinstance(item, Exception):
            click.echo(f"{name:<{width}}  (cannot be read)")
            continue
        stats = item.stats
        if stats is None:
            click.echo(f"{name:<{width}}  (size unknown)")
        else:
            files = f"{stats.num_files} file{'' if stats.num_files == 1 else 's'}"
            size = format_bytes(stats.num_bytes)
            click.echo(f"{name:<{width}}  {stats.num_rows:>13,} rows  {size:>8}  {files}")
        for line in _wrapped([f"{printable(c.name)} {c.dtype}" for c in item.columns]):
            click.echo(f"    {line}")
        if item.native_reason:
            click.echo(f"    read by Spark only: {item.native_reason}")


def _wrapped(items: Sequence[str]) -> list[str]:
    """Items with commas, broken into lines between items only."""
    lines = [""]
    for position, item in enumerate(items):
        text = item if position == len(items) - 1 else f"{item}, "
        if lines[-1] and len(lines[-1]) + len(text.rstrip()) > _LINE_WIDTH:
            lines.append("")
        lines[-1] += text
    return [line.rstrip() for line in lines]
