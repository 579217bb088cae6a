"""The table snapshot of a run: which files its stages read, decided once.

In: a catalog and the tables of a query. Out: `runs/<run>/snapshot.json`, written by whichever
process comes first and read by all others, so that all stages of a run, and a re-execution of it,
read the same data.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol, runtime_checkable

from infra.catalog.file_bounds import StoredBounds, stored_bounds
from infra.catalog.footers import FileFooter
from infra.catalog.partitions import partition_texts
from infra.recent_cache import RecentCache
from infra.storage import checked_json, layout
from infra.storage.object_store import ObjectMissingError, ObjectStore
from infra.storage.rereads import reread
from planner.catalog import TableInfo
from planner.chunks.chunk import Chunk, DedupTable
from planner.encoding import encode
from planner.errors import CatalogError, GraphFormatError
from planner.serde import decode
from planner.stages import FORMAT_VERSION
from planner.types import Field

SNAPSHOT_VERSION = 4
READABLE_VERSIONS = (2, 3, 4)
"""Version 2 has no bounds of columns: no file is left out by them. Versions 2 and 3 have no
checksum of their own, and none of column chunks."""


@dataclass(frozen=True, kw_only=True)
class FileIdentity:
    """One file of a table at the time of the snapshot.

    Attributes:
        uri: Canonical absolute URI: a plain absolute path, or `s3://bucket/key`.
        num_bytes: Size in bytes.
        version: Which version of the file it is (see `infra.catalog.file_identity`); empty for
            files of published tables and chunks, which are never written twice.
        num_rows: Rows of the file.
        row_groups: Rows of each row group; they add up to `num_rows`.
        footer_checksum: SHA-256 of the Parquet footer, 32 hex digits.
        partition: Values of the table's partition columns as its folders spell them, None for NULL.
        bounds: What the footer says of each stored column, in file order; none where unknown.
        checksums: Those of its column chunks, packed (`infra.integrity.checksums`); empty for a
            user's own file.
    """

    uri: str
    num_bytes: int
    version: str
    num_rows: int
    row_groups: tuple[int, ...]
    footer_checksum: str
    partition: tuple[str | None, ...] = ()
    bounds: tuple[StoredBounds, ...] = ()
    checksums: str = ""

    @classmethod
    def from_footer(cls, footer: FileFooter) -> FileIdentity:
        """Return the identity of the file that a footer was read from."""
        return cls(
            uri=footer.entry.uri,
            num_bytes=footer.entry.num_bytes,
            version=footer.entry.version,
            num_rows=footer.num_rows,
            row_groups=footer.row_groups,
            footer_checksum=footer.checksum,
            partition=partition_texts(footer.entry),
            bounds=stored_bounds(footer.columns, footer.summaries),
            checksums=footer.column_checksums,
        )

    @classmethod
    def from_chunk(cls, chunk: Chunk) -> FileIdentity:
        """Return the identity of a chunk's file, which never changes: its name is enough."""
        return cls(
            uri=chunk.uri,
            num_bytes=chunk.num_bytes,
            version=chunk.file_version,
            num_rows=chunk.num_rows,
            row_groups=chunk.row_groups,
            footer_checksum="",
        )


