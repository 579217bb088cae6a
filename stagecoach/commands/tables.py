"""`stagecoach tables`: lists the tables of a catalog and those in the storage.

`stagecoach tables [TABLE]…` is short for `stagecoach tables show`. The commands for tables
that users write are in `stagecoach.commands.written_tables`.
"""

from __future__ import annotations

import json
import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from stagecoach.api.session import DEFAULT_CATALOG
from stagecoach.arguments.completions import table_names
from stagecoach.arguments.options import (
    catalog_option,
    debug_option,
    open_session,
    read_settings,
    storage_option,
    text_or_json_option,
)
from stagecoach.commands.staged_tables import discard, publish, staged_json, staged_text
from stagecoach.commands.written_tables import append, chunks, compact, create
from stagecoach.planner.text.sizes import format_bytes, format_rows
from stagecoach.terminal.streams import configure_logging, discard_log, divert_noise

if TYPE_CHECKING:
    from stagecoach.api.session import Session
    from stagecoach.infra.formats.stored_version import StoredVersion
    from stagecoach.planner.catalog import TableInfo
    from stagecoach.planner.types import Field

_LINE_WIDTH = 94
_INFERRED = ("csv", "json")
"""Formats whose columns only Spark finds."""
# YAML takes some words for booleans and null.
_PLAIN_YAML = re.compile(
    r"(?!(?:y|n|yes|no|on|off|true|false|null)$)[A-Za-z_][A-Za-z0-9_(),]*", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True)
class _Shown:
    """A table as it is shown.

    Args:
        name: Its name.
        location: Where it is.
        info: What it is, or why that is not known.
        version: Its newest version, if a project publishes it.
    """

    name: str
    location: str
    info: TableInfo | Exception
    version: StoredVersion | None = None


