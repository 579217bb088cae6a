"""A catalog and whatever is published beside it: in, both; out, what a session reads.

    SELECT … FROM daily       a table of the catalog file, else the newest version of the published
                              table `daily` in the storage root

Nobody tells a session which queries a project has: the storage root is listed, once, when a name is
asked for that the catalog file does not have.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from infra.catalog.catalog import TableSource
from infra.catalog.footers import FileFooter
from infra.errors import StorageError
from infra.storage import layout
from infra.storage.object_store import ObjectStore
from infra.tables.catalog import PlannedTable, PublishedCatalog, TableCatalog
from planner.catalog import TableInfo


class StoredCatalog:
    """Base tables, and all tables published in a storage root; implements `TableCatalog`.

    Safe to use from several threads. A base table hides a published one of its name.

    Args:
        base: The base tables.
        store: The storage root.
    """

    def __init__(self, base: TableCatalog, store: ObjectStore) -> None:
        self._base = base
        self._store = store
        self._lock = threading.Lock()
        self._found: PublishedCatalog | None = None

    def __repr__(self) -> str:
        return f"StoredCatalog({self._base!r}, {self._store.uri('')!r})"

    def table(self, name: str) -> TableInfo | None:
        """Return the table of that name (case does not matter), or None.

        Raises:
            CatalogError: The table is known but its files cannot be used.
            StorageError: The storage refused.
        """
        return self._of(name).table(name)

    def table_names(self) -> Sequence[str]:
        """Return all names, the base tables first; these alone where the storage has no answer."""
        try:
            return self._all().table_names()
        except StorageError:
            return self._base.table_names()

    def published_names(self) -> Sequence[str]:
        """Return the names of the published tables that no base table hides.

        Raises:
            StorageError: The storage refused.
        """
        base = set(self._base.table_names())
        return [name for name in self._all().table_names() if name not in base]

    def source(self, name: str) -> TableSource:
        """Return where the table is.

        Raises:
            CatalogError: There is no such table.
        """
        return self._of(name).source(name)

    def read(self, name: str) -> tuple[TableInfo, tuple[FileFooter, ...]]:
        """Return the table and its files, sorted by URI, as they are now.

        Raises:
            CatalogError: There is no such table, or its files cannot be used.
            StorageError: The storage refused.
        """
        return self._of(name).read(name)

    def refresh(self) -> None:
        """Forget what was read and listed."""
        with self._lock:
            self._found = None
        self._base.refresh()

    def _of(self, name: str) -> TableCatalog:
        known = {table.lower() for table in self._base.table_names()}
        return self._base if name.lower() in known else self._all()

    def _all(self) -> PublishedCatalog:
        with self._lock:
            if self._found is None:
                known = {table.lower() for table in self._base.table_names()}
                planned = {
                    name.lower(): PlannedTable(name=name)
                    for name in self._store.folders(layout.RESULTS_ROOT)
                    if name.lower() not in known
                }
                self._found = PublishedCatalog(self._base, self._store, list(planned.values()))
            return self._found
