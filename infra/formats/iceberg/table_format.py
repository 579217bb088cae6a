"""Iceberg tables as a table format.

    catalog ─▶ metadata file ─▶ snapshot ─▶ manifests ─▶ data files, deletes, metrics
                                   │
                       pinned in the run's snapshot

Planning reads metadata and manifests, and opens no data file. Tasks find the columns of a data file
by the field ids in its footer. What a snapshot consists of never changes, so it is read once in a
process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stagecoach.infra.formats.iceberg.declaration import IcebergSource, read_output, read_source
from stagecoach.infra.formats.iceberg.result_columns import check_iceberg_columns, iceberg_columns
from stagecoach.infra.formats.iceberg.stored_table import FOLDER, StoredIcebergTable
from stagecoach.infra.formats.lake_tables.stored_table import LakeFormat
from stagecoach.infra.formats.moments import moment_of
from stagecoach.infra.formats.protocol import Access, ScanPlan, Table, TableSource
from stagecoach.infra.formats.publishing import PublishTarget, ResultWriter
from stagecoach.infra.formats.requests import ScanRequest
from stagecoach.infra.formats.snapshot import TableSnapshot, TableState
from stagecoach.infra.host.recent_cache import RecentCache
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.storage.table_files import FileEntry
from stagecoach.planner.catalog import ColumnNotes
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.types import Field
from stagecoach.planner.versioned_names import TableVersion

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import Table as OpenedTable
    from pyiceberg.table.snapshots import Snapshot

    from stagecoach.infra.formats.iceberg.writer import IcebergWriter

_STATES: RecentCache[TableState] = RecentCache(max_entries=64, max_cost=64 << 20)


@dataclass(frozen=True)
class IcebergTable(Table):
    """An Iceberg table."""

    source: TableSource
    access: Access

    def state(self, version: int | None = None) -> TableState:
        """Read the manifests of the current snapshot, or of the snapshot with an id."""
        table = self._open()
        if version is None:
            return self._state(table, table.current_snapshot())
        found = table.snapshot_by_id(version)
        if found is None:
            raise CatalogError(f"table {self.source.name!r} has no snapshot {version}")
        return self._state(table, found)

    def at(self, version: TableVersion) -> TableState:
        """Read the snapshot with an id, of a branch or tag, or that was current at a moment.

        A branch is read with the table's present columns, all others with those of the snapshot.
        """
        from pyiceberg.table.refs import SnapshotRefType

        table = self._open()
        if version.kind == "timestamp":
            moment = moment_of(version)
            found = table.snapshot_as_of_timestamp(math.floor(moment.timestamp() * 1000))
            return self._state(table, self._known(found, version), own_schema=True)
        reference = table.refs().get(version.value)
        if reference is not None:
            named = table.snapshot_by_id(reference.snapshot_id)
            is_branch = reference.snapshot_ref_type == SnapshotRefType.BRANCH
            return self._state(table, self._known(named, version), own_schema=not is_branch)
        found = table.snapshot_by_id(int(version.value)) if version.value.isdigit() else None
        return self._state(table, self._known(found, version), own_schema=True)

    def _known(self, found: Snapshot | None, version: TableVersion) -> Snapshot:
        if found is None:
            raise CatalogError(
                f"table '{self.source.name}' has no snapshot, branch or tag for {version}"
            )
        return found

    def notes(self) -> Mapping[str, ColumnNotes]:
        """Return the comments of columns, and which of them are required."""
        return self.state().info.notes

    def entries(self) -> tuple[FileEntry, ...]:
        """Return one entry, which changes when the table's rows change.

        Compaction makes a snapshot with the same rows, which does not count.
        """
        from pyiceberg.table.snapshots import Operation

        table = self._open()
        snapshot = table.current_snapshot()
        while snapshot is not None and snapshot.parent_snapshot_id is not None:
            if snapshot.summary is None or snapshot.summary.operation != Operation.REPLACE:
                break
            parent = table.snapshot_by_id(snapshot.parent_snapshot_id)
            if parent is None:
                break
            snapshot = parent
        version = "" if snapshot is None else str(snapshot.snapshot_id)
        return (FileEntry(uri=self.source.location, num_bytes=0, version=version),)

    def metadata(self) -> Mapping[str, Callable[[], pa.Table]]:
        """Return `files`, `snapshots`, `history` and `refs`."""
        from stagecoach.infra.formats.iceberg import metadata_tables as made

        return {
            **super().metadata(),
            "files": lambda: made.files(self._open()),
            "snapshots": lambda: made.snapshots(self._open()),
            "history": lambda: made.history(self._open()),
            "refs": lambda: made.refs(self._open()),
        }

    def _open(self) -> OpenedTable:
        from stagecoach.infra.formats.iceberg.catalogs import open_table

        kept: dict[str, Any] = self.access.keep("iceberg.catalogs", dict)
        declared: IcebergSource = self.source.declaration
        source = self.source
        return open_table(declared, source.location, source.folder, self.access.options, kept)

    def _state(
        self, table: OpenedTable, snapshot: Snapshot | None, *, own_schema: bool = False
    ) -> TableState:
        from stagecoach.infra.formats.iceberg.state import table_state

        number = None if snapshot is None else snapshot.snapshot_id
        # The metadata file has the schema, which may change without a snapshot.
        key = (self.source.name, table.metadata_location, number, own_schema)
        known = table.schemas()
        schema = None
        if own_schema and snapshot is not None and snapshot.schema_id is not None:
            schema = known.get(snapshot.schema_id)
        try:
            return _STATES.get(
                key,
                lambda: table_state(self.source.name, table, snapshot, schema),
                lambda made: len(made.snapshot.json_text),
            )
        except CatalogError as error:
            raise CatalogError(f"table {self.source.name!r}: {error}") from error


class IcebergFormat(LakeFormat):
    """Iceberg tables, of other writers and of queries."""

    name = "iceberg"
    file_kind = "iceberg"
    keys = ("table", "catalog")
    folder = FOLDER
    has_namespaces = True
    output_keys = ("catalog", "partition_by")
    takes_merges = True

    def declare(self, place: str, body: Mapping[Any, Any]) -> IcebergSource:
        """Check where the table is."""
        return read_source(place, body)

    def located(self, declaration: IcebergSource) -> str:
        """Return the catalog and the table's name in it."""
        return declaration.place

    def open(self, source: TableSource, access: Access) -> Table:
        """Return the table."""
        return IcebergTable(source, access)

    def plan_scan(self, request: ScanRequest, table: TableSnapshot) -> ScanPlan:
        """Leave out files by metrics and by their partitions."""
        from stagecoach.infra.formats.iceberg.scan import IcebergScan

        return IcebergScan(request, table)

    def scanned(
        self, request: ScanRequest | None, table: TableSnapshot
    ) -> Sequence[Sequence[object]]:
        """Return the data files with their deletes, and the columns by their field ids."""
        from stagecoach.infra.formats.iceberg.scan import needed_files
        from stagecoach.infra.formats.mapped_files.scan import read_columns

        files = table.files if request is None else needed_files(request, table)
        found: list[Sequence[object]] = [
            [column.to_list() for column in read_columns(request, table)]
        ]
        found += super().scanned(None, replace(table, files=tuple(files), field_ids=()))
        return found

    def declare_output(self, table: str, given: Mapping[str, Any], folder: str) -> dict[str, Any]:
        """Check the catalog and the table's name in it."""
        return read_output(table, given.get("catalog"), folder)

    def stored(self, store: ObjectStore, name: str, access: Access) -> StoredIcebergTable:
        """Return a table that a query publishes."""
        return StoredIcebergTable(store, name, access, self.open, _writer_type)

    def table_columns(
        self, columns: Sequence[Field], partition_by: Sequence[str] = ()
    ) -> tuple[Field, ...]:
        """Return the columns in the types that Iceberg has."""
        return iceberg_columns(columns)

    def check_columns(self, columns: Sequence[Field], partition_by: Sequence[str] = ()) -> None:
        """Look whether Iceberg has such types."""
        check_iceberg_columns(columns, partition_by)

    def result_writer(
        self,
        store: ObjectStore,
        target: PublishTarget,
        columns: Sequence[Field],
        *,
        fingerprint: str,
        run_id: str,
    ) -> ResultWriter:
        """Return a writer of data files and one snapshot."""
        return _writer_type()(store, target, columns, fingerprint=fingerprint, run_id=run_id)


def _writer_type() -> type[IcebergWriter]:
    from stagecoach.infra.formats.iceberg.writer import IcebergWriter  # numpy with it

    return IcebergWriter


FORMAT = IcebergFormat()
