"""Files of commits to Iceberg tables that were never ended: recorded, found and removed.

Each commit has a folder of its own in the table's data folder, named by its token. A record in the
storage root is written before the first file and removed when the commit has ended. What is older
belongs to a run that died. Attempts of tasks that failed leave files in the folder, too.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from stagecoach.infra.formats.iceberg.manifests import manifest_entries
from stagecoach.infra.formats.iceberg.publications import publication_of
from stagecoach.infra.formats.iceberg.stored_table import (
    FOLDER,
    StoredIcebergTable,
    data_location,
    storage_options,
)
from stagecoach.infra.formats.mapped_files.paths import canonical_path
from stagecoach.infra.storage import checked_json, layout
from stagecoach.infra.storage.listing import StoredObject, list_objects
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.errors import StagecoachError

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestFile

log = logging.getLogger(__name__)


def begin(store: ObjectStore, table: str, token: str, location: str) -> None:
    """Write down that a commit puts files into a folder.

    Args:
        store: The storage root.
        table: Name of the table.
        token: Identity of the commit.
        location: The folder of its files, as the table spells it.
    """
    store.write_bytes(_key(table, token), checked_json.dump({"location": location}))


def end(store: ObjectStore, table: str, token: str) -> None:
    """Forget a commit: its files are live, or gone."""
    store.delete([_key(table, token)])


def remove_others(lake: ObjectStore, kept: Collection[str]) -> None:
    """Remove what lies in the folder of a commit and does not belong to it.

    Args:
        lake: The folder.
        kept: Keys of the files that belong to it.
    """
    if strays := [key for key in lake.list("") if key not in kept]:
        lake.delete(strays)


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """Files of one commit that was never ended; an `Expired`.

    Attributes:
        table: The table.
        token: Identity of the commit.
        location: The folder of its files.
        files: They; none if they are live, or if none was written.
    """

    table: StoredIcebergTable
    token: str
    location: str
    files: tuple[StoredObject, ...]

    @property
    def table_name(self) -> str:
        """Name of the table."""
        return self.table.name

    @property
    def num_versions(self) -> int:
        """No version goes: no snapshot has the files."""
        return 0

    @property
    def num_objects(self) -> int:
        """How many files there are."""
        return len(self.files)

    @property
    def num_bytes(self) -> int:
        """Their size."""
        return sum(file.num_bytes for file in self.files)

    @property
    def counts(self) -> Mapping[str, int]:
        """How many files there are."""
        return {"files of a lost commit": len(self.files)}

    @property
    def metadata(self) -> Mapping[str, int]:
        """Nothing else."""
        return {}

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to remove."""
        return not self.files

    def without(self, pinned_uris: Collection[str]) -> Self:
        """Return what still may go; no run can have pinned a file that no snapshot has."""
        root = canonical_path(self.location).rstrip("/")
        kept = tuple(f for f in self.files if f"{root}/{f.key}" not in pinned_uris)
        return replace(self, files=kept)

    def remove(self) -> None:
        """Remove the files, unless the commit has ended after all."""
        if self.files and _may_go(self.table, self.token, self.location):
            _lake(self.table, self.location).delete([file.key for file in self.files])
        end(self.table.store, self.table.name, self.token)


def find_leftovers(table: StoredIcebergTable, limit: datetime.datetime) -> list[Leftover]:
    """Return the commits to a table that were begun before a moment and never ended.

    A table that cannot be opened has none, for what its snapshots name is not known.
    """
    prefix = f"{FOLDER}/{table.name}/pending"
    found = []
    try:
        for item in list_objects(table.store, prefix):
            if item.modified >= limit or not item.key.endswith(".json"):
                continue
            token = item.key.rsplit("/", 1)[1].removesuffix(".json")
            location = checked_json.load(table.store.read_bytes(item.key))["location"]
            files: tuple[StoredObject, ...] = ()
            if _may_go(table, token, location):
                files = tuple(list_objects(_lake(table, location), ""))
            found.append(Leftover(table=table, token=token, location=location, files=files))
    except (StagecoachError, ValueError, KeyError) as error:
        log.warning("table %s: what its lost commits left is not known: %s", table.name, error)
        return []
    return found


def _lake(table: StoredIcebergTable, location: str) -> ObjectStore:
    return open_store(canonical_path(location), storage_options(table.store))


def _may_go(table: StoredIcebergTable, token: str, location: str) -> bool:
    """Whether no snapshot of the table has a file of a commit.

    The commit's own snapshot may have expired since, and its files be live in later ones, so the
    files of all snapshots are looked at. Of a table that is gone or has moved nothing is known.
    """
    opened = table.opened()
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


def _key(table: str, token: str) -> str:
    return (
        f"{FOLDER}/{layout.check_component('table', table)}/pending/"
        f"{layout.check_component('commit', token)}.json"
    )