@dataclass(frozen=True, kw_only=True)
class TableSnapshot:
    """The files of a table at the time of the snapshot.

    Attributes:
        table: Name as the catalog spells it.
        columns: Columns in file order, then partition columns.
        files: Files, sorted by URI, at least one; those of chunks in the order of these.
        native_reason: Why DuckDB must not read the files, or None where it may.
        version: Number of the version of a published table; None for a base table.
        dedup: Key and other declarations of a deduplicated table; None for any other.
        chunks: Its chunks: one for each of the files, which may be none.
    """

    table: str
    columns: tuple[Field, ...]
    files: tuple[FileIdentity, ...]
    native_reason: str | None = None
    version: int | None = None
    dedup: DedupTable | None = None
    chunks: tuple[Chunk, ...] = ()

    @property
    def partition_columns(self) -> tuple[Field, ...]:
        """Columns that come from the names of folders."""
        if not self.files:
            return ()
        return self.columns[len(self.columns) - len(self.files[0].partition) :]

    @property
    def num_rows(self) -> int:
        """Rows of all files."""
        return sum(file.num_rows for file in self.files)

    @property
    def num_bytes(self) -> int:
        """Size of all files in bytes."""
        return sum(file.num_bytes for file in self.files)

    @cached_property
    def folders(self) -> frozenset[str]:
        """The folders of local files, without those of partitions: what is above them."""
        found = {(file.uri.rpartition("/")[0], len(file.partition)) for file in self.files}
        local = ((folder, depth) for folder, depth in found if "://" not in folder)
        return frozenset(folder.rsplit("/", depth)[0] or "/" for folder, depth in local)

    @cached_property
    def json_text(self) -> str:
        """JSON of the table, as `Snapshot.to_json` has it."""
        return _dump(_table_to_json(self))


@dataclass(frozen=True)
class Snapshot:
    """The tables that the stages of one run read.

    Args:
        tables: Tables by name, as the catalog spells it.
    """

    tables: Mapping[str, TableSnapshot]

    def table(self, name: str) -> TableSnapshot:
        """Return the table of that name; case does not matter.

        Raises:
            CatalogError: The snapshot was taken without that table.
        """
        for known, table in self.tables.items():
            if known.lower() == name.lower():
                return table
        raise CatalogError(
            f"table {name!r} is not in the snapshot of this run (it has: "
            f"{', '.join(self.tables) or 'none'}); start a new run"
        )

    def to_json(self) -> str:
        """Return JSON text that `from_json` turns into an equal snapshot."""
        # Put together from texts of tables: that of a large one, made once, serves many runs.
        items = (f"{_dump(name)}: {table.json_text}" for name, table in sorted(self.tables.items()))
        text = f'{{"format_version": {SNAPSHOT_VERSION}, "tables": {{{", ".join(items)}}}}}'
        return checked_json.seal(text)

    @classmethod
    def from_json(cls, text: str | bytes) -> Snapshot:
        """Return the snapshot that `to_json` wrote.

        Raises:
            CatalogError: The text is damaged or of another version.
        """
        try:
            body = checked_json.load(text.encode() if isinstance(text, str) else text)
            version = body["format_version"]
            if version in READABLE_VERSIONS:
                if body.keys() != {"format_version", "tables"}:
                    raise ValueError(f"it has the keys {', '.join(body)}")
                items = body["tables"].items()
                return cls({name: _table_from_json(table, version) for name, table in items})
        except (ValueError, KeyError, TypeError, AttributeError, GraphFormatError) as error:
            raise CatalogError(
                f"the snapshot of the run is damaged ({error}); start a new run"
            ) from error
        raise CatalogError(
            f"the snapshot of the run has format version {version}, this Stagecoach reads "
            f"{SNAPSHOT_VERSION}; start a new run"
        )


class SnapshotSource(Protocol):
    """A catalog that can list the files of its tables (`FileCatalog`)."""

    def read(self, name: str) -> tuple[TableInfo, tuple[FileFooter, ...]]:
        """Return the table and its files as they are now."""
        ...


@runtime_checkable
class VersionedSource(Protocol):
    """A catalog with tables that Stagecoach publishes (`PublishedCatalog`)."""

    def read_version(self, name: str) -> tuple[TableInfo, tuple[FileFooter, ...], int | None]:
        """Return the table, its files and the number of its version, None for a base table."""
        ...


def take_snapshot(catalog: SnapshotSource, table_names: Iterable[str]) -> Snapshot:
    """Return the files of the tables as they are now; a name given twice counts once.

    Raises:
        CatalogError: A table is unknown or its files cannot be used.
    """
    tables: dict[str, TableSnapshot] = {}
    for name in sorted({name.lower() for name in table_names}):
        version: int | None = None
        if isinstance(catalog, VersionedSource):
            table, footers, version = catalog.read_version(name)
        else:
            table, footers = catalog.read(name)
        tables[table.name] = _table_snapshot(table, footers, version)
    return Snapshot(tables)


