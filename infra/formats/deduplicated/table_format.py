"""Deduplicated tables as a table format: appended chunks, showing the latest row of each key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from stagecoach.infra.formats.deduplicated.declaration import (
    DECLARATION_KEYS,
    KIND,
    Declaration,
    read_declaration,
)
from stagecoach.infra.formats.protocol import (
    Access,
    ScanPlan,
    Table,
    TableFormat,
    TableSource,
    TableWriter,
)
from stagecoach.infra.formats.requests import ScanRequest
from stagecoach.infra.formats.snapshot import TableSnapshot, TableState
from stagecoach.infra.host.recent_cache import RecentCache
from stagecoach.infra.integrity.errors import DamagedFileError
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.storage.table_files import FileEntry
from stagecoach.planner.catalog import TableInfo
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.formats.deduplicated.chunk import Chunk, ColumnRange, DedupState, DedupTable
from stagecoach.planner.plan.encoding import encode
from stagecoach.planner.plan.serde import decode, stored_classes
from stagecoach.planner.plan.stages import FORMAT_VERSION

if TYPE_CHECKING:  # it imports numpy and more, which planning does without
    import pyarrow as pa

    from stagecoach.infra.formats.deduplicated.operations import ChunkOperations
    from stagecoach.infra.formats.deduplicated.table import ChunkTable
    from stagecoach.infra.formats.deduplicated.version import ChunkTableVersion

_CLASSES = stored_classes(Chunk, ColumnRange, DedupTable)

# By bytes of JSON, of which a chunk of ten columns has about 2,000.
_STATES: RecentCache[TableState] = RecentCache(max_entries=8, max_cost=64 << 20)


@dataclass(frozen=True)
class DeduplicatedTable(Table):
    """A deduplicated table of the catalog."""

    source: TableSource
    access: Access

    @property
    def chunks(self) -> ChunkTable:
        """The table, to be written or compacted."""
        from stagecoach.infra.formats.deduplicated.table import ChunkTable

        options = self.access.options
        if options.fsync == "commit":
            # What is appended cannot be computed again as a shuffle can.
            options = replace(options, fsync="all")
        declaration: Declaration = self.source.declaration
        return ChunkTable(self.source.name, open_store(self.source.location, options), declaration)

    def state(self, version: int | None = None) -> TableState:
        """Read a version; it tells all that there is to know."""
        table = self.chunks
        found = table.read() if version is None else table.log.version(version)
        # A token is never used again, whatever becomes of the location.
        key = self.source.name, self.source.location, found.token
        return _STATES.get(
            key, partial(_state, table.store, found), lambda made: len(made.snapshot.json_text)
        )

    def metadata(self) -> Mapping[str, Callable[[], pa.Table]]:
        """Return `files`, and `versions`: one row for each that is kept."""
        return {**super().metadata(), "versions": self._versions}

    def writer(self, token: str) -> TableWriter:
        """Return a writer that takes lists of files or tables."""
        from stagecoach.infra.formats.deduplicated.table import ChunkAppend

        return ChunkAppend(self.chunks, token, options=self.access.options)

    def expires(self) -> ChunkOperations:
        """Return the table to garbage collection."""
        return self._operations()

    def verifies(self) -> ChunkOperations:
        """Return the table to verification."""
        return self._operations()

    def appends(self) -> ChunkOperations:
        """Return the table to those who write it."""
        return self._operations()

    def compacts(self) -> ChunkOperations:
        """Return the table to compaction."""
        return self._operations()

    def shows_files(self) -> ChunkOperations:
        """Return what shows the chunks."""
        return self._operations()

    def _operations(self) -> ChunkOperations:
        from stagecoach.infra.formats.deduplicated.operations import ChunkOperations

        return ChunkOperations(self.chunks)

    def _versions(self) -> pa.Table:
        import pyarrow as pa

        log = self.chunks.log
        found = [log.version(number) for number in log.numbers()]
        columns = {
            "version": pa.array([v.number for v in found], pa.int64()),
            "committed_at": pa.array([v.committed_at for v in found], pa.string()),
            "operation": pa.array([str(v.operation) for v in found], pa.string()),
            "num_rows": pa.array([v.num_rows for v in found], pa.int64()),
            "num_files": pa.array([len(v.chunks) for v in found], pa.int64()),
        }
        return pa.table(columns)

    def entries(self) -> tuple[FileEntry, ...]:
        """Return one entry, which changes when rows are appended, not when they are compacted."""
        appended = self.chunks.read().next_sequence
        return (FileEntry(uri=self.source.location, num_bytes=0, version=f"{appended}"),)


def _state(store: ObjectStore, version: ChunkTableVersion) -> TableState:
    from stagecoach.infra.formats.deduplicated.view import chunk_table_info

    info = chunk_table_info(store, version)
    chunks: tuple[Chunk, ...] = info.detail.chunks if isinstance(info.detail, DedupState) else ()
    snapshot = TableSnapshot(
        table=info.name,
        columns=info.columns,
        files=tuple(map(_identity, chunks)),
        native_reason=info.native_reason,
        format=KIND,
        detail=info.detail,
    )
    return TableState(info, snapshot)


def _identity(chunk: Chunk) -> DataFile:
    """The identity of a chunk's file, which never changes: its name is enough."""
    return DataFile(
        uri=chunk.uri,
        num_bytes=chunk.num_bytes,
        version=chunk.file_version,
        num_rows=chunk.num_rows,
        row_groups=chunk.row_groups,
        footer_checksum="",
    )


