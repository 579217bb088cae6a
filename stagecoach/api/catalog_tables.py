"""The tables of a catalog, without a session over it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from stagecoach.api.session import DEFAULT_CATALOG

if TYPE_CHECKING:
    from stagecoach.infra.catalog.catalog import FileCatalog
    from stagecoach.infra.formats.protocol import Table
    from stagecoach.infra.storage.object_store import StorageOptions

C = TypeVar("C")


def open_catalog(
    catalog: str | os.PathLike[str] = DEFAULT_CATALOG,
    settings: Mapping[str, object] | None = None,
) -> tuple[FileCatalog, StorageOptions]:
    """Return a catalog without a session over it, and how to reach storage.

    Raises:
        CatalogError: The catalog file cannot be used.
    """
    from stagecoach.infra.catalog.catalog import load_catalog
    from stagecoach.infra.config.settings import load_settings

    options = load_settings(overrides=settings or {}).storage_options
    return load_catalog(Path(catalog), options), options


def catalog_tables(catalog: str | None) -> list[Table]:
    """Return the tables of a catalog; of the default one if there is one.

    Args:
        catalog: The catalog file, if it is named.

    Raises:
        CatalogError: The catalog file cannot be used.
    """
    if catalog is None and not os.path.exists(DEFAULT_CATALOG):
        return []
    found, _ = open_catalog(catalog or DEFAULT_CATALOG)
    return found.open_all()


def offered(catalog: FileCatalog, name: str, what: str, ask: Callable[[Table], C | None]) -> C:
    """Return what a table that users write offers.

    Args:
        catalog: The catalog.
        name: Name of the table.
        what: What is to be done with the table, such as `be compacted`, for messages.
        ask: Asks the table for a capability, such as `lambda table: table.compacts()`.

    Raises:
        CatalogError: There is no such table, or it does not offer that.
    """
    found = ask(catalog.open(name))
    if found is not None:
        return found
    from stagecoach.infra.formats.registry import appendable_formats, table_format
    from stagecoach.planner.errors import CatalogError

    source = catalog.source(name)
    if table_format(source.format).written_as:
        raise CatalogError(f"table {source.name!r} is {source.format}; such tables cannot {what}")
    how = ", or with ".join(item.written_as for item in appendable_formats())
    raise CatalogError(
        f"table {source.name!r} is not {kinds_of_written_tables()}; declare it with "
        f"{how} in {catalog.origin}"
    )


def kinds_of_written_tables() -> str:
    """Return the formats of tables that users write, for messages."""
    from stagecoach.infra.formats.registry import appendable_formats

    return " or ".join(item.name for item in appendable_formats())