class _TablesGroup(click.Group):
    """Shows tables where no subcommand is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_completed = ctx.resilient_parsing and not args  # the next word may be either
        if not is_completed and (not args or args[0] not in (*self.commands, "-h", "--help")):
            args = ["show", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        show = self.commands["show"]
        names = table_names(ctx, show.params[0], incomplete)
        return [*super().shell_complete(ctx, incomplete), *map(CompletionItem, names)]


@click.group(cls=_TablesGroup, subcommand_metavar="[TABLE]… | COMMAND …")
def tables() -> None:
    """Show tables, add them to the catalog, decide about staged results, write tables.

    `stagecoach tables [TABLE]…` is short for `stagecoach tables show`, and takes its options, such
    as --versions and --staged.
    """


@tables.command(short_help="Show rows, bytes, files, columns and versions")
@click.argument("names", metavar="[TABLE]…", nargs=-1, shell_complete=table_names)
@catalog_option
@storage_option
@click.option(
    "--versions", is_flag=True, help="Show the kept versions of published tables, newest first."
)
@click.option(
    "--staged", is_flag=True, help="Show results that wait after failed checks, oldest first."
)
@text_or_json_option
@debug_option
def show(
    names: tuple[str, ...],
    catalog: str,
    storage: str | None,
    versions: bool,
    staged: bool,
    output_format: str,
    debug: bool,
) -> None:
    """Show tables: rows, bytes, files and columns; of published ones, the version and its run.

    Without names, all tables of the catalog and all that are published in the storage.
    """
    from stagecoach.planner.errors import StagecoachError

    configure_logging(debug=debug)
    session = open_session(catalog, storage, read_settings(()))
    source = session.catalog
    if versions:
        _show_versions(session, names or tuple(source.published_names()), output_format)
        return
    if staged:
        _show_staged(session, names or tuple(source.published_names()), output_format)
        return
    base = {name.lower() for name in session.base_catalog.table_names()}
    wanted = [source.source(name).name for name in names] or [
        *session.base_catalog.table_names(),
        *source.published_names(),
    ]
    found = [_look_at(session, name, name.lower() not in base) for name in wanted]
    if output_format == "json":
        described = [_as_json(item) for item in found]
        click.echo(json.dumps({"tables": described}, indent=2, ensure_ascii=False))
    else:
        _print_text(found)
    problems = [item.info for item in found if isinstance(item.info, StagecoachError)]
    if problems:
        for problem in problems:
            click.echo(f"error: {problem}", err=True)
        raise click.exceptions.Exit(2)


@tables.command(short_help="Empty a published table")
@click.argument("name", metavar="TABLE")
@click.option("--yes", is_flag=True, help="Do not ask.")
@catalog_option
@storage_option
@debug_option
def clear(name: str, yes: bool, catalog: str, storage: str | None, debug: bool) -> None:
    """Clear a published table; its query may publish other columns next.

    Readers no longer see its rows and columns; kept versions stay until gc removes them.
    """
    configure_logging(debug=debug)
    session = open_session(catalog, storage, read_settings(()))
    (name,) = _published(session, (name,))
    table = session.catalog.stored(name)
    current = table.current()
    if not yes:
        rows = format_rows(current.num_rows if current else 0)
        click.confirm(f"clear table '{name}' of {rows}?", abort=True)
    version = table.clear()
    click.echo(f"cleared {name}, version {version.number}; publish all of it again")


@tables.command(short_help="Print the columns that Spark finds in files of CSV or JSON")
@click.argument("name", metavar="TABLE")
@catalog_option
@storage_option
@debug_option
def infer(name: str, catalog: str, storage: str | None, debug: bool) -> None:
    """Print the columns that Spark finds in a table of CSV or JSON, to paste into the catalog.

    Spark reads all of the table's files, with the options that the catalog gives. Runs never infer:
    they read the columns that are declared.
    """
    from stagecoach.api.inferring import infer_columns

    configure_logging(debug=debug)
    session = open_session(catalog, storage, read_settings(()))
    click.echo("    columns:")
    for column, dtype in infer_columns(name, catalog, session.settings):
        shown = dtype if "<" in dtype else dtype.upper()  # members keep their names
        click.echo(f"      {_yaml_text(column)}: {_yaml_text(shown)}")


@tables.command(short_help="Add files, folders or URLs to the catalog file")
@click.argument("locations", metavar="LOCATION…", nargs=-1, required=True)
@click.option("--name", metavar="TABLE", help="Name of the table; by default, of file or folder.")
@catalog_option
@debug_option
def add(locations: tuple[str, ...], name: str | None, catalog: str, debug: bool) -> None:
    """Add tables to the catalog file: one for each file, folder or URL.

    A folder is one table of all its files. A table that is there already, at the same place, stays
    as it is. The format follows from the names of the files. Columns of CSV and JSON are those that
    Spark finds in the files, which takes some seconds: have a look at them.
    """
    from stagecoach.planner.errors import CatalogError
    from stagecoach.scaffold.catalog_entries import (
        doubtful_columns,
        has_entry,
        new_entry,
        table_name,
        with_entries,
    )

    configure_logging(debug=debug)
    if name is not None and len(locations) > 1:
        raise click.UsageError("--name is for one location")
    file = Path(catalog)
    entries: dict[str, dict[str, object]] = {}
    for location in locations:
        chosen = name or table_name(location)
        if chosen in entries:
            raise CatalogError(f"two locations give the name '{chosen}'; add them one by one")
        entries[chosen] = dict(new_entry(location, file))
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    there = {chosen for chosen, entry in entries.items() if has_entry(before, chosen, entry)}
    for chosen in sorted(there):
        click.echo(f"{catalog}: table {chosen} is there already")
        del entries[chosen]
    if not entries:
        return
    with_entries(before, entries, file=catalog)  # before Spark is started for the columns
    inferred = {chosen for chosen, entry in entries.items() if entry.get("format") in _INFERRED}
    if inferred and not debug:
        divert_noise()
    for chosen, entry in entries.items():
        if chosen in inferred:
            entry["columns"] = _found_columns(chosen, entry, file)
    _refuse_unreadable(entries, file)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(with_entries(before, entries, file=catalog), encoding="utf-8")
    for chosen, entry in entries.items():
        click.echo(f"{catalog}: table {chosen} added ({entry.get('format', 'parquet')})")
        if (doubt := doubtful_columns(entry)) is not None:
            click.echo(f"warning: table {chosen}: {doubt}", err=True)
    shown = [] if catalog == DEFAULT_CATALOG else ["--catalog", catalog]
    click.echo(f"`{shlex.join(['stagecoach', 'tables', *entries, *shown])}` shows what is there")
    discard_log()


@contextmanager
def _catalog_of(entries: Mapping[str, dict[str, object]], catalog: Path) -> Iterator[str]:
    """A catalog file of tables that are not in the user's yet, beside it: locations start there."""
    from stagecoach.planner.errors import CatalogError
    from stagecoach.scaffold.catalog_entries import with_entries

    catalog.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", dir=catalog.parent, prefix=".", suffix=".yaml", encoding="utf-8"
    ) as file:
        file.write(with_entries("", entries, file=file.name))
        file.flush()
        try:
            yield file.name
        except CatalogError as error:
            raise CatalogError(str(error).replace(file.name, str(catalog))) from error


