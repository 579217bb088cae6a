"""Tables of a lake that queries publish, as the storage root knows them: by the place of each.

<folder>/<table>/place.json                     where the table is
<folder>/<table>/pending/<token>.json           a commit under way, staged ones among them
<folder>/<table>/staged/versions/<n>.json       which of them are staged
"""

from __future__ import annotations

import datetime
import uuid
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stagecoach.infra.formats.capabilities import Expired, ExpiryRule
from stagecoach.infra.formats.expiry import READER_GRACE
from stagecoach.infra.formats.lake_tables.leftovers import find_leftovers, held
from stagecoach.infra.formats.lake_tables.old_records import find_old_records
from stagecoach.infra.formats.lake_tables.staged_log import StagedCommit, StagedLog
from stagecoach.infra.formats.protocol import Access, Table, TableSource
from stagecoach.infra.formats.publishing import PublishError, TableChangedError
from stagecoach.infra.formats.snapshot import TableState
from stagecoach.infra.formats.staged_version import StagedVersion, id_of
from stagecoach.infra.formats.stored import (
    NotStagedError,
    RootExpiry,
    StoredFormat,
    StoredTable,
    merge_outdated,
)
from stagecoach.infra.formats.stored_version import StoredVersion
from stagecoach.infra.formats.table_places import read_place
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.listing import store_now
from stagecoach.infra.storage.object_store import ObjectStore, StorageOptions
from stagecoach.infra.storage.table_files import FileEntry
from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.catalog import ColumnNotes
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.versioned_names import TableVersion

if TYPE_CHECKING:
    import pyarrow as pa

    from stagecoach.infra.formats.lake_tables.staging_writer import StagingLakeWriter


@dataclass(frozen=True)
class LakeTable(StoredTable):
    """A table of a lake that a query publishes.

    Args:
        store: The storage root.
        name: Name of the table.
        access: Keeps catalogs open.
        reader: Makes the table that reads, given where it is.
        writer_type: Gives the class that makes the commits which are staged.
    """

    store: ObjectStore
    name: str
    access: Access
    reader: Callable[[TableSource, Access], Table]
    writer_type: Callable[[], type[StagingLakeWriter[Any, Any]]]
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
        """Read what is staged, or the version that the format finds by such words."""
        staged = id_of(version)
        if staged is None:
            return self._reading.at(version)
        try:
            return self.staged_state(staged)
        except NotStagedError as error:
            try:
                return self._reading.at(version)  # a branch or a tag may have such a name
            except CatalogError:
                raise error from None

    def staged(self) -> Sequence[StagedVersion]:
        """Return the commits that are staged."""
        return [commit.shown(self.name) for commit in self._waiting()]

    def staged_state(self, staged_id: str) -> TableState:
        """Return the table with a commit that is staged; a merge is that of the version it read."""
        return self._writer_of(staged_id).staged_state()

    def publish_staged(self, staged_id: str) -> StoredVersion:
        """Make a commit that is staged, on the table as it is."""
        writer = self._writer_of(staged_id)
        try:
            writer.publish()
        except TableChangedError as error:
            raise PublishError(merge_outdated(self.name, staged_id, error)) from error
        return writer.version

    def discard_staged(self, staged_id: str) -> None:
        """Forget a commit that is staged; gc removes its files.

        Raises:
            PublishError: It is being published.
            StorageError: The store failed; may be called again.
        """
        self.staged_log.discard(staged_id)

    @property
    def staged_log(self) -> StagedLog:
        """Which commits are staged."""
        return StagedLog(self.store, self.folder, self.name)

    def _waiting(self) -> list[StagedCommit]:
        """The commits that are staged, but those that were made by a process that died then."""
        if self.source is None:
            return []  # nobody has asked for such a table
        return [
            commit
            for commit in self.staged_log.commits()
            if not commit.claims or not self._is_made(commit)
        ]

    def _is_made(self, commit: StagedCommit) -> bool:
        record = held(self.store, self.folder, self.name, commit.token)
        return record is None or not self.is_lost(commit.token, record["location"])

    def _writer_of(self, staged_id: str) -> StagingLakeWriter[Any, Any]:
        found = (c for c in reversed(self._waiting()) if staged_id in ("", c.id))
        commit = next(found, None)
        if commit is None:
            raise self.not_staged(staged_id)
        return self.writer_type().of_staged(self.store, self.name, commit)

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
        return self.reader(source, replace(self.access, options=StorageOptions.of(self.store)))


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
        tables = [self.stored(store, name, access) for name in self.table_names(store)]
        if not tables:
            return RootExpiry()
        now = rule.now or store_now(store, layout.run_prefix(f"clock-{uuid.uuid4()}"))
        limit = now - min(rule.older_than, READER_GRACE)
        found: list[Expired] = []
        for table in tables:
            found += find_leftovers(table, orphan_limit)
            if (records := find_old_records(table, limit)) is not None:
                found.append(records)
        return RootExpiry(expired=tuple(found))