# By bytes of JSON, of which a chunk of ten columns has about 2,000.
_CHUNK_TABLES: RecentCache[tuple[TableInfo, TableSnapshot]] = RecentCache(
    max_entries=8, max_cost=64 << 20
)


def _table_snapshot(
    table: TableInfo, footers: Sequence[FileFooter], version: int | None
) -> TableSnapshot:
    def make() -> TableSnapshot:
        return TableSnapshot(
            table=table.name,
            columns=table.columns,
            files=(
                *map(FileIdentity.from_footer, footers),
                *map(FileIdentity.from_chunk, table.chunks),
            ),
            native_reason=table.native_reason,
            version=version,
            dedup=table.dedup,
            chunks=table.chunks,
        )

    if table.dedup is None:
        return make()
    # A catalog gives the same object for the same version of a deduplicated table, and it has all
    # that there is to know. It is kept, so its id is not given to another.
    _, found = _CHUNK_TABLES.get(
        id(table), lambda: (table, make()), lambda made: len(made[1].json_text)
    )
    return found


def load_or_take(
    store: ObjectStore, run_id: str, catalog: SnapshotSource, table_names: Sequence[str]
) -> Snapshot:
    """Return the run's snapshot, taking it if no other process has.

    A re-execution passes the id of its root run. On a store that ignores `If-None-Match`, two
    processes that take it at the same instant may briefly see different ones; then fingerprints
    differ and stages are computed twice, from whole and consistent inputs each.

    Args:
        store: The storage root.
        run_id: The (root) run.
        catalog: Where the tables are looked up if this process is the first.
        table_names: All tables of the query, not only of one stage.

    Raises:
        CatalogError: A table cannot be used, or the run's snapshot lacks one of them.
        StorageError: The storage refused.
    """
    key = layout.run_snapshot(run_id)

    def read() -> Snapshot:
        return Snapshot.from_json(store.read_bytes(key))

    try:
        snapshot = reread(store, key, read, (CatalogError,))
    except ObjectMissingError:
        taken = take_snapshot(catalog, table_names)
        text = taken.to_json().encode()
        store.put_if_absent(key, text)
        # Read back even after a write: a racing process may have won.
        found = store.read_bytes(key)
        snapshot = taken if found == text else reread(store, key, read, (CatalogError,))
    for name in table_names:
        snapshot.table(name)
    return snapshot


def _dump(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _table_to_json(table: TableSnapshot) -> dict[str, Any]:
    body = {
        "columns": encode(table.columns),
        "files": [dataclasses.asdict(file) for file in table.files],
        "native_reason": table.native_reason,
        "table": table.table,
        "version": table.version,
    }
    if table.dedup is not None:
        body |= {"dedup": encode(table.dedup), "chunks": encode(table.chunks)}
    return body


def _table_from_json(body: dict[str, Any], version: int) -> TableSnapshot:
    # Chunks of older snapshots have no checksums, as plans of older formats lack fields.
    decoded = partial(decode, version=FORMAT_VERSION if version == SNAPSHOT_VERSION else 1)
    files = (
        FileIdentity(
            **{
                **file,
                "row_groups": tuple(file["row_groups"]),
                "partition": tuple(file["partition"]),
                "bounds": tuple(tuple(b) for b in file.get("bounds", ())),
            }
        )
        for file in body["files"]
    )
    return TableSnapshot(
        table=body["table"],
        columns=decode(body["columns"]),
        files=tuple(files),
        native_reason=body["native_reason"],
        version=body.get("version"),
        dedup=decode(body["dedup"]) if "dedup" in body else None,
        chunks=decoded(body["chunks"]) if "dedup" in body else (),
    )