def _found_columns(name: str, entry: dict[str, object], catalog: Path) -> dict[str, str]:
    """The columns that Spark finds, of a table that is not in the catalog file yet.

    Raises:
        CatalogError: It finds none.
    """
    from stagecoach.api.inferring import infer_columns
    from stagecoach.planner.errors import CatalogError

    with _catalog_of({name: entry}, catalog) as file:
        settings = open_session(file, None, read_settings(())).settings
        found = infer_columns(name, file, settings)
    if not found:
        raise CatalogError(
            f"table {name!r}: {entry['location']} has no columns; add it when there is data in it"
        )
    return {column: dtype if "<" in dtype else dtype.upper() for column, dtype in found}


def _refuse_unreadable(entries: Mapping[str, dict[str, object]], catalog: Path) -> None:
    """Look at the files of tables before a catalog file has them.

    Raises:
        CatalogError: Some cannot be read.
    """
    local = {n: entry for n, entry in entries.items() if "://" not in str(entry["location"])}
    with _catalog_of(local, catalog) as file:
        session = open_session(file, None, read_settings(()))
        for name in local:
            session.base_catalog.table(name)


def _yaml_text(text: str) -> str:
    """A text as a key or a value in YAML, in quotes where it needs them."""
    return text if _PLAIN_YAML.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _look_at(session: Session, name: str, is_published: bool) -> _Shown:
    from stagecoach.planner.errors import CatalogError, StagecoachError

    location = session.catalog.source(name).location
    try:
        version = session.catalog.stored(name).current() if is_published else None
        info = session.catalog.table(name)
    except StagecoachError as error:
        return _Shown(name=name, location=location, info=error)
    if info is None:
        info_or_error: TableInfo | Exception = CatalogError(f"table '{name}' is gone")
    else:
        info_or_error = info
    return _Shown(name=name, location=location, info=info_or_error, version=version)


def _as_json(item: _Shown) -> dict[str, object]:
    shown: dict[str, object] = {"name": item.name, "location": item.location}
    if isinstance(item.info, Exception):
        return {**shown, "error": str(item.info)}
    stats = item.info.stats
    shown |= {
        "rows": stats.num_rows if stats else None,
        "rows_estimated": stats.is_estimate if stats else False,
        "bytes": stats.num_bytes if stats else None,
        "files": stats.num_files if stats else None,
        "columns": [_column_json(c, item.info) for c in item.info.columns],
        "spark_only": item.info.native_reason,
    }
    if item.version is not None:
        shown["version"] = _version_json(item.version)
    return shown


def _column_json(column: Field, info: TableInfo) -> dict[str, object]:
    shown: dict[str, object] = {"name": column.name, "type": str(column.dtype)}
    note = info.notes.get(column.name)
    if note is not None and not note.nullable:
        shown["nullable"] = False
    if note is not None and note.comment:
        shown["comment"] = note.comment
    return shown


def _version_json(version: StoredVersion) -> dict[str, object]:
    return {
        "number": version.number,
        "committed_at": version.committed_at,
        "mode": version.mode,
        "run_id": version.run_id,
        "rows": version.num_rows,
        "bytes": version.num_bytes,
        "files": version.num_files,
        "partitions": list(version.partition_keys),
    }


