"""Tables of a lake that queries publish, as the storage root knows them: by the place of each.

<folder>/<table>/place.json              where the table is
<folder>/<table>/pending/<token>.json    a commit under way: where its files are
"""

from __future__ import annotations

import datetime
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stagecoach.infra.formats.capabilities import ExpiryRule
from stagecoach.infra.formats.lake_tables.leftovers import find_leftovers, storage_options
from stagecoach.infra.formats.protocol import Access, Table, TableSource
from stagecoach.infra.formats.snapshot import TableState
from stagecoach.infra.formats.stored import RootExpiry, StoredFormat, StoredTable
from stagecoach.infra.formats.stored_version import StoredVersion
from stagecoach.infra.formats.table_places import read_place
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.storage.table_files import FileEntry
from stagecoach.planner.catalog import ColumnNotes
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.versioned_names import TableVersion

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class LakeTable(StoredTable):
    """A table of a lake that a query publishes.

    Args:
        store: The storage root.
        name: Name of the table.
        access: Keeps catalogs open.
        reader: Makes the table that reads, given where it is.
    """

    store: ObjectStore
    name: str
    access: Access
    reader: Callable[[TableSource, Access], Table]
    folder = ""

    @abstractmethod
    def source_of(self, place: Mapping[str, Any]) -> TableSource:
        """Return the table as a catalog file would have it, from `PublishTarget.place`."""

    @abstractmethod
    def is_lost(self, token: str, location: str) -> bool:
        """Whether no version of the table has a file of a commit; see `CommittedTable`."""

    @property
    def location(self) -> str:
        """Where the table is."""
        found = self.source
        return self.store.uri(f"{self.folder}/{self.name}") if found is None else found.location

    def state_of(self, version: StoredVersion) -> TableState:
        """Return what a version tells, with the table's present columns."""
        return self._reading.state(version.number)

    def state(self, version: int | None = None) -> TableState:
        """Read the newest version, or one by its number."""
        return self._reading.state(version)

    def at(self, version: TableVersion) -> TableState:
        """Read the version that the format finds by such words."""
        return self._reading.at(version)

    def entries(self) -> tuple[FileEntry, ...]:
        """Return one entry, which changes when the table's rows change."""
        return self._reading.entries()

    def notes(self) -> Mapping[str, ColumnNotes]:
        """Return the comments of columns, and which of them are required."""
        return self._reading.notes()

    def metadata(self) -> Mapping[str, Callable[[], pa.Table]]:
        """Return the metadata tables."""
        return self._reading.metadata()

    @cached_property
    def source(self) -> TableSource | None:
        """Where the table is; None if it was never published."""
        place = read_place(self.store, self.folder, self.name)
        return None if place is None else self.source_of(place)

    @property
    def _reading(self) -> Table:
        source = self.source
        if source is None:
            raise CatalogError(f"table '{self.name}' has no data yet; materialize it first")
        # The lake is reached as the storage root is.
        return self.reader(source, replace(self.access, options=storage_options(self.store)))


class LakeFormat(StoredFormat):
    """A format of tables of a lake."""

    @abstractmethod
    def stored(self, store: ObjectStore, name: str, access: Access) -> LakeTable:
        """Return a table that a query publishes."""

    def find_expired(
        self, store: ObjectStore, rule: ExpiryRule, orphan_limit: datetime.datetime
    ) -> RootExpiry:
        """Return files of commits that were never ended; versions are the lake's to expire."""
        access = Access()
        tables = (self.stored(store, name, access) for name in self.table_names(store))
        found = (item for table in tables for item in find_leftovers(table, orphan_limit))
        return RootExpiry(expired=tuple(found))
