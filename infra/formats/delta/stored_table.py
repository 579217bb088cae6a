"""Delta tables that queries publish: the storage root has the folder of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.lake_tables.publications import CLEAR, LakeVersion, Publication
from stagecoach.infra.formats.lake_tables.stored_table import LakeTable
from stagecoach.infra.formats.mapped_files.paths import canonical_path
from stagecoach.infra.formats.protocol import TableSource
from stagecoach.infra.formats.stored_version import StoredVersion
from stagecoach.infra.formats.version_log import new_token
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.planner.errors import CatalogError

if TYPE_CHECKING:
    from stagecoach.infra.formats.delta.versions import DeltaVersions

FOLDER = "delta"
DATA_FOLDER = "data"
"""Folder of the table with a folder for each of our commits."""


@dataclass(frozen=True)
class StoredDeltaTable(LakeTable):
    """A Delta table that a query publishes."""

    format_name = "delta"
    folder = FOLDER

    def source_of(self, place: Mapping[str, Any]) -> TableSource:
        """Return the table as a catalog file would have it."""
        location = canonical_path(place["location"])
        return TableSource(name=self.name, location=location, format=self.format_name)

    @property
    def uri(self) -> str:
        """The folder of the table."""
        return self.location

    def current(self) -> LakeVersion | None:
        """Return the newest version, or None where nothing was ever published."""
        found = self._versions()
        return None if found is None else found.newest()

    def kept_versions(self) -> Sequence[LakeVersion]:
        """Return the versions that the log still tells whole, newest first."""
        found = self._versions()
        return [] if found is None else list(found.oldest_first())[::-1]

    def clear(self) -> StoredVersion:
        """Commit a version without rows; the table keeps its columns."""
        from stagecoach.infra.formats.delta.commit import CommitConflictError, commit

        found = self._versions()
        if found is None:
            raise CatalogError(f"table '{self.name}' has no data yet; materialize it first")
        cleared = Publication(fingerprint="", mode=CLEAR, token=new_token())
        try:
            commit(found.table, self.location, self._options, (), None, cleared)
        except CommitConflictError as error:
            raise StorageError(
                f"another writer has changed table '{self.name}' meanwhile; clear it again"
            ) from error
        version = self.current()
        if version is None:
            raise CatalogError(f"table '{self.name}' is gone")
        return version

    def is_lost(self, token: str, location: str) -> bool:
        """Whether neither a live file nor a commit that is kept has a file of a commit."""
        from stagecoach.infra.formats.delta.versions import live_sizes

        found = self._versions()
        if found is None or location.rpartition("/")[0] != f"{self.location}/{DATA_FOLDER}":
            return False
        folder = f"{DATA_FOLDER}/{token}/"
        return not (
            any(path.startswith(folder) for path in live_sizes(found.table))
            or any(commit.is_of(token, folder) for commit in found.commits())
        )

    def _versions(self) -> DeltaVersions | None:
        """The table as it is now; None if there is none."""
        from stagecoach.infra.formats.delta.commit import find_table
        from stagecoach.infra.formats.delta.versions import DeltaVersions

        table = None if self.source is None else find_table(self.location, self._options)
        if table is None:
            return None
        return DeltaVersions(self.name, table, self.location, self._options)

    @property
    def _options(self) -> StorageOptions:
        return StorageOptions.of(self.store)