class DeduplicatedFormat(TableFormat):
    """Chunks that are appended, and compared with each other when they are read."""

    name = KIND
    file_kind = "parquet"
    keys = DECLARATION_KEYS
    written_as = f"'kind: {KIND}' and a 'primary_key'"
    needs_folder = True

    def declare(self, place: str, body: Mapping[Any, Any]) -> Declaration:
        """Check key and roles of columns."""
        return read_declaration(place, body)

    def open(self, source: TableSource, access: Access) -> Table:
        """Return the table."""
        return DeduplicatedTable(source, access)

    def plan_scan(self, request: ScanRequest, table: TableSnapshot) -> ScanPlan:
        """Leave out chunks, and group those that must be compared with each other."""
        from stagecoach.infra.formats.deduplicated.scan import plan_chunk_scan

        return plan_chunk_scan(request, table)

    def scanned(
        self, request: ScanRequest | None, table: TableSnapshot
    ) -> Sequence[Sequence[object]]:
        """Return the chunks, and what decides which of their rows are shown: key and sequences."""
        from stagecoach.infra.formats.deduplicated.scan import pruned_chunks

        chunks = table.detail.chunks if request is None else pruned_chunks(request, table)
        files = [[c.uri, c.num_bytes, c.file_version, c.sequence] for c in chunks]
        return [[encode(table.detail.table)], *files]

    def unique_key(self, table: TableSnapshot) -> tuple[str, ...]:
        """Return the primary key."""
        state: DedupState = table.detail
        return state.table.primary_key

    def detail_to_json(self, detail: DedupState) -> dict[str, Any]:
        """Return the declaration and the chunks."""
        return {"dedup": encode(detail.table), "chunks": encode(detail.chunks)}

    def detail_from_json(self, body: Mapping[str, Any], *, is_current: bool) -> DedupState:
        """Return the state of the table."""
        # Chunks of older snapshots have no checksums, as plans of older formats lack fields.
        version = FORMAT_VERSION if is_current else 1
        return DedupState(
            decode(body["dedup"], classes=_CLASSES), decode(body["chunks"], version, _CLASSES)
        )

    def explain_scan(self, request: ScanRequest, info: TableInfo, *, details: bool) -> str:
        """Return which chunks are compared with each other, and why."""
        from stagecoach.infra.formats.deduplicated.explain import scan_text

        return scan_text(request, info, details=details)

    def locate_damage(
        self, error: DamagedFileError, table: TableSnapshot, uri: str, store: ObjectStore
    ) -> DamagedFileError:
        """Return the error with the table; nothing can compute its rows again."""
        return error.located(
            f"table '{table.table}'", "restore the file from a copy; nothing else has its rows"
        )


FORMAT = DeduplicatedFormat()


class _Opens(Protocol):
    """A catalog."""

    def open(self, name: str) -> Table: ...


def chunk_table(catalog: _Opens, name: str) -> ChunkTable:
    """Return a deduplicated table of a catalog.

    Raises:
        CatalogError: There is no such table, or it is of another format.
    """
    found = catalog.open(name)
    if not isinstance(found, DeduplicatedTable):
        raise CatalogError(f"table {name!r} is not {KIND}")
    return found.chunks