def _print_text(found: Sequence[_Shown]) -> None:
    from stagecoach.terminal.text_tables import printable

    if not found:
        click.echo("the catalog has no tables; add one under 'tables:'")
    width = max((len(item.name) for item in found), default=0)
    for item in found:
        name, info = item.name, item.info
        if isinstance(info, Exception):
            click.echo(f"{name:<{width}}  (cannot be read)")
            continue
        stats = info.stats
        if stats is None:
            click.echo(
                f"{name:<{width}}  ({'no data yet' if info.is_declared else 'size unknown'})"
            )
        else:
            size = format_bytes(stats.num_bytes)
            rows = format_rows(stats.num_rows, is_estimate=stats.is_estimate, width=13)
            click.echo(f"{name:<{width}}  {rows}  {size:>8}  {_files(stats.num_files)}")
        for line in _wrapped([_column_text(c, info) for c in info.columns]):
            click.echo(f"    {line}")
        for column in info.columns:
            if (note := info.notes.get(column.name)) is not None and note.comment:
                click.echo(f"    {printable(column.name)}: {printable(note.comment)}")
        if item.version is not None:
            click.echo(f"    published: {_version_text(item.version)}")
        if info.native_reason:
            click.echo(f"    read by Spark only: {info.native_reason}")


def _column_text(column: Field, info: TableInfo) -> str:
    from stagecoach.terminal.text_tables import printable

    note = info.notes.get(column.name)
    required = "" if note is None or note.nullable else " NOT NULL"
    return f"{printable(column.name)} {column.dtype}{required}"


def _files(count: int) -> str:
    return f"{count} file{'' if count == 1 else 's'}"


def _version_text(version: StoredVersion) -> str:
    run = f" by run {version.run_id}" if version.run_id else ""
    return f"version {version.number} of {version.committed_at}{run}"


def _show_versions(session: Session, names: Sequence[str], output_format: str) -> None:
    """The versions that are kept, newest first."""
    found = {
        name: session.catalog.stored(name).kept_versions() for name in _published(session, names)
    }
    if output_format == "json":
        described = {name: [_version_json(v) for v in kept] for name, kept in found.items()}
        click.echo(json.dumps({"versions": described}, indent=2, ensure_ascii=False))
        return
    for name, kept in found.items():
        click.echo(name)
        for version in kept:
            rows, size = format_rows(version.num_rows, width=13), format_bytes(version.num_bytes)
            click.echo(
                f"  {version.number:>6}  {version.committed_at}  {version.mode:<17}"
                f"  {rows}  {size:>8}  {_files(version.num_files)}"
                f"{f'  run {version.run_id}' if version.run_id else ''}"
            )


def _show_staged(session: Session, names: Sequence[str], output_format: str) -> None:
    """What is staged, oldest first."""
    found = {name: session.catalog.stored(name).staged() for name in _published(session, names)}
    if output_format == "json":
        described = {name: [staged_json(s) for s in waiting] for name, waiting in found.items()}
        click.echo(json.dumps({"staged": described}, indent=2, ensure_ascii=False))
        return
    for name, waiting in found.items():
        if waiting:
            click.echo(name)
        for item in waiting:
            click.echo(f"  {staged_text(item)}")
    if not any(found.values()):
        click.echo("nothing is staged")


def _published(session: Session, names: Sequence[str]) -> list[str]:
    """Names of published tables as they are in the storage."""
    from stagecoach.planner.errors import CatalogError

    published = {name.lower(): name for name in session.catalog.published_names()}
    if unknown := [name for name in names if name.lower() not in published]:
        known = ", ".join(published.values()) or "none"
        raise CatalogError(f"no project has published a table '{unknown[0]}' (published: {known})")
    return [published[name.lower()] for name in names]


def _wrapped(items: Sequence[str]) -> list[str]:
    """Items with commas, broken into lines between items only."""
    lines = [""]
    for position, item in enumerate(items):
        text = item if position == len(items) - 1 else f"{item}, "
        if lines[-1] and len(lines[-1]) + len(text.rstrip()) > _LINE_WIDTH:
            lines.append("")
        lines[-1] += text
    return [line.rstrip() for line in lines]


for _command in (create, append, compact, chunks, publish, discard):
    tables.add_command(_command)
