"""Iceberg tables that queries publish: the storage root has the catalog and name of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stagecoach.infra.formats.iceberg.declaration import IcebergSource
from stagecoach.infra.formats.iceberg.manifests import manifest_entries
from stagecoach.infra.formats.iceberg.publications import ancestors, publication_of, version_of
from stagecoach.infra.formats.lake_tables.publications import CLEAR, LakeVersion, Publication
from stagecoach.infra.formats.lake_tables.stored_table import LakeTable
from stagecoach.infra.formats.mapped_files.paths import canonical_path
from stagecoach.infra.formats.protocol import TableSource
from stagecoach.infra.formats.stored_version import StoredVersion
from stagecoach.infra.formats.version_log import new_token
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.planner.errors import CatalogError

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table as OpenedTable

FOLDER = "iceberg"


@dataclass(frozen=True)
class StoredIcebergTable(LakeTable):
    """An Iceberg table that a query publishes."""

    format_name = "iceberg"
    folder = FOLDER

    def source_of(self, place: Mapping[str, Any]) -> TableSource:
        """Return the table as a catalog file would have it."""
        found = source_of(place)
        return TableSource(
            name=self.name, location=found.place, format=self.format_name, declaration=found
        )

    @property
    def uri(self) -> str:
        """The folder of the table."""
        table = self.opened()
        return self.location if table is None else str(table.location())

    def current(self) -> LakeVersion | None:
        """Return the current snapshot, or None where nothing was ever published."""
        return next(iter(self._versions(1)), None)

    def kept_versions(self) -> Sequence[LakeVersion]:
        """Return the snapshots that are kept, newest first."""
        return self._versions(None)

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

    def is_lost(self, token: str, location: str) -> bool:
        """Whether no snapshot of the table has a file of a commit.

        The commit's own snapshot may have expired since, and its files be live in later ones, so
        the files of all snapshots are looked at. Of a table that is gone or has moved nothing is
        known.
        """
        opened = self.opened()
        if opened is None or location.rpartition("/")[0] != data_location(opened).rstrip("/"):
            return False
        manifests: dict[str, ManifestFile] = {}
        for snapshot in opened.snapshots():
            if (ours := publication_of(snapshot)) is not None and ours.token == token:
                return False
            manifests |= {m.manifest_path: m for m in snapshot.manifests(opened.io)}
        folder = f"{canonical_path(location)}/"
        return not any(
            canonical_path(entry.data_file.file_path).startswith(folder)
            for manifest in manifests.values()
            for entry in manifest_entries(manifest, opened.io)
        )

    def opened(self) -> OpenedTable | None:
        """Return the table as it is now; None if there is none.

        Raises:
            StorageError: The catalog or its storage does not answer.
        """
        from stagecoach.infra.formats.iceberg.catalogs import find_table

        if self.source is None:
            return None
        kept: dict[str, Any] = self.access.keep("iceberg.catalogs", dict)
        return find_table(self.source.declaration, StorageOptions.of(self.store), kept)

    def _versions(self, limit: int | None) -> list[LakeVersion]:
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


def source_of(place: Mapping[str, Any]) -> IcebergSource:
    """Return where a table is, from `PublishTarget.place`."""
    return IcebergSource(place["table"], place["catalog"], dict(place["properties"]))


def data_location(table: OpenedTable) -> str:
    """Return the folder of a table's data files, as the table spells it."""
    return table.properties.get("write.data.path") or f"{table.location()}/data"
