"""The table snapshot of a run: which files its stages read, decided once.

`runs/<run>/snapshot.json` is written by whichever process comes first and read by all others, so
all stages of a run, and a re-execution of it, read the same data. What only a table's format can
make sense of is the snapshot's `detail`, which the format turns into JSON and back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, cast

from stagecoach.infra.formats import names
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.storage import checked_json, layout
from stagecoach.infra.storage.at_once import at_once
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore
from stagecoach.infra.storage.rereads import reread
from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.catalog import TableInfo
from stagecoach.planner.errors import CatalogError, GraphFormatError
from stagecoach.planner.plan.encoding import encode
from stagecoach.planner.plan.serde import decode
from stagecoach.planner.types import Field

SNAPSHOT_VERSION = 4
READABLE_VERSIONS = (2, 3, 4)
"""Version 2 has no bounds of columns: no file is left out by them. Versions 2 and 3 have no
checksum of their own, and none of column chunks."""


@dataclass(frozen=True, kw_only=True)
class TableSnapshot:
    """The files of a table at the time of the snapshot.

    Attributes:
        table: Name as the catalog spells it.
        columns: Columns in file order, then partition columns.
        files: Files in an order of the format's; a format may have tables without files.
        native_reason: Why DuckDB must not read the files, or None where it may.
        version: Number of the version, for a table that a query publishes; None for any other.
        format: Name of the table's format.
        detail: What only that format knows of the table, such as a key.
        field_ids: The id of each column, which it keeps when it is renamed; empty for a format
            whose columns go by name.
    """

    table: str
    columns: tuple[Field, ...]
    files: tuple[DataFile, ...]
    native_reason: str | None = None
    version: int | None = None
    format: str = "parquet"
    detail: Any = None
    field_ids: tuple[int, ...] = ()

    def field_id(self, name: str) -> int | None:
        """Return the id of a column, or None if it has none."""
        pairs = zip(self.columns, self.field_ids, strict=False)  # one may be empty
        return next((number for column, number in pairs if column.name == name), None)

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
    def json_text(self) -> bytes:
        """JSON of the table, as `Snapshot.to_json` has it: made once, it serves many runs."""
        return _table_to_json(self)


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

    def to_json(self) -> bytes:
        """Return JSON text that `from_json` turns into an equal snapshot."""
        parts = [b'{"format_version": %d, "tables": {' % SNAPSHOT_VERSION]
        for number, (name, table) in enumerate(sorted(self.tables.items())):
            parts += [b", " if number else b"", _dump(name), b": ", table.json_text]
        return checked_json.seal([*parts, b"}"])

    @classmethod
    def from_json(cls, text: bytes) -> Snapshot:
        """Return the snapshot that `to_json` wrote.

        Raises:
            CatalogError: The text is damaged or of another version.
        """
        try:
            body = checked_json.load(text, _file_from_json)
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


@dataclass(frozen=True)
class TableState:
    """One version of a table.

    Args:
        info: What the planner is told.
        snapshot: What a run keeps.
    """

    info: TableInfo
    snapshot: TableSnapshot

    def named(self, name: str) -> TableState:
        """Return the same version under another name."""
        return TableState(replace(self.info, name=name), replace(self.snapshot, table=name))


class SnapshotSource(Protocol):
    """A catalog whose tables can be read (`FileCatalog`, `PublishedCatalog`)."""

    def state(self, name: str) -> TableState:
        """Return the table as it is now."""
        ...


def take_snapshot(
    catalog: SnapshotSource, table_names: Iterable[str], store: ObjectStore | None = None
) -> Snapshot:
    """Return the files of the tables as they are now; a name given twice counts once.

    Args:
        catalog: Where the tables are looked up.
        table_names: The tables.
        store: The storage root; where it is far away, so are the tables, and they are looked up
            at the same time. The catalog must be safe to use from several threads then.

    Raises:
        CatalogError: A table is unknown or its files cannot be used.
    """
    names = sorted({name.lower() for name in table_names})
    calls = [partial(catalog.state, name) for name in names]
    states = [call() for call in calls] if store is None else at_once(store, calls)
    return Snapshot({state.snapshot.table: state.snapshot for state in states})


def load_or_take(
    store: ObjectStore,
    run_id: str,
    catalog: SnapshotSource,
    table_names: Sequence[str],
    *,
    alone: bool = False,
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
        alone: Whether no other process takes it, nor probably has.

    Raises:
        CatalogError: A table cannot be used, or the run's snapshot lacks one of them.
        StorageError: The storage refused.
    """
    key = layout.run_snapshot(run_id)

    def read() -> Snapshot:
        return Snapshot.from_json(store.read_bytes(key))

    taking: Callable[[], Snapshot] = partial(take_snapshot, catalog, table_names, store)
    with ExitStack() as held:
        if alone and not store.is_local:  # the tables are looked up while the store answers
            pool = held.enter_context(ThreadPoolExecutor(1, "snapshot"))
            taking = pool.submit(copy_context().run, taking).result
        try:
            snapshot = reread(store, key, read, (CatalogError,))
        except ObjectMissingError:
            snapshot = taking()
            text = snapshot.to_json()
            is_ours = store.put_if_absent(key, text, looked=True)
            # Read back even after a write: a racing process may have won.
            if not (is_ours and alone) and store.read_bytes(key) != text:
                snapshot = reread(store, key, read, (CatalogError,))
    for name in table_names:
        snapshot.table(name)
    return snapshot


def _dump(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=False).encode()


def _table_to_json(table: TableSnapshot) -> bytes:
    """JSON text of the table; its files, of which there may be a million, one by one."""
    body: dict[str, Any] = {
        "columns": encode(table.columns),
        "native_reason": table.native_reason,
        "table": table.table,
        "version": table.version,
    }
    if table.field_ids:
        body["field_ids"] = table.field_ids
    body |= names.stored_name(table.format)
    body |= _codec(table.format).detail_to_json(table.detail)
    files = b", ".join(_dump(file.to_json()) for file in table.files)
    return b'%b, "files": [%b]}' % (_dump(body)[:-1], files)


class _DetailCodec(Protocol):
    """What a snapshot needs of a format; see `stagecoach.infra.formats.protocol.TableFormat`."""

    def detail_to_json(self, detail: Any) -> dict[str, Any]: ...

    def detail_from_json(self, body: Mapping[str, Any], *, is_current: bool) -> Any: ...


def _codec(name: str) -> _DetailCodec:
    found = names.find(name)
    if found is None:
        raise ValueError(f"table format '{name}' not found (known formats: {names.known()})")
    return cast("_DetailCodec", found)


def _file_from_json(body: dict[str, Any]) -> dict[str, Any] | DataFile:
    """A file as soon as it is parsed: the dictionaries of all files would take twice the memory."""
    return DataFile.from_json(body) if "footer_checksum" in body else body


def _files_from_json(items: list[dict[str, Any] | DataFile]) -> Iterator[DataFile]:
    for item in items:
        # An object without that key is not a file; `from_json` says so.
        yield item if isinstance(item, DataFile) else DataFile.from_json(item)


def _table_from_json(body: dict[str, Any], version: int) -> TableSnapshot:
    name = names.name_of_stored(body)
    detail = _codec(name).detail_from_json(body, is_current=version == SNAPSHOT_VERSION)
    return TableSnapshot(
        table=body["table"],
        columns=decode(body["columns"]),
        files=tuple(_files_from_json(body["files"])),
        native_reason=body["native_reason"],
        version=body.get("version"),
        format=name,
        detail=detail,
        field_ids=tuple(body.get("field_ids", ())),
    )
