"""Iceberg tables that queries publish, as the storage root knows them: by the place of each.

iceberg/<table>/place.json              the catalog, and the table's name there
iceberg/<table>/pending/<token>.json    a commit under way: where its files are
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stagecoach.infra.formats.iceberg.declaration import IcebergSource
from stagecoach.infra.formats.iceberg.publications import (
    CLEAR,
    IcebergVersion,
    Publication,
    ancestors,
    version_of,
)
from stagecoach.infra.formats.protocol import Access, Table, TableSource
from stagecoach.infra.formats.snapshot import TableState
from stagecoach.infra.formats.stored import StoredTable
from stagecoach.infra.formats.stored_version import StoredVersion
from stagecoach.infra.formats.table_places import read_place
from stagecoach.infra.formats.version_log import new_token
from stagecoach.infra.storage.object_store import ObjectStore, StorageOptions
from stagecoach.infra.storage.table_files import FileEntry
from stagecoach.planner.catalog import ColumnNotes
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.versioned_names import TableVersion

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import Table as OpenedTable

FOLDER = "iceberg"


@dataclass(frozen=True)
class StoredIcebergTable(StoredTable):
    """An Iceberg table that a query publishes.

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
    format_name = "iceberg"

    @property
    def location(self) -> str:
        """The catalog and the table's name in it."""
        found = self._source
        return self.store.uri(f"{FOLDER}/{self.name}") if found is None else found.place

    @property
    def uri(self) -> str:
        """The folder of the table."""
        table = self.opened()
        return self.location if table is None else str(table.location())

    def current(self) -> IcebergVersion | None:
        """Return the current snapshot, or None where nothing was ever published."""
        return next(iter(self._versions(1)), None)

    def kept_versions(self) -> Sequence[IcebergVersion]:
        """Return the snapshots that are kept, newest first."""
        return self._versions(None)

    def state_of(self, version: StoredVersion) -> TableState:
        """Return what a snapshot tells, with the table's present columns."""
        return self._reading.state(version.number)

    def state(self, version: int | None = None) -> TableState:
        """Read the current snapshot, or the one with an id."""
        return self._reading.state(version)

    def at(self, version: TableVersion) -> TableState:
        """Read the snapshot with an id, of a branch or tag, or that was current at a moment."""
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

    def clear(self) -> StoredVersion:
        """Commit a snapshot without rows; the table keeps its columns."""
        from stagecoach.infra.formats.iceberg.commit import commit, live_files

        table = self.opened()
        if table is None:
            raise CatalogError(f"table '{self.name}' has no data yet; materialize it first")
        cleared = Publication(fingerprint="", mode=CLEAR, token=new_token())
        commit(table, (), list(live_files(table)), cleared, {})
        version = self.current()
        if version is None:
            raise CatalogError(f"table '{self.name}' is gone")
        return version

    def opened(self) -> OpenedTable | None:
        """Return the table as it is now; None if there is none.

        Raises:
            StorageError: The catalog or its storage does not answer.
        """
        from stagecoach.infra.formats.iceberg.catalogs import find_table

        source = self._source
        if source is None:
            return None
        kept: dict[str, Any] = self.access.keep("iceberg.catalogs", dict)
        return find_table(source, storage_options(self.store), kept)

    def _versions(self, limit: int | None) -> list[IcebergVersion]:
        from stagecoach.infra.formats.iceberg.schema import fields_of, table_columns

        table = self.opened()
        if table is None:
            return []
        columns = fields_of(table_columns(table.schema()))
        found = []
        for snapshot in ancestors(table):
            found.append(version_of(self.name, snapshot, columns))
            if len(found) == limit:
                break
        return found

    @cached_property
    def _source(self) -> IcebergSource | None:
        place = read_place(self.store, FOLDER, self.name)
        return None if place is None else source_of(place)

    @property
    def _reading(self) -> Table:
        source = self._source
        if source is None:
            raise CatalogError(f"table '{self.name}' has no data yet; materialize it first")
        return self.reader(
            TableSource(
                name=self.name, location=source.place, format=self.format_name, declaration=source
            ),
            self.access,
        )


def source_of(place: Mapping[str, Any]) -> IcebergSource:
    """Return where a table is, from `PublishTarget.place`."""
    return IcebergSource(place["table"], place["catalog"], dict(place["properties"]))


def data_location(table: OpenedTable) -> str:
    """Return the folder of a table's data files, as the table spells it."""
    return table.properties.get("write.data.path") or f"{table.location()}/data"


def storage_options(store: ObjectStore) -> StorageOptions:
    """Return how the storage root is reached, and so the data files of its tables."""
    return StorageOptions.from_dict(store.to_dict().get("options", {}))
