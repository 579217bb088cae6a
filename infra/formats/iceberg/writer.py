"""Publishes a result in an Iceberg table, by one snapshot."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.iceberg.catalogs import (
    check_writable,
    create_table,
    find_table,
    translated,
)
from stagecoach.infra.formats.iceberg.commit import (
    commit,
    data_files,
    files_of_partitions,
    live_files,
)
from stagecoach.infra.formats.iceberg.publications import (
    past_commits,
    publication_of,
    version_of,
)
from stagecoach.infra.formats.iceberg.result_columns import (
    check_iceberg_columns,
    check_schema,
    iceberg_columns,
    new_schema,
    new_spec,
    spec_columns,
)
from stagecoach.infra.formats.iceberg.schema import table_columns
from stagecoach.infra.formats.iceberg.state import table_state
from stagecoach.infra.formats.iceberg.stored_table import FOLDER, data_location, source_of
from stagecoach.infra.formats.iceberg.write_plan import IcebergPlan
from stagecoach.infra.formats.lake_tables.publications import LakeVersion, Publication
from stagecoach.infra.formats.lake_tables.staging_writer import StagingLakeWriter
from stagecoach.infra.formats.lake_tables.writer import AddedFile
from stagecoach.infra.formats.mapped_files.paths import canonical_path
from stagecoach.infra.formats.snapshot import TableSnapshot, TableState
from stagecoach.infra.formats.table_places import write_place
from stagecoach.planner.cached_property import cached_property

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from stagecoach.infra.formats.iceberg.declaration import IcebergSource

log = logging.getLogger(__name__)


class IcebergWriter(StagingLakeWriter["Table", "Snapshot"]):
    """One commit of an Iceberg table."""

    folder = FOLDER

    def _check_columns(self) -> None:
        check_iceberg_columns(self._columns, self._target.partition_by)

    def _find_table(self) -> Table | None:
        table = find_table(self._source, self._options, self._catalogs)
        if table is not None:
            write_place(self._store, FOLDER, self._target.table, self._target.place)
        return table

    def _created(self) -> Table:
        target = self._target
        # Before the table, so that one that has rows is always known by its name.
        write_place(self._store, FOLDER, target.table, target.place)
        schema = new_schema(self._columns, dict(target.comments))
        spec = new_spec(schema, target.partition_by)
        return create_table(self._source, self._options, self._catalogs, schema, spec)

    def _check_fits(self, table: Table) -> None:
        check_writable(self._target.table, table)
        check_schema(self._target.table, table.schema(), self._columns)
        self._partition_by(table)

    def _check_removable(self, table: Table) -> None:
        if self._target.mode == "replace_partition":
            self._removed(table)  # a file that cannot be removed as a whole is told now

    def _new_plan(self, table: Table, token: str) -> IcebergPlan:
        schema, target = table.schema(), self._target
        return IcebergPlan(
            table=target.table,
            location=f"{data_location(table).rstrip('/')}/{token}",
            token=token,
            columns=self._columns,
            trees=table_columns(schema),
            required=tuple(i for i, field in enumerate(schema.fields) if field.required),
            partition_by=self._partition_by(table),
            partition_key=target.partition_keys[0] if target.partition_keys else None,
            row_keys=self._row_keys,
            target_bytes=target.target_file_bytes,
        )

    def _try(self, table: Table) -> bool:
        from pyiceberg.exceptions import CommitFailedException

        with translated(self._source.place):
            added = self._new_files(table)
            try:
                comments = dict(self._target.comments)
                commit(table, added, self._removed(table), self._published, comments)
            except CommitFailedException as error:
                log.info("table %s: another writer was first: %s", self._target.table, error)
                return False
        return True

    def _new_files(self, table: Table) -> list[DataFile]:
        """The files that the commit adds."""
        types = {field.name: field.dtype for field in iceberg_columns(self._columns)}
        names = self._partition_by(table)
        self._check_as_planned(table_columns(table.schema()), names)
        return data_files(table, self._described, [types[name] if name else None for name in names])

    def _state_with(self, table: Table) -> TableState:
        name, base = self._target.table, table.current_snapshot()
        if self._target.mode == "merge":
            base = None if self._base is None else table.snapshot_by_id(self._base)
            if base is None and self._base is not None:
                raise self._base_expired()
            removed: Collection[str] = self._rewritten
        else:
            removed = {canonical_path(file.file_path) for file in self._removed(table) or ()}
        with translated(self._source.place):
            return table_state(name, table, base, added=self._new_files(table), removed=removed)

    def _removed(self, table: Table) -> list[DataFile] | None:
        """The files that the commit removes; None for one that only adds."""
        target = self._target
        with translated(self._source.place):
            if target.mode == "replace":
                return list(live_files(table))
            if target.mode == "replace_partition" and self._row_keys is not None:
                column = iceberg_columns(self._columns)[self._row_keys.column]
                return files_of_partitions(table, target.table, column, self._row_keys)
            if self._rewritten:
                return self._replaced(table)
        return None

    def _replaced(self, table: Table) -> list[DataFile]:
        """The files that a merge replaces."""
        found = [f for f in live_files(table) if canonical_path(f.file_path) in self._rewritten]
        if len(found) != len(self._rewritten):
            raise StorageError(
                f"table '{self._target.table}': the manifests do not list each file once that the "
                "merge replaces; look at the table with the tool that manages it"
            )
        return found

    def _find(self, table: Table) -> Snapshot | None:
        return self._find_in(lambda: past_commits(table))

    def _newest(self, table: Table) -> int | None:
        snapshot = table.current_snapshot()
        return None if snapshot is None else int(snapshot.snapshot_id)

    def _snapshot_of(self, table: Table) -> TableSnapshot:
        with translated(self._source.place):
            return table_state(self._target.table, table, table.current_snapshot()).snapshot

    def _publication_of(self, commit: Snapshot) -> Publication | None:
        return publication_of(commit)

    def _version_of(self, table: Table, commit: Snapshot) -> LakeVersion:
        return version_of(self._target.table, commit, iceberg_columns(self._columns))

    def _number_of(self, commit: Snapshot) -> int:
        return int(commit.snapshot_id)

    def _added(self, table: Table, commit: Snapshot) -> tuple[AddedFile, ...]:
        from pyiceberg.manifest import ManifestEntryStatus

        with translated(self._source.place):
            found = [
                entry.data_file
                for manifest in commit.manifests(table.io)
                if manifest.added_snapshot_id == commit.snapshot_id
                for entry in manifest.fetch_manifest_entry(table.io)
                if entry.status == ManifestEntryStatus.ADDED and entry.data_file.content == 0
            ]
        files = (AddedFile(f.file_path, f.record_count, f.file_size_in_bytes) for f in found)
        return tuple(sorted(files, key=lambda file: file.path))

    def _partition_by(self, table: Table) -> tuple[str, ...]:
        target = self._target
        return spec_columns(target.table, table.schema(), table.spec(), target.partition_by)

    @property
    def _source(self) -> IcebergSource:
        return source_of(self._target.place)

    @cached_property
    def _catalogs(self) -> dict[str, Any]:
        """Catalogs that are open, by name."""
        return {}
