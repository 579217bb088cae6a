"""Tables that queries make: the storage root knows of them, and no catalog file.

A format of such tables derives `StoredFormat`. It finds its tables by listing the storage root, and
their versions say all that catalogs and commands show. The rows of a table need not be in the
storage root: a format may keep there no more than the place of the table (`table_places`).
"""

from __future__ import annotations

import datetime
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stagecoach.infra.formats.capabilities import Expired, ExpiryRule
from stagecoach.infra.formats.moments import moment_of
from stagecoach.infra.formats.protocol import Access, Table, TableFormat
from stagecoach.infra.formats.publishing import PublishTarget, ResultWriter
from stagecoach.infra.formats.snapshot import TableState
from stagecoach.infra.formats.staged_version import StagedVersion, id_of
from stagecoach.infra.formats.stored_version import StoredVersion
from stagecoach.infra.storage.listing import StoredObject
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.types import Field
from stagecoach.planner.versioned_names import TableVersion


class NotStagedError(CatalogError):
    """What is asked for is not staged."""


def merge_outdated(table: str, staged_id: str, problem: object) -> str:
    """Return why a merge that is staged cannot be published as it is.

    Args:
        table: Name of the table.
        staged_id: `StagedVersion.id`.
        problem: What has changed.
    """
    return (
        f"table '{table}' has changed since the merge '{staged_id}' was staged ({problem}), and "
        "may have other rows with its keys by now; discard it, and run its query again"
    )


class StoredTable(Table):
    """A table that queries make, opened."""

    format_name: str
    """Name of its format."""

    @property
    @abstractmethod
    def location(self) -> str:
        """Canonical URI of its folder."""

    @property
    @abstractmethod
    def uri(self) -> str:
        """URI of its folder as the storage root spells it."""

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
    def staged(self) -> Sequence[StagedVersion]:
        """Return what is written and waits to be published, oldest first.

        Raises:
            TableVersionError: The record of what is staged is damaged.
            StorageError: The store failed.
        """

    @abstractmethod
    def staged_state(self, staged_id: str) -> TableState:
        """Return what the table would be if something staged were published now.

        A merge is shown as that of the version on which it was made, whatever has followed.

        Args:
            staged_id: `StagedVersion.id`; empty for the newest.

        Raises:
            NotStagedError: Nothing of the kind is staged.
            CatalogError: The version on which a merge was made is not kept any more.
            PublishError: The table does not take it any more.
            StorageError: The store failed.
        """

    @abstractmethod
    def publish_staged(self, staged_id: str) -> StoredVersion:
        """Publish something staged, on the table as it is now.

        Raises:
            NotStagedError: Nothing of the kind is staged.
            PublishError: The table does not take it any more, or is not at the version on which a
                merge was made; it stays staged.
            StorageError: The store failed; may be called again.
        """

    @abstractmethod
    def discard_staged(self, staged_id: str) -> None:
        """Forget something staged; what is not there is forgotten already. gc removes its files.

        Raises:
            PublishError: It is being published at this moment.
            StorageError: The store failed; may be called again.
        """

    def not_staged(self, staged_id: str) -> NotStagedError:
        """Return the error of something that is not staged."""
        problem = f"'{staged_id}' is not staged" if staged_id else "nothing is staged"
        return NotStagedError(f"{problem}; `stagecoach tables show --staged` lists what is")

    def at(self, version: TableVersion) -> TableState:
        """Read what is staged, the version of a number, or the newest that a moment had."""
        if (staged := id_of(version)) is not None:
            return self.staged_state(staged)
        if version.kind == "version":
            wanted = version.value
            found = next((v for v in self.kept_versions() if str(v.number) == wanted), None)
        else:
            moment = moment_of(version)
            found = next(
                (
                    v
                    for v in self.kept_versions()
                    if datetime.datetime.fromisoformat(v.committed_at) <= moment
                ),
                None,
            )
        if found is None or not found.has_data:
            problem = "has no data" if found is not None else "is not kept"
            raise CatalogError(
                f"{version} {problem}; `stagecoach tables show --versions` lists them"
            )
        return self.state_of(found)

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

    folder: str
    """Folder of the storage root with a folder for each table; no other format uses it."""

    has_namespaces: bool = False
    """Whether the name of a table may have several parts, separated by dots."""

    output_keys: tuple[str, ...] = ()
    """Keys that a query's `output` may have besides `format`, `table` and `mode`."""

    takes_merges: bool = False
    """Whether results are published with mode `merge`: `result_writer` gives a `MergeWriter`."""

    def table_names(self, store: ObjectStore) -> Sequence[str]:
        """Return the names of all tables of the format in a storage root.

        Raises:
            StorageError: The store refused.
        """
        return store.folders(self.folder)

    @abstractmethod
    def stored(self, store: ObjectStore, name: str, access: Access) -> StoredTable:
        """Return a table, without reading anything; it need not exist yet."""

    def declare_output(self, table: str, given: Mapping[str, Any], folder: str) -> dict[str, Any]:
        """Check what a query says of where its result goes.

        Args:
            table: Name of the table.
            given: Those of `output_keys` that are given.
            folder: The folder of the query's file, where relative paths start; empty for none.

        Returns:
            `PublishTarget.place`: plain data without secrets.

        Raises:
            OutputError: A key is missing or its value is not valid.
        """
        return {}

    def table_columns(
        self, columns: Sequence[Field], partition_by: Sequence[str] = ()
    ) -> tuple[Field, ...]:
        """Return the columns of a table as its readers see them.

        Args:
            columns: Of the result, which `check_columns` has accepted.
            partition_by: Those whose values tell files apart.
        """
        return tuple(columns)

    @abstractmethod
    def check_columns(self, columns: Sequence[Field], partition_by: Sequence[str] = ()) -> None:
        """Look whether a result with these columns can be a table; needs no data.

        Args:
            columns: Of the result.
            partition_by: Those whose values tell files apart.

        Raises:
            PublishError: It cannot.
        """

    @abstractmethod
    def result_writer(
        self,
        store: ObjectStore,
        target: PublishTarget,
        columns: Sequence[Field],
        *,
        fingerprint: str,
        run_id: str,
    ) -> ResultWriter:
        """Return a writer of a result.

        Args:
            store: The storage root.
            target: The table, and what becomes of the rows that are there.
            columns: The result's columns.
            fingerprint: Identity of the rows: they are published once only.
            run_id: The run.

        Raises:
            PublishError: The columns do not fit the target.
        """

    def preload(self) -> None:
        """Import what writing takes; called by a process of which others are forked."""
        return

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
