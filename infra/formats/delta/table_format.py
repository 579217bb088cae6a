"""Delta tables as a table format.

    _delta_log ──deltalake──▶ schema, live data files, statistics ─┐
              ──log_files──▶ deletion vectors, times               ├─▶ a version, pinned in the
                                                                   ┘   run's snapshot

Planning reads the log and opens no data file. Tasks find the columns of a data file by the names or
ids in its footer. What a version consists of never changes, so it is read once in a process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stagecoach.infra.formats.delta.output import output_location
from stagecoach.infra.formats.delta.result_columns import check_delta_columns
from stagecoach.infra.formats.delta.stored_table import FOLDER, StoredDeltaTable
from stagecoach.infra.formats.file_scan import needed_files
from stagecoach.infra.formats.lake_tables.stored_table import LakeFormat
from stagecoach.infra.formats.moments import moment_of
from stagecoach.infra.formats.protocol import Access, ScanPlan, Table, TableSource
from stagecoach.infra.formats.publishing import PublishTarget, ResultWriter
from stagecoach.infra.formats.requests import ScanRequest
from stagecoach.infra.formats.snapshot import TableSnapshot, TableState
from stagecoach.infra.host.recent_cache import RecentCache
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.storage.table_files import FileEntry, NoFilesError
from stagecoach.planner.catalog import ColumnNotes
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.types import Field
from stagecoach.planner.versioned_names import TableVersion

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable as OpenedTable

    from stagecoach.infra.formats.delta.writer import DeltaWriter

_STATES: RecentCache[TableState] = RecentCache(max_entries=64, max_cost=64 << 20)
# Operations that write other files with the same rows, or none.
_SAME_ROWS = frozenset({"OPTIMIZE", "VACUUM START", "VACUUM END"})


@dataclass(frozen=True)
class DeltaTable(Table):
    """A Delta table."""

    source: TableSource
    access: Access

    def state(self, version: int | None = None) -> TableState:
        """Read the log up to the newest version, or to one with a number."""
        if version is None:
            return self._state(self._open())
        from stagecoach.infra.formats.delta.log_files import commits, list_log

        known = commits(list_log(self.source.location, self.access.options))
        newest = max(known, default=-1)
        if version > newest:
            raise CatalogError(
                f"table {self.source.name!r} has no version {version}; its newest one is {newest}"
            )
        try:
            return self._state(self._open(version))
        except NoFilesError as error:
            raise CatalogError(
                f"table {self.source.name!r} no longer has version {version}: its log was cleaned "
                f"up below version {min(known)}"
            ) from error

    def at(self, version: TableVersion) -> TableState:
        """Read the version with a number, or that was the newest at a moment."""
        if version.kind == "version":
            return super().at(version)
        from stagecoach.infra.formats.delta.history import History
        from stagecoach.infra.formats.delta.log_files import list_log

        moment = moment_of(version)
        files = list_log(self.source.location, self.access.options)
        configuration = self._open().metadata().configuration
        found = History(files, configuration, self.access.options).as_of(moment)
        if found is None:
            raise CatalogError(f"table '{self.source.name}' has no version for {version}")
        return self._state(self._open(found))

    def notes(self) -> Mapping[str, ColumnNotes]:
        """Return the comments of columns, and which of them are required."""
        from stagecoach.infra.formats.delta.state import table_schema

        return table_schema(self._open()).notes

    def entries(self) -> tuple[FileEntry, ...]:
        """Return one entry, which changes when the table's rows change.

        Compaction and removal of old files make versions with the same rows, which do not count.
        """
        from stagecoach.infra.formats.delta.opening import translated

        table = self._open()
        version = table.version()
        with translated(self.source.location):
            for entry in table.history(limit=1):
                if entry.get("operation") in _SAME_ROWS:
                    version = self._last_change(table)
        identity = f"{table.metadata().id}.{version}"
        return (FileEntry(uri=self.source.location, num_bytes=0, version=identity),)

    def metadata(self) -> Mapping[str, Callable[[], pa.Table]]:
        """Return `files` and `history`."""
        from stagecoach.infra.formats.delta import metadata_tables as made

        where = self.source.location, self.access.options
        return {
            **super().metadata(),
            "files": lambda: made.files(self._open(), *where),
            "history": lambda: made.history(self._open(), *where),
        }

    def _last_change(self, table: OpenedTable) -> int:
        changes = (e["version"] for e in table.history() if e.get("operation") not in _SAME_ROWS)
        return next(changes, table.version())

    def _open(self, version: int | None = None) -> OpenedTable:
        from stagecoach.infra.formats.delta.opening import open_table

        try:
            return open_table(self.source.location, self.access.options, version)
        except NoFilesError as error:
            raise NoFilesError(f"table {self.source.name!r}: {error}") from error
        except CatalogError as error:
            raise CatalogError(f"table {self.source.name!r}: {error}") from error

    def _state(self, table: OpenedTable) -> TableState:
        from stagecoach.infra.formats.delta.state import table_state

        location, options = self.source.location, self.access.options
        # A table that was made anew has another id.
        key = (self.source.name, location, table.metadata().id, table.version())
        try:
            return _STATES.get(
                key,
                lambda: table_state(self.source.name, table, location, options),
                lambda made: len(made.snapshot.json_text),
            )
        except CatalogError as error:
            raise CatalogError(f"table {self.source.name!r}: {error}") from error


class DeltaFormat(LakeFormat):
    """Delta tables, of other writers and of queries."""

    name = "delta"
    file_kind = "delta"
    needs_folder = True
    folder = FOLDER
    output_keys = ("location", "partition_by")
    takes_merges = True

    def open(self, source: TableSource, access: Access) -> Table:
        """Return the table."""
        return DeltaTable(source, access)

    def plan_scan(self, request: ScanRequest, table: TableSnapshot) -> ScanPlan:
        """Leave out files by statistics and by their partitions."""
        from stagecoach.infra.formats.mapped_files.scan import MappedScan

        return MappedScan(request, table)

    def scanned(
        self, request: ScanRequest | None, table: TableSnapshot
    ) -> Sequence[Sequence[object]]:
        """Return the data files with their deletes and constants, and the columns by their ids."""
        from stagecoach.infra.formats.mapped_files.scan import constants_of, read_columns

        files = table.files if request is None else needed_files(request, table)
        found: list[Sequence[object]] = [
            [column.to_list() for column in read_columns(request, table)]
        ]
        found += super().scanned(None, replace(table, files=tuple(files), field_ids=()))
        found += [constants_of(file.uri, table) for file in files]
        return found

    def declare_output(self, table: str, given: Mapping[str, Any], folder: str) -> dict[str, Any]:
        """Check the folder of the table."""
        return {"location": output_location(given.get("location"), folder)}

    def stored(self, store: ObjectStore, name: str, access: Access) -> StoredDeltaTable:
        """Return a table that a query publishes."""
        return StoredDeltaTable(store, name, access, self.open, _writer_type)

    def check_columns(self, columns: Sequence[Field], partition_by: Sequence[str] = ()) -> None:
        """Look whether Delta has such types and names."""
        check_delta_columns(columns, partition_by)

    def result_writer(
        self,
        store: ObjectStore,
        target: PublishTarget,
        columns: Sequence[Field],
        *,
        fingerprint: str,
        run_id: str,
    ) -> ResultWriter:
        """Return a writer of data files and one entry of the log."""
        return _writer_type()(store, target, columns, fingerprint=fingerprint, run_id=run_id)


def _writer_type() -> type[DeltaWriter]:
    from stagecoach.infra.formats.delta.writer import DeltaWriter  # numpy with it

    return DeltaWriter


FORMAT = DeltaFormat()
