"""Tables that queries make: they are in the storage root, and in no catalog file.

A format of such tables derives `StoredFormat`. It finds its tables by listing the storage root, and
their versions say all that catalogs and commands show.
"""

from __future__ import annotations

import datetime
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from stagecoach.infra.formats.capabilities import Expired, ExpiryRule
from stagecoach.infra.formats.protocol import Access, Table, TableFormat
from stagecoach.infra.formats.snapshot import TableState
from stagecoach.infra.storage.listing import StoredObject
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.types import Field


class StoredVersion(Protocol):
    """A version of a stored table."""

    @property
    def table(self) -> str:
        """Name of the table."""
        ...

    @property
    def number(self) -> int:
        """1 for the first commit; without gaps."""
        ...

    @property
    def committed_at(self) -> str:
        """When it was made, ISO 8601 in UTC."""
        ...

    @property
    def mode(self) -> str:
        """How it changed the table."""
        ...

    @property
    def run_id(self) -> str:
        """The run that made it; empty for none."""
        ...

    @property
    def columns(self) -> tuple[Field, ...]:
        """Columns as readers see them."""
        ...

    @property
    def has_data(self) -> bool:
        """Whether there is something to read, if only a schema."""
        ...

    @property
    def num_rows(self) -> int:
        """Rows."""
        ...

    @property
    def num_bytes(self) -> int:
        """Size of all files in bytes."""
        ...

    @property
    def num_files(self) -> int:
        """How many files it has."""
        ...

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """Dagster's partitions that have been published, sorted."""
        ...


class StoredTable(Table):
    """A table that queries make, opened."""

    @property
    @abstractmethod
    def location(self) -> str:
        """Canonical URI of its folder."""

    @abstractmethod
    def current(self) -> StoredVersion | None:
        """Return the newest version, or None where nothing was ever published.

        Raises:
            TableVersionError: The newest version is damaged.
            StorageError: The store failed.
        """

    @abstractmethod
    def kept_versions(self) -> Sequence[StoredVersion]:
        """Return the versions that are kept, newest first.

        Raises:
            TableVersionError: One is damaged.
            StorageError: The store failed.
        """

    @abstractmethod
    def state_of(self, version: StoredVersion) -> TableState:
        """Return what a version tells that `current` or `kept_versions` gave.

        Raises:
            CatalogError: Its files cannot be used.
            StorageError: The store failed.
        """

    @abstractmethod
    def clear(self) -> StoredVersion:
        """Commit a version without rows and columns, so that the table can begin anew.

        Raises:
            StorageError: The store failed.
        """


@dataclass(frozen=True)
class RootExpiry:
    """What may go of all tables of a format in a storage root.

    Args:
        expired: By table, without tables of which nothing may go.
        orphans: Files of commits that were lost, and left-over temporary files.
    """

    expired: tuple[Expired, ...] = ()
    orphans: tuple[StoredObject, ...] = ()


class StoredFormat(TableFormat):
    """A format of tables that queries make."""

    @abstractmethod
    def table_names(self, store: ObjectStore) -> Sequence[str]:
        """Return the names of all tables of the format in a storage root.

        Raises:
            StorageError: The store refused.
        """

    @abstractmethod
    def stored(self, store: ObjectStore, name: str, access: Access) -> StoredTable:
        """Return a table, without reading anything; it need not exist yet."""

    @abstractmethod
    def find_expired(
        self, store: ObjectStore, rule: ExpiryRule, orphan_limit: datetime.datetime
    ) -> RootExpiry:
        """Return what may go of all tables; one whose versions are damaged stays as it is.

        Args:
            store: The storage root.
            rule: What must stay.
            orphan_limit: Orphans that were written after this moment may be a commit under way.

        Raises:
            StorageError: The store failed.
        """
