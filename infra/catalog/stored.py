"""What a session reads: the tables of a catalog and those published in the storage root.

    SELECT … FROM daily       a table of the catalog file, else the newest version of the published
                              table `daily` in the storage root

Nobody tells a session which queries a project has: the storage root is listed, once, when a name is
asked for that the catalog file does not have.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from stagecoach.infra.catalog.planned import PlannedTable, PublishedCatalog, TableCatalog
from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.protocol import Access
from stagecoach.infra.formats.registry import stored_formats
from stagecoach.infra.formats.stored import StoredTable
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.versioned_names import split_name


class StoredCatalog(PublishedCatalog):
    """Base tables, and all tables published in a storage root.

    A base table hides a published one of its name.

    Args:
        base: The base tables.
        store: The storage root.
    """

    def __init__(self, base: TableCatalog, store: ObjectStore) -> None:
        super().__init__(base, store, ())
        self._listed: Mapping[str, PlannedTable] | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"StoredCatalog({self._base!r}, {self._store!r})"

    def table_names(self) -> Sequence[str]:
        """Return all names, the base tables first; these alone where the storage has no answer."""
        try:
            return [*self._base.table_names(), *self.published_names()]
        except StorageError:
            return self._base.table_names()

    def published_names(self) -> Sequence[str]:
        """Return the names of the published tables that no base table hides.

        Raises:
            StorageError: The storage refused.
        """
        return [table.name for table in self._all().values()]

    def stored(self, name: str) -> StoredTable:
        """Return a published table.

        Raises:
            CatalogError: The table does not exist.
            StorageError: The storage refused.
        """
        if self._published(name) is None:
            known = ", ".join(self.published_names()) or "none"
            raise CatalogError(f"no project has published a table '{name}' (published: {known})")
        return super().stored(name)

    def refresh(self) -> None:
        """Forget what was read and listed."""
        with self._lock:
            self._listed = None
            self._access = Access()
        super().refresh()

    def _published(self, name: str) -> PlannedTable | None:
        own = split_name(name)[0].lower()
        return None if own in self._base_names() else self._all().get(own)

    def _all(self) -> Mapping[str, PlannedTable]:
        with self._lock:
            if self._listed is None:
                hidden, found = self._base_names(), dict[str, PlannedTable]()
                for item in stored_formats():
                    for name in item.table_names(self._store):
                        # Where a name was a table of several formats, the one with data is found.
                        only = "" if name.lower() in found else item.name
                        if name.lower() not in hidden:
                            found[name.lower()] = PlannedTable(name=name, format=only)
                self._listed = found
            return self._listed

    def _base_names(self) -> frozenset[str]:
        return frozenset(name.lower() for name in self._base.table_names())
