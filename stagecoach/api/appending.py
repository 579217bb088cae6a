"""Appends rows to deduplicated tables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from stagecoach.api.session import DEFAULT_CATALOG

if TYPE_CHECKING:
    from stagecoach.infra.formats.capabilities import Appended, Appends
    from stagecoach.infra.storage.object_store import StorageOptions
    from stagecoach.planner.types import Field


def append(
    table: str,
    rows: object,
    *,
    catalog: str | os.PathLike[str] = DEFAULT_CATALOG,
    sort: bool = False,
    allow_missing_keys: bool = False,
    file_format: str | None = None,
    settings: Mapping[str, object] | None = None,
) -> Appended:
    """Append rows to a deduplicated table, all of them or none.

    Args:
        table: Name of the table in the catalog.
        rows: The path or URL of a Parquet, Arrow, CSV or NDJSON file; an Arrow table, batch or
            reader; a pandas frame; a list of mappings; or a list of these, the newest last.
        catalog: The catalog file.
        sort: Write Parquet, sorted by the key and each key once, instead of Arrow IPC as it is.
        allow_missing_keys: Take columns of the key that rows lack for NULL.
        file_format: `parquet`, `arrow`, `csv`, `tsv` or `ndjson`, where names do not tell.
        settings: Values of `EngineSettings`, such as `storage_options`, by name.

    Raises:
        AppendError: The rows do not fit the table, which is unchanged.
        CatalogError: There is no such table, or it is not deduplicated.
        StorageError: The storage failed.
    """
    found, options = open_appendable(table, catalog, settings)
    return found.append(
        as_items(rows),
        sort=sort,
        allow_missing_keys=allow_missing_keys,
        file_format=file_format,
        options=options,
    )


def as_items(rows: object) -> list[object]:
    """Return what is given as a list of files or tables; a list of mappings is one table."""
    if isinstance(rows, tuple):
        rows = list(rows)
    if not isinstance(rows, list) or (rows and all(isinstance(r, Mapping) for r in rows)):
        return [rows]
    return rows


def open_appendable(
    table: str,
    catalog: str | os.PathLike[str] = DEFAULT_CATALOG,
    settings: Mapping[str, object] | None = None,
) -> tuple[Appends, StorageOptions]:
    """Return a table of a catalog that users write, and how to reach storage.

    Raises:
        CatalogError: There is no such table, or nothing can be appended to it.
    """
    from stagecoach.api.catalog_tables import offered, open_catalog

    found, options = open_catalog(catalog, settings)
    return offered(found, table, "be appended to", lambda t: t.appends()), options


def parse_columns(text: str) -> tuple[Field, ...]:
    """Return columns written as in SQL: `device string, time timestamp, usage decimal(5,2)`.

    Raises:
        CatalogError: It is no list of names and types.
    """
    from stagecoach.planner.errors import CatalogError, UnsupportedSqlError
    from stagecoach.planner.types import Field, parse_type

    found = []
    for part in _split(text):
        name, _, kind = part.strip().partition(" ")
        try:
            found.append(Field(name.strip("`"), parse_type(kind)))
        except UnsupportedSqlError as error:
            raise CatalogError(
                f"columns {text!r}: {part.strip()!r} is not a name and a type: {error.message}; "
                "write 'device string, time timestamp'"
            ) from error
    return tuple(found)


def _split(text: str) -> list[str]:
    """At commas that are in no bracket."""
    parts, depth, start = [], 0, 0
    for position, sign in enumerate(text):
        depth += (sign in "<(") - (sign in ">)")
        if sign == "," and not depth:
            parts.append(text[start:position])
            start = position + 1
    return [*parts, text[start:]]
