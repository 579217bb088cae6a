"""`stagecoach tables create|append|compact|chunks`: tables of a catalog that users write."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from stagecoach.arguments.options import catalog_option, debug_option, text_or_json_option
from stagecoach.planner.text.sizes import format_bytes
from stagecoach.terminal.streams import configure_logging

if TYPE_CHECKING:
    from stagecoach.infra.formats.capabilities import TableShape


@click.command(short_help="Create a deduplicated table without rows")
@click.argument("table")
@click.option("--columns", metavar="'NAME TYPE, …'", help="Names and Spark types of the columns.")
@click.option("--like", metavar="FILE", help="Take the columns of a Parquet or Arrow file.")
@catalog_option
@debug_option
def create(table: str, columns: str | None, like: str | None, catalog: str, debug: bool) -> None:
    """Create a deduplicated table without rows, so that it can be queried.

    The catalog file names it, with `kind: deduplicated`, its location and its primary key. The
    first append creates a table as well, with the columns of what is appended.
    """
    from stagecoach.api.appending import open_appendable, parse_columns

    configure_logging(debug=debug)
    if (columns is None) == (like is None):
        raise click.UsageError("give the columns, with --columns or with --like")
    found, options = open_appendable(table, catalog)
    fields = parse_columns(columns or "") if like is None else found.columns_of(like, options)
    click.echo(f"created {found.name} with {found.create(fields)} columns")


@click.command(short_help="Append files to a deduplicated table")
@click.argument("table")
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@click.option("--sort", is_flag=True, help="Write Parquet, sorted by the key, each key once.")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["parquet", "arrow", "csv", "tsv", "ndjson"]),
    help="Format of the files, if their names do not show it.",
)
@click.option(
    "--allow-missing-keys",
    is_flag=True,
    help="Treat key columns that are missing from the files as NULL.",
)
@catalog_option
@debug_option
def append(
    table: str,
    files: tuple[str, ...],
    sort: bool,
    file_format: str | None,
    allow_missing_keys: bool,
    catalog: str,
    debug: bool,
) -> None:
    """Append files to a deduplicated table, all of them or none; later files are newer.

    Parquet, Arrow IPC, CSV with a header, or NDJSON. New columns are added to the table.
    """
    from stagecoach.api.appending import open_appendable

    configure_logging(debug=debug)
    found, options = open_appendable(table, catalog)
    done = found.append(
        list(files),
        sort=sort,
        allow_missing_keys=allow_missing_keys,
        file_format=file_format,
        options=options,
    )
    click.echo(
        f"appended {done.num_rows:,} rows in {_count(done.num_files, found.file_noun)} to "
        f"{done.version.table}, version {done.version.number}"
    )
    if done.added_columns and done.version.number > 1:
        added = ", ".join(f"{f.name} {f.dtype}" for f in done.added_columns)
        click.echo(f"new columns: {added}")


@click.command(short_help="Merge overlapping chunks of deduplicated tables")
@click.argument("names", metavar="[TABLE]…", nargs=-1)
@click.option(
    "--target-rows",
    metavar="N",
    type=click.IntRange(min=1),
    default=1 << 20,
    show_default=True,
    help="Maximum rows of a chunk.",
)
@catalog_option
@debug_option
def compact(names: tuple[str, ...], target_rows: int, catalog: str, debug: bool) -> None:
    """Merge chunks that overlap, so that queries find each row without comparing it with others.

    Without names, all deduplicated tables of the catalog. Safe beside readers and writers.
    """
    from stagecoach.api.catalog_tables import kinds_of_written_tables, offered, open_catalog

    configure_logging(debug=debug)
    source, _ = open_catalog(catalog)
    tables = [offered(source, name, "be compacted", lambda t: t.compacts()) for name in names] or [
        found for table in source.open_all() if (found := table.compacts()) is not None
    ]
    if not tables:
        click.echo(f"the catalog has no {kinds_of_written_tables()} tables")
    for table in tables:
        if not names and not table.has_data():
            click.echo(f"{table.name}: no data yet")
            continue
        report = table.compact(target_rows=target_rows)
        click.echo(f"{table.name}: {_shape(report.before, table.file_noun)}")
        if report.merged:
            after = _shape(report.after, table.file_noun)
            click.echo(f"{'':{len(table.name)}}  {after}  {report.seconds:.1f} s")
        else:
            click.echo(f"{'':{len(table.name)}}  nothing to do")
        if report.skipped:
            click.echo(f"{report.skipped} groups were merged by another compaction")


@click.command(short_help="Show the chunks of a deduplicated table")
@click.argument("table")
@text_or_json_option
@catalog_option
@debug_option
def chunks(table: str, output_format: str, catalog: str, debug: bool) -> None:
    """Show the chunks of a deduplicated table in groups of those that may share keys."""
    from stagecoach.api.catalog_tables import offered, open_catalog

    configure_logging(debug=debug)
    source, _ = open_catalog(catalog)
    shown = offered(source, table, "show their files", lambda t: t.shows_files()).shown_files()
    if output_format == "json":
        click.echo(json.dumps(shown.values, indent=2, ensure_ascii=False))
        return
    for line in shown.lines:
        click.echo(line)


def _shape(shape: TableShape, noun: str) -> str:
    return (
        f"{_count(shape.num_files, noun)}, {shape.rows:,} rows, {format_bytes(shape.num_bytes)}, "
        f"{shape.overlap_share:.1%} to deduplicate"
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
