"""`stagecoach tables create|append|compact|chunks`: deduplicated tables of a catalog."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from stagecoach.arguments.options import catalog_option, debug_option, text_or_json_option
from stagecoach.terminal.progress import format_bytes
from stagecoach.terminal.streams import configure_logging

if TYPE_CHECKING:
    from stagecoach.infra.formats.deduplicated.compaction import TableShape
    from stagecoach.planner.formats.deduplicated.chunk import Chunk, DedupTable


@click.command()
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
    from stagecoach.api.appending import open_chunk_table, parse_columns
    from stagecoach.infra.formats.deduplicated.schema import file_fields
    from stagecoach.infra.formats.deduplicated.sources import open_source
    from stagecoach.planner.types import NULL

    configure_logging(debug=debug)
    if (columns is None) == (like is None):
        raise click.UsageError("give the columns, with --columns or with --like")
    found, options = open_chunk_table(table, catalog)
    if like is not None:
        source = open_source(like, (), options=options)
        found_fields = file_fields(source.schema, place=source.place)
        fields = tuple(field for field in found_fields if field.dtype != NULL)
    else:
        fields = parse_columns(columns or "")
    version = found.create(fields)
    click.echo(f"created {found.name} with {len(version.columns)} columns")


@click.command()
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
    from stagecoach.api.appending import append as append_rows

    configure_logging(debug=debug)
    done = append_rows(
        table,
        list(files),
        catalog=catalog,
        sort=sort,
        file_format=file_format,
        allow_missing_keys=allow_missing_keys,
    )
    click.echo(
        f"appended {done.num_rows:,} rows in {_count(len(done.chunks), 'chunk')} to "
        f"{done.version.table}, version {done.version.number}"
    )
    if done.added_columns and done.version.number > 1:
        added = ", ".join(f"{f.name} {f.dtype}" for f in done.added_columns)
        click.echo(f"new columns: {added}")


@click.command()
@click.argument("names", metavar="[TABLE]…", nargs=-1)
@click.option(
    "--target-rows",
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
    from stagecoach.api.appending import open_catalog
    from stagecoach.infra.formats.deduplicated.compaction import compact as compact_table
    from stagecoach.infra.publishing.deduplicated_tables import chunk_table, chunk_tables

    configure_logging(debug=debug)
    source, _ = open_catalog(catalog)
    tables = [chunk_table(source, name) for name in names] or chunk_tables(source)
    if not tables:
        click.echo("the catalog has no deduplicated tables")
    for table in tables:
        if not names and table.current() is None:
            click.echo(f"{table.name}: no data yet")
            continue
        report = compact_table(table, target_rows=target_rows)
        click.echo(f"{table.name}: {_shape(report.before)}")
        if report.merged:
            click.echo(f"{'':{len(table.name)}}  {_shape(report.after)}  {report.seconds:.1f} s")
        else:
            click.echo(f"{'':{len(table.name)}}  nothing to do")
        if report.skipped:
            click.echo(f"{report.skipped} groups were merged by another compaction")


@click.command()
@click.argument("table")
@text_or_json_option
@catalog_option
@debug_option
def chunks(table: str, output_format: str, catalog: str, debug: bool) -> None:
    """Show the chunks of a deduplicated table in groups of those that may share keys."""
    from stagecoach.api.appending import open_chunk_table
    from stagecoach.infra.formats.deduplicated.grouping import (
        needs_dedup,
        overlap_groups,
        overlap_share,
    )
    from stagecoach.infra.formats.deduplicated.view import dedup_table, table_chunks

    configure_logging(debug=debug)
    found, _ = open_chunk_table(table, catalog)
    version = found.read()
    declared = dedup_table(version)
    groups = overlap_groups(declared, table_chunks(found.store, version))
    share = overlap_share(groups)
    if output_format == "json":
        described = {
            "table": version.table,
            "version": version.number,
            "rows": version.num_rows,
            "bytes": version.num_bytes,
            "overlap_share": share,
            "groups": [
                {"deduplicated": needs_dedup(g), "chunks": [_as_json(declared, c) for c in g]}
                for g in groups
            ],
        }
        click.echo(json.dumps(described, indent=2, ensure_ascii=False))
        return
    click.echo(
        f"{version.table}: version {version.number}, {_count(len(version.chunks), 'chunk')}, "
        f"{version.num_rows:,} rows, {format_bytes(version.num_bytes)}, {share:.1%} to deduplicate"
    )
    for number, group in enumerate(groups, 1):
        reason = "" if needs_dedup(group) else "  one row a key"
        click.echo(f"  group {number}{reason}")
        for chunk in group:
            click.echo(f"    {_line(declared, chunk)}")


def _line(table: DedupTable, chunk: Chunk) -> str:
    parts = [
        f"{chunk.sequence:>6}  {chunk.kind:<7}  {chunk.num_rows:>11,} rows",
        f"{format_bytes(chunk.num_bytes):>8}",
    ]
    if (times := _times(table, chunk)) is not None:
        parts.append(f"{times[0]} … {times[1]}")
    if chunk.partition is not None and table.partition_by:
        pairs = zip(table.partition_by, chunk.partition, strict=True)
        parts.append(" ".join(f"{name}={_shown(value)}" for name, value in pairs))
    notes = [
        *(["sorted"] if chunk.sort_order else []),
        *(["duplicates"] if chunk.may_contain_duplicates else []),
        *(["deletes"] if chunk.has_deletes else []),
    ]
    return "  ".join([*parts, *([", ".join(notes)] if notes else [])])


def _times(table: DedupTable, chunk: Chunk) -> tuple[str, str] | None:
    """First and last time as people read them."""
    import pyarrow as pa

    from stagecoach.planner.types import to_arrow

    kinds = {field.name: field.dtype for field in table.columns}
    if chunk.time_range is None or table.time_column is None:
        return None
    low, high = pa.array(chunk.time_range, pa.int64()), kinds[table.time_column]
    kind = to_arrow(high)
    values = low.cast(pa.int32()).cast(kind) if high.kind == "date" else low.cast(kind)
    first, last = (str(value) for value in values)
    return first, last


def _as_json(table: DedupTable, chunk: Chunk) -> dict[str, object]:
    times = _times(table, chunk)
    return {
        "id": chunk.chunk_id,
        "uri": chunk.uri,
        "kind": chunk.kind,
        "sequence": chunk.sequence,
        "rows": chunk.num_rows,
        "bytes": chunk.num_bytes,
        "partition": chunk.partition,
        "first_time": times[0] if times else None,
        "last_time": times[1] if times else None,
        "sort_order": chunk.sort_order,
        "may_contain_duplicates": chunk.may_contain_duplicates,
        "has_deletes": chunk.has_deletes,
        "columns": [f"{f.name} {f.dtype}" for f in chunk.columns],
    }


def _shape(shape: TableShape) -> str:
    return (
        f"{_count(shape.chunks, 'chunk')}, {shape.rows:,} rows, {format_bytes(shape.num_bytes)}, "
        f"{shape.overlap_share:.1%} to deduplicate"
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _shown(value: object) -> str:
    return "NULL" if value is None else str(value)
