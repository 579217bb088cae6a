"""Published tables as a table format: numbered versions of immutable Parquet files.

They are read as any Parquet files are. What differs is that a version names the files, so nothing
is listed, and that each file's checksums and the run that wrote it are known.
"""

from __future__ import annotations

import datetime
import importlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from stagecoach.infra.formats.capabilities import Adopted, ExpiryRule, Verifies
from stagecoach.infra.formats.parquet_footers import FooterCache
from stagecoach.infra.formats.parquet_scan import ParquetScan, footer_cache
from stagecoach.infra.formats.protocol import (
    Access,
    ScanPlan,
    Table,
    TableSource,
    TableWriter,
)
from stagecoach.infra.formats.published import paths
from stagecoach.infra.formats.published.changes import apply_change
from stagecoach.infra.formats.published.log import (
    clear_table,
    discard_staged,
    publish_staged,
    read_current,
    read_version,
    version_numbers,
)
from stagecoach.infra.formats.published.staging import shown_staged, staged_change
from stagecoach.infra.formats.published.state import FORMAT_NAME, version_entries, version_state
from stagecoach.infra.formats.published.target import check_publishable, table_columns
from stagecoach.infra.formats.published.version import StagedChange, TableVersion
from stagecoach.infra.formats.publishing import (
    PublishError,
    PublishTarget,
    ResultWriter,
    TableChangedError,
)
from stagecoach.infra.formats.requests import ScanRequest
from stagecoach.infra.formats.snapshot import TableSnapshot, TableState
from stagecoach.infra.formats.staged_version import StagedVersion
from stagecoach.infra.formats.stored import (
    RootExpiry,
    StoredFormat,
    StoredTable,
    merge_outdated,
)
from stagecoach.infra.formats.stored_version import StoredVersion
from stagecoach.infra.integrity.errors import DamagedFileError
from stagecoach.infra.integrity.findings import Check
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore
from stagecoach.infra.storage.table_files import FileEntry, canonical_uri
from stagecoach.planner.errors import CatalogError, StagecoachError
from stagecoach.planner.types import Field

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PublishedTable(StoredTable):
    """A table that a query publishes.

    Args:
        store: The storage root.
        name: Name of the table.
        cache: Footers that are known already.
    """

    store: ObjectStore
    name: str
    cache: FooterCache = field(default_factory=FooterCache)
    format_name = FORMAT_NAME

    def state(self, version: int | None = None) -> TableState:
        """Read the newest version, or an older one that is kept."""
        if version is not None:
            return self.state_of(read_version(self.store, self.name, version))
        return self.state_of(self._readable())

    def writer(self, token: str) -> TableWriter:
        """Return a writer that appends anything with Arrow's C stream, such as a table."""
        from stagecoach.infra.formats.published.writer import PublishedAppend  # numpy with it

        return PublishedAppend(self.store, self.name, token)

    def verifies(self) -> Verifies:
        """Return the checks of the table."""
        return _Verified(self)

    @property
    def location(self) -> str:
        """The folder of the table."""
        return canonical_uri(self.store, paths.table_prefix(self.name))

    @property
    def uri(self) -> str:
        """The folder of the table as the storage root spells it."""
        return self.store.uri(paths.table_prefix(self.name))

    def current(self) -> TableVersion | None:
        """Return the newest version, or None where nothing was ever published."""
        return read_current(self.store, self.name)

    def kept_versions(self) -> Sequence[TableVersion]:
        """Return the versions that are kept, newest first; without those that only stage."""
        numbers = sorted(version_numbers(self.store, self.name), reverse=True)
        found = (read_version(self.store, self.name, number) for number in numbers)
        return [version for version in found if not version.is_quiet]

    def staged(self) -> Sequence[StagedVersion]:
        """Return what the newest version has staged."""
        current = self.current()
        return [shown_staged(self.name, item) for item in (current.staged if current else ())]

    def staged_state(self, staged_id: str) -> TableState:
        """Return the version that publishing would commit."""
        current = self.current()
        known = () if current is None else current.staged
        found = next((s for s in reversed(known) if staged_id in ("", s.id)), None)
        if found is None:
            raise self.not_staged(staged_id)
        change = staged_change(self.name, found, token=found.id, committed_at=found.staged_at)
        if found.mode != "merge" or current is None:
            return self.state_of(apply_change(current, change))
        merged = apply_change(self._base_of(found), change)
        return self.state_of(replace(merged, number=current.number + 1))

    def _base_of(self, merge: StagedChange) -> TableVersion | None:
        """The version on which a merge was made that is staged."""
        try:
            return read_version(self.store, self.name, merge.base) if merge.base else None
        except ObjectMissingError as error:
            raise CatalogError(
                f"version {merge.base}, on which the merge '{merge.id}' was staged, is not kept "
                "any more; discard it, and run its query again"
            ) from error

    def publish_staged(self, staged_id: str) -> TableVersion:
        """Commit what is staged on the newest version."""
        try:
            return publish_staged(self.store, self.name, staged_id)
        except TableChangedError as error:
            raise PublishError(merge_outdated(self.name, staged_id, error)) from error

    def discard_staged(self, staged_id: str) -> None:
        """Commit a version without it."""
        discard_staged(self.store, self.name, staged_id)

    def clear(self) -> TableVersion:
        """Commit a version without rows and columns."""
        return clear_table(self.store, self.name)

    def entries(self) -> tuple[FileEntry, ...]:
        """Return the files of the newest version."""
        return version_entries(self.store, self._readable())

    def state_of(self, version: StoredVersion) -> TableState:
        """Return what a version tells.

        Raises:
            CatalogError: A file is not the one that the version names, or cannot be used.
        """
        if not isinstance(version, TableVersion):
            raise TypeError(f"not a version of a published table: {version!r}")
        return version_state(self.store, version, self.name, self.cache)

    def _readable(self) -> TableVersion:
        version = self.current()
        if version is None or not version.has_data:
            raise CatalogError(
                f"table '{self.name}' is not in the catalog, and as a published table it has no "
                "data yet; correct the catalog, or run the query that writes it"
            )
        return version


