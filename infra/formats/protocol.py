"""What a table format is: the seam between tables and everything that plans, runs and keeps them.

A table goes through five steps, and each has its place here:

    catalog.yaml ──declare──▶ TableSource ──open──▶ Table ──state──▶ TableState
                                                                    │        │
                                               TableInfo for planning        TableSnapshot of a run
                                                                                      │ plan_scan
                      what an engine reads ◀──bind── share of the units ◀── ScanPlan ─┘

1. `TableFormat.declare` checks what the catalog file says of a table beyond its location.
2. `TableFormat.open` returns the table. Nothing is read yet.
3. `Table.state` reads the schema, the statistics and the files of one version: the newest, or an
   older one for time travel. A table may have a schema and no data.
4. `TableFormat.plan_scan` takes the filters of a fragment and returns units with rows, bytes and
   deletes. It works on the run's snapshot alone, so that every process of a run plans the same
   scan: bounds and deletes are those of `DataFile`, ids of columns those of `TableSnapshot`,
   and what only the format knows is `TableSnapshot.detail`.
5. `ScanPlan.bind` turns a task's share of the units into what an engine reads: `ScanInput` for
   Parquet files, or a `FormatInput` of the format's own.

A table that can be written has a `TableWriter`: files are staged, then published under a commit
token or discarded. Publishing the same token twice has the effect of publishing it once. What else
a table offers (gc, verification, appends by users, compaction) is in `capabilities`; formats of
tables that queries make derive `stored.StoredFormat`.

A format is a folder in `stagecoach.infra.formats`, listed in `names`; nothing else names a format.
Most methods have defaults: a read-only format over files implements `open`, `plan_scan`,
`Table.state` and `Table.entries`. `docs/contributor-guide/table-formats.md` walks through one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from stagecoach.infra.formats.file_scan import needed_files
from stagecoach.infra.formats.requests import ScanRequest
from stagecoach.infra.formats.snapshot import TableSnapshot, TableState
from stagecoach.infra.formats.units import ScanSlice, ScanUnit
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.storage.object_store import ObjectStore, StorageOptions
from stagecoach.infra.storage.table_files import FileEntry
from stagecoach.planner.catalog import ColumnNotes, TableInfo
from stagecoach.planner.errors import CatalogError

if TYPE_CHECKING:
    import pyarrow as pa

    from stagecoach.infra.formats.capabilities import (
        Appends,
        Compacts,
        Expires,
        Infers,
        ShowsFiles,
        Verifies,
    )
    from stagecoach.infra.integrity.errors import DamagedFileError
    from stagecoach.infra.reading.format_input import TableInput

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class TableSource:
    """A table as the catalog file declares it.

    Attributes:
        name: Name as the catalog file spells it.
        location: Canonical location: an absolute path or a URL; a file, a folder or a glob.
        format: Name of the format.
        declaration: What the format's `declare` made of the format's own keys.
    """

    name: str
    location: str
    format: str = "parquet"
    declaration: Any = None


@dataclass(frozen=True)
class Access:
    """How the tables of a catalog are reached.

    Args:
        options: How to reach storage.
    """

    options: StorageOptions = field(default_factory=StorageOptions)
    _kept: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def keep(self, name: str, make: Callable[[], T]) -> T:
        """Return a value that all tables of the catalog share, making it when it is first needed.

        Args:
            name: Names the value, with the name of the format in front.
            make: Makes it.
        """
        if name not in self._kept:
            self._kept.setdefault(name, make())
        found: T = self._kept[name]
        return found


class TableWriter(Protocol):
    """Rows on their way into a table: nothing is visible until `publish` returns."""

    def stage(self, rows: Any) -> int:
        """Write rows to storage, out of readers' sight, and return how many there were."""
        ...

    def publish(self) -> int:
        """Make all staged rows visible, all or none, and return the number of the new version.

        Idempotent: after a failure whose outcome is unknown it may be called again.
        """
        ...

    def discard(self) -> None:
        """Remove what was staged; nothing of it was or becomes visible."""
        ...


class Table(ABC):
    """A table of the catalog, opened."""

    @abstractmethod
    def state(self, version: int | None = None) -> TableState:
        """Read the newest version, or an older one where the format keeps versions.

        Raises:
            CatalogError: The table cannot be used, or there is no such version.
            StorageError: The storage refused.
        """

    def planned(self) -> TableInfo:
        """Return what the planner is told; without data if the columns are declared.

        Raises:
            CatalogError: The table cannot be used.
            StorageError: The storage refused.
        """
        return self.state().info

    def notes(self) -> Mapping[str, ColumnNotes]:
        """Return what the catalog file declares of columns besides their types, by name."""
        return {}

    @abstractmethod
    def entries(self) -> tuple[FileEntry, ...]:
        """List what changes when the table's rows change, without opening any file.

        Raises:
            CatalogError: There is no file of the table.
            StorageError: The storage refused.
        """

    def metadata(self) -> Mapping[str, Callable[[], pa.Table]]:
        """Return the metadata tables by name: every format has `files`."""
        return {"files": lambda: files_table(self.state().snapshot.files)}

    def writer(self, token: str) -> TableWriter:
        """Return a writer.

        Args:
            token: Identity of the commit: publishing it a second time changes nothing.

        Raises:
            CatalogError: Tables of this format are only read.
        """
        raise CatalogError(f"a {type(self).__name__} can only be read; it has no writer")

    def expires(self) -> Expires | None:
        """Return what garbage collection asks; None if it has nothing to remove of such tables."""
        return None

    def verifies(self) -> Verifies | None:
        """Return what verification asks; None if nothing is known of what was written."""
        return None

    def appends(self) -> Appends | None:
        """Return the table as users create it and append to it; None if they do not."""
        return None

    def compacts(self) -> Compacts | None:
        """Return the table to compaction; None if it has nothing to merge."""
        return None

    def infers(self) -> Infers | None:
        """Return what tells Spark where to find the columns; None if they are known otherwise."""
        return None

    def shows_files(self) -> ShowsFiles | None:
        """Return what shows the files of the table one by one; None for nothing to tell."""
        return None


