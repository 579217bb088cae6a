"""The deduplicated tables of a catalog, to be written, compacted and looked after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stagecoach.infra.formats.deduplicated.declaration import KIND
from stagecoach.infra.formats.deduplicated.table_format import DeduplicatedTable
from stagecoach.planner.errors import CatalogError

if TYPE_CHECKING:
    from stagecoach.infra.catalog.catalog import FileCatalog
    from stagecoach.infra.formats.deduplicated.table import ChunkTable


def chunk_table(catalog: FileCatalog, name: str) -> ChunkTable:
    """Return a deduplicated table.

    Raises:
        CatalogError: There is no such table, or it is of another format.
    """
    found = catalog.open(name)
    if not isinstance(found, DeduplicatedTable):
        raise CatalogError(
            f"table {catalog.source(name).name!r} is not deduplicated; declare it with "
            f"'kind: {KIND}' and a 'primary_key' in {catalog.origin}"
        )
    return found.chunks


def chunk_tables(catalog: FileCatalog) -> list[ChunkTable]:
    """Return all deduplicated tables, in the order of the catalog file."""
    return [table.chunks for table in catalog.open_all() if isinstance(table, DeduplicatedTable)]