@dataclass(frozen=True)
class _Verified:
    """A published table to verification."""

    table: PublishedTable

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def is_local(self) -> bool:
        return self.table.store.is_local

    def checks(self) -> Iterator[Check]:
        from stagecoach.infra.formats.published.checks import table_checks

        return table_checks(self.table.store, self.name)

    def adopt_checksums(self) -> Adopted | None:
        from stagecoach.infra.formats.published.adoption import adopt_checksums

        return adopt_checksums(self.table.store, self.name)


class PublishedFormat(StoredFormat):
    """Parquet files of a version that a run published."""

    name = FORMAT_NAME
    file_kind = "parquet"
    folder = paths.RESULTS_ROOT
    output_keys = ("partition_by", "keep_versions")
    takes_merges = True

    def open(self, source: TableSource, access: Access) -> Table:
        """Return the table; its location is the storage root."""
        from stagecoach.infra.storage.stores import open_store

        store = open_store(source.location, access.options)
        return PublishedTable(store, source.name, footer_cache(access))

    def plan_scan(self, request: ScanRequest, table: TableSnapshot) -> ScanPlan:
        """Leave out files by the filters of the fragment."""
        return ParquetScan(request, table)

    def stored(self, store: ObjectStore, name: str, access: Access) -> PublishedTable:
        """Return a table of a storage root."""
        return PublishedTable(store, name, footer_cache(access))

    def check_columns(self, columns: Sequence[Field], partition_by: Sequence[str] = ()) -> None:
        """Look whether names, types and folders can be those of Parquet files."""
        check_publishable(columns, partition_by)

    def table_columns(
        self, columns: Sequence[Field], partition_by: Sequence[str] = ()
    ) -> tuple[Field, ...]:
        """Return the columns of the files, then those of the folders."""
        return table_columns(columns, partition_by)

    def result_writer(
        self,
        store: ObjectStore,
        target: PublishTarget,
        columns: Sequence[Field],
        *,
        fingerprint: str,
        run_id: str,
    ) -> ResultWriter:
        """Return a writer of Parquet files and one version."""
        from stagecoach.infra.formats.published.writer import PublishedWriter  # numpy with it

        return PublishedWriter(store, target, columns, fingerprint=fingerprint, run_id=run_id)

    def preload(self) -> None:
        """Import the writer, and numpy with it."""
        importlib.import_module("stagecoach.infra.formats.published.writer")

    def find_expired(
        self, store: ObjectStore, rule: ExpiryRule, orphan_limit: datetime.datetime
    ) -> RootExpiry:
        """Return the versions and files that may go."""
        from stagecoach.infra.formats.published.expiry import find_expired

        return find_expired(store, rule, orphan_limit)

    def locate_damage(
        self, error: DamagedFileError, table: TableSnapshot, uri: str, store: ObjectStore
    ) -> DamagedFileError:
        """Return the error with the version, and the run that wrote the file."""
        run_id = _run_of(table, uri, store)
        made = f"run {run_id} wrote it: " if run_id else ""
        return error.located(
            f"table '{table.table}', version {table.version}",
            f"{made}restore the file from a copy, or clear the table "
            f"(stagecoach tables clear {table.table}) and publish all of it again",
        )


FORMAT = PublishedFormat()


def _run_of(table: TableSnapshot, uri: str, store: ObjectStore) -> str:
    """The run that published a file; empty if that is not known any more."""
    if table.version is None:
        return ""
    try:
        version = read_version(store, table.table, table.version)
    except StagecoachError as error:
        log.debug("the version of table %s cannot be read: %s", table.table, error)
        return ""
    for file in version.files:
        if uri.endswith(f"/{file.path}"):
            parts = (
                part.run_id
                for part in version.parts
                if (part.partition_key, part.fingerprint) == (file.partition_key, file.fingerprint)
                or part.version == file.version  # a merge also rewrites files of other partitions
            )
            return next(parts, "")
    return ""
