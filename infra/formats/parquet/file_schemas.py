"""Files with different columns as files of one table.

The footers of a table's files say what is in each of them. Here they become footers of the table:
each with the table's columns, in its order, with its types, and with statistics in the terms of
these types. What a file stores otherwise, or lacks, is `FileFooter.stored_types`.

    1.parquet  id int, name string    ─┐                      ┌─  id int, name string, at lacking
    2.parquet  at date, id int        ─┴▶  id, name, at  ─────┴─  id int, name lacking, at date
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from stagecoach.infra.reading.column_summary import ColumnSummary
from stagecoach.infra.reading.footers import FileFooter
from stagecoach.infra.reading.schema_merge import MergeError, check_names, merge_fields
from stagecoach.infra.reading.widening import readers, widened_value
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.types import DataType, Field

_UNSIGNED = re.compile(r"Int,\d+,False")


def merged_columns(footers: Sequence[FileFooter]) -> tuple[Field, ...]:
    """Return the columns of a table with these files, as Spark merges them.

    Args:
        footers: Footers of all files, sorted by their paths.

    Raises:
        CatalogError: A column has types that cannot be merged; the message names two files. Or a
            struct has two members of one name.
    """
    first = columns = footers[0].columns
    _check_names(footers[0])
    seen: set[tuple[Field, ...]] = set()
    for footer in footers[1:]:
        if footer.columns == first or footer.columns in seen:
            continue
        seen.add(footer.columns)
        _check_names(footer)
        try:
            columns = merge_fields(columns, footer.columns)
        except MergeError as error:
            raise CatalogError(_difference(footers, footer, error)) from error
    return columns


def _check_names(footer: FileFooter) -> None:
    try:
        check_names(footer.columns)
    except CatalogError as error:
        raise CatalogError(f"{footer.entry.uri}: {error}") from error


def _difference(footers: Sequence[FileFooter], other: FileFooter, error: MergeError) -> str:
    """Why the columns of a file do not fit those of the files before it."""
    column = error.path[0].lower()
    first = next(
        footer
        for footer in footers
        if (found := _field(footer, column)) is not None and not _merges(found, other)
    )
    return (
        f"files {first.entry.uri} and {other.entry.uri} differ: column {'.'.join(error.path)!r} is "
        f"{error.left} in the former and {error.right} in the latter, which Spark does not merge; "
        "declare the table's columns in the catalog file ('columns'), or write the files with one "
        "type"
    )


def _merges(field: Field, other: FileFooter) -> bool:
    found = _field(other, field.name.lower())
    try:
        merge_fields([field], [] if found is None else [found])
    except MergeError:
        return False
    return True


def _field(footer: FileFooter, name: str) -> Field | None:
    return next((field for field in footer.columns if field.name.lower() == name), None)


def footer_of_table(footer: FileFooter, columns: tuple[Field, ...]) -> FileFooter:
    """Return the footer of a file as one of a table's.

    Args:
        footer: What the file says.
        columns: The columns of the table, without those that come from folders.

    Raises:
        CatalogError: The file stores a column in a way that Spark refuses to read as the table's.
    """
    if footer.columns == columns:
        return footer
    places = {field.name.lower(): i for i, field in enumerate(footer.columns)}
    storage: list[str | None] = []
    summaries: list[ColumnSummary] = []
    stored_types: list[tuple[str, str | None]] = []
    reason = footer.native_reason
    for column in columns:
        place = places.get(column.name.lower())
        if place is None:
            storage.append(None)
            summaries.append(_only_nulls(footer.num_rows))
            stored_types.append((column.name.lower(), None))
            continue
        stored, summary = footer.columns[place].dtype, footer.summaries[place]
        if stored == column.dtype:
            storage.append(footer.storage[place])
            summaries.append(summary)
            continue
        reason = reason or _native_reason(footer, place, column)
        storage.append(None)
        summaries.append(_widened(summary, stored, column.dtype))
        stored_types.append((column.name.lower(), str(stored)))
    return replace(
        footer,
        columns=columns,
        storage=tuple(storage),
        summaries=tuple(summaries),
        native_reason=reason,
        stored_types=tuple(sorted(stored_types)),
    )


def with_storage(footers: Sequence[FileFooter]) -> tuple[FileFooter, ...]:
    """Return footers of a table that tell where a file stores a column in another way than others.

    The types are the same to Spark: an instant as INT96 or in microseconds, a decimal in an integer
    or in bytes. Engines read such files, but not together.

    Args:
        footers: Footers of the table, from `footer_of_table`.
    """
    usual: dict[int, str] = {}
    found: list[FileFooter] = []
    for footer in footers:
        unlike = {
            i: storage
            for i, storage in enumerate(footer.storage)
            if storage is not None and usual.setdefault(i, storage) != storage
        }
        if unlike:
            kept = (None if i in unlike else text for i, text in enumerate(footer.storage))
            told = ((footer.columns[i].name.lower(), text) for i, text in unlike.items())
            stored_types = tuple(sorted([*footer.stored_types, *told]))
            footer = replace(footer, storage=tuple(kept), stored_types=stored_types)
        found.append(footer)
    return tuple(found)


def check_not_null(footers: Sequence[FileFooter], names: Collection[str]) -> None:
    """Look whether columns hold a NULL, as far as footers of a table tell.

    Args:
        footers: Footers of the table, from `footer_of_table`.
        names: Columns that must hold none, lower-case names.

    Raises:
        CatalogError: One does; the message names the file.
    """
    for footer in footers:
        lacking = {name for name, kind in footer.stored_types if kind is None}
        for column, summary in zip(footer.columns, footer.summaries, strict=True):
            if column.name.lower() not in names or not footer.num_rows:
                continue
            if column.name.lower() in lacking or summary.null_count:
                problem = "is missing in" if column.name.lower() in lacking else "has NULLs in"
                raise CatalogError(
                    f"column {column.name!r} is declared NOT NULL and {problem} "
                    f"{footer.entry.uri}; write the file again, or declare the column without"
                )


def _native_reason(footer: FileFooter, place: int, column: Field) -> str | None:
    """Why only Spark may read a column of a file as the table's, or None where any engine may."""
    stored, storage = footer.columns[place].dtype, footer.storage[place]
    who = readers(stored, column.dtype)
    if who == "none":
        raise CatalogError(
            f"{footer.entry.uri}: column {column.name!r} is {stored} in the file and "
            f"{column.dtype} in the table, as which Spark does not read it; change the declared "
            "type, or write the file again"
        )
    if who == "spark" or (storage is not None and _UNSIGNED.search(storage)):
        return f"column {column.name!r} is {stored} in a file, which Spark reads as {column.dtype}"
    return None


def _only_nulls(num_rows: int) -> ColumnSummary:
    return ColumnSummary(num_rows=num_rows, num_bytes=0, null_count=num_rows)


def _widened(summary: ColumnSummary, stored: DataType, wanted: DataType) -> ColumnSummary:
    return replace(
        summary,
        min_value=widened_value(stored, wanted, summary.min_value),
        max_value=widened_value(stored, wanted, summary.max_value),
    )
