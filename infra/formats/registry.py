"""Finds the format of a table, by the catalog file's words or by the name in a snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from stagecoach.infra.formats import names
from stagecoach.infra.formats.protocol import Access, TableFormat
from stagecoach.infra.formats.snapshot import TableState
from stagecoach.infra.formats.stored import StoredFormat, StoredTable
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.errors import CatalogError

if TYPE_CHECKING:
    import pyarrow as pa


@runtime_checkable
class MakesState(Protocol):
    """A format that makes tables of rows."""

    def state_of(self, name: str, rows: pa.Table) -> TableState:
        """Return a table with these rows."""
        ...


def table_format(name: str) -> TableFormat:
    """Return the format of that name.

    Raises:
        CatalogError: There is none, in this version of Stagecoach.
    """
    found = names.find(name)
    if not isinstance(found, TableFormat):
        raise CatalogError(f"table format '{name}' not found (known formats: {names.known()})")
    return found


def shown_kinds(name: str) -> set[str]:
    """Return the kinds that Dagster shows of an asset that is a table of this format."""
    found = names.find(name)
    kind = found.file_kind if isinstance(found, TableFormat) else ""
    return {"table", kind} if kind else {"table"}


def stored_formats() -> list[StoredFormat]:
    """Return the formats of tables that queries make."""
    return list(map(stored_format, names.MADE.names))


def stored_format(name: str) -> StoredFormat:
    """Return a format of tables that queries make.

    Raises:
        CatalogError: There is none of that name.
    """
    found = table_format(name)
    if not isinstance(found, StoredFormat):
        raise CatalogError(f"table format '{name}' is not one that results are published in")
    return found


def result_format(name: str = "") -> StoredFormat:
    """Return a format that results are published in; by default the first of stored tables.

    Raises:
        CatalogError: There is none of that name.
    """
    return stored_format(name or names.MADE.names[0])


def find_stored(store: ObjectStore, name: str, access: Access) -> StoredTable:
    """Return a table that a query has made, whichever format it has.

    A name may have been a table of several formats; the one that has data counts, then one whose
    first result is staged. A table that was never made is one of the default format.

    Raises:
        StorageError: The store failed.
    """
    waiting: list[StoredTable] = []
    empty: list[StoredTable] = []
    for item in stored_formats():
        table = item.stored(store, name, access)
        version = table.current()
        if version is not None and version.has_data:
            return table
        if table.staged():
            waiting.append(table)
        elif version is not None:
            empty.append(table)
    found = next(iter([*waiting, *empty]), None)
    return result_format().stored(store, name, access) if found is None else found


def metadata_state(name: str, rows: pa.Table) -> TableState:
    """Return a table of rows about another table.

    Args:
        name: Its name, such as `orders.files`.
        rows: Its rows.
    """
    found = names.find(names.ABOUT.names[0])
    if not isinstance(found, MakesState):
        raise CatalogError("there is no format of metadata tables")
    return found.state_of(name, rows)


def stored_tables(store: ObjectStore) -> Iterator[StoredTable]:
    """Yield all tables in a storage root that queries have made.

    Raises:
        StorageError: The store failed.
    """
    for item in stored_formats():
        for name in item.table_names(store):
            yield item.stored(store, name, Access())


def appendable_formats() -> list[TableFormat]:
    """Return the formats of tables that users create and append to."""
    found = map(table_format, (*names.BY_KIND.names, *names.BY_FORMAT.names))
    return [item for item in found if item.written_as]