class ScanPlan(Protocol):
    """A scan, planned."""

    @property
    def units(self) -> Sequence[ScanUnit]:
        """What tasks share out, without units that the filters rule out."""
        ...

    def bind(self, share: ScanSlice) -> TableInput:
        """Return what a task reads, given its share of the units."""
        ...


class TableFormat(ABC):
    """A table format; one object for all its tables."""

    name: str
    """The format's name in `TableSnapshot.format` and `TableInfo.format`."""

    keys: tuple[str, ...] = ()
    """Keys of a table in the catalog file, besides `location`, `kind` and `format`."""

    file_kind: str = ""
    """What Dagster shows the files of its tables as, such as `parquet`; empty for nothing."""

    written_as: str = ""
    """What a catalog file says of a table that users create and append to, for messages."""

    needs_folder: bool = False
    """Whether the location must be one folder, which is the table's own."""

    def declare(self, place: str, body: Mapping[Any, Any]) -> Any:
        """Check the format's own keys of a table in the catalog file.

        Args:
            place: Where the table stands, for messages.
            body: The table's mapping.

        Returns:
            `TableSource.declaration`.

        Raises:
            CatalogError: A key is missing or its value is not valid.
        """
        return None

    @abstractmethod
    def open(self, source: TableSource, access: Access) -> Table:
        """Return the table, without reading anything."""

    @abstractmethod
    def plan_scan(self, request: ScanRequest, table: TableSnapshot) -> ScanPlan:
        """Plan a scan of a table in the run's snapshot.

        Raises:
            CatalogError: The table is no longer what the plan was made for.
        """

    def scanned(
        self, request: ScanRequest | None, table: TableSnapshot
    ) -> Sequence[Sequence[object]]:
        """Return what decides the rows of a scan, for the fingerprint of its stage.

        Two scans with equal values must give equal rows. What the filters rule out may be left
        out, so that it can change without a stage being computed again.

        Args:
            request: The scan; None for all rows.
            table: The table.
        """
        files = table.files if request is None else needed_files(request, table)
        found: list[list[object]] = []
        if table.field_ids:
            names = [c.name for c in table.columns] if request is None else request.leaf.source
            found.append([table.field_id(name) for name in names])
        for file in files:
            found.append([file.uri, file.num_bytes, file.version, file.footer_checksum])
            if file.deletes is not None:
                found.append([file.deletes.to_dict()])
        return found

    def unique_key(self, table: TableSnapshot) -> tuple[str, ...]:
        """Return `TableInfo.unique_key` of a table in a run's snapshot."""
        return ()

    def detail_to_json(self, detail: Any) -> dict[str, Any]:
        """Return `TableSnapshot.detail` as plain data, merged into that of the table.

        By default the detail must be plain data itself.
        """
        return {} if detail is None else {"detail": detail}

    def detail_from_json(self, body: Mapping[str, Any], *, is_current: bool) -> Any:
        """Return the detail that `detail_to_json` described.

        Args:
            body: All plain data of the table.
            is_current: Whether this version of Stagecoach wrote it.
        """
        return body.get("detail")

    def explain_scan(self, request: ScanRequest, info: TableInfo, *, details: bool) -> str:
        """Return how the scan would be read now, for `EXPLAIN`; empty for nothing to tell.

        Args:
            request: The scan; parameters may have no values.
            info: The table now.
            details: Whether to show everything.
        """
        return ""

    def locate_damage(
        self, error: DamagedFileError, table: TableSnapshot, uri: str, store: ObjectStore
    ) -> DamagedFileError:
        """Return the error of a damaged file with its table, and what can be done about it.

        Args:
            error: What was found.
            table: The table.
            uri: The file, as the snapshot spells it.
            store: The storage root of the run.
        """
        return error.located(
            f"table '{table.table}'", "restore the file from a copy, or write it again"
        )


def files_table(files: Sequence[DataFile]) -> pa.Table:
    """Return the metadata table of files: one row for each."""
    import pyarrow as pa

    columns = {
        "uri": pa.array([f.uri for f in files], pa.string()),
        "num_rows": pa.array([f.num_rows for f in files], pa.int64()),
        "num_bytes": pa.array([f.num_bytes for f in files], pa.int64()),
        "version": pa.array([f.version for f in files], pa.string()),
        "partition": pa.array([list(f.partition) for f in files], pa.list_(pa.string())),
    }
    return pa.table(columns)
