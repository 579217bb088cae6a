"""Base tables and tables that queries make as one catalog, for the planner and for runs.

The planner sees a published table as the query that makes it will leave it (`PlannedTable`),
whether or not it has been published, so a project can be planned before anything has run. A run
reads the newest version: its files by name, without a listing, and their footers from a cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from stagecoach.infra.catalog.each_once import EachOnce
from stagecoach.infra.formats.protocol import Access, TableSource
from stagecoach.infra.formats.publishing import column_difference
from stagecoach.infra.formats.registry import find_stored, result_format, stored_formats
from stagecoach.infra.formats.snapshot import TableState
from stagecoach.infra.formats.stored import StoredTable
from stagecoach.infra.formats.stored_version import StoredVersion
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.catalog import TableInfo, TableStats
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.syntax.macros.expand import Macros
from stagecoach.planner.types import Field
from stagecoach.planner.versioned_names import split_name, versioned_name

_GUESSED_ROW_BYTES = 64
_NONE: Mapping[str, str] = MappingProxyType({})


class TableCatalog(Protocol):
    """What planning and running need of a catalog: `FileCatalog`, `PublishedCatalog`."""

    def table(self, name: str) -> TableInfo | None:
        """The table of that name (case does not matter), or None; the same until `refresh`."""
        ...

    def table_names(self) -> Sequence[str]:
        """All names."""
        ...

    def function(self, name: str) -> ProjectFunction | None:
        """The project's function of that name, with the version of its code as it is now."""
        ...

    def function_names(self) -> Sequence[str]:
        """The names of all functions."""
        ...

    @property
    def code_path(self) -> tuple[str, ...]:
        """Folders in which workers look for the functions before Python's own path."""
        ...

    @property
    def macros(self) -> Macros:
        """The macros of the project."""
        ...

    def source(self, name: str) -> TableSource:
        """Where the table is."""
        ...

    def state(self, name: str) -> TableState:
        """The table as it is now."""
        ...

    def refresh(self) -> None:
        """Forget what was read."""
        ...


@dataclass(frozen=True, kw_only=True)
class PlannedTable:
    """A table that a query of the project publishes.

    Attributes:
        name: Name of the table.
        columns: Columns of the query's result, in its order; None for whatever is published.
        partition_by: Those whose values tell files apart.
        estimated_rows: Rows that the planner expects, where nothing is published; or None.
        format: Name of the table's format; empty for the default one, or if it is not known.
    """

    name: str
    columns: tuple[Field, ...] | None = None
    partition_by: tuple[str, ...] = ()
    estimated_rows: int | None = None
    format: str = ""

    @property
    def table_columns(self) -> tuple[Field, ...] | None:
        """The columns as readers of the table see them."""
        if self.columns is None:
            return None
        return result_format(self.format).table_columns(self.columns, self.partition_by)


class PublishedCatalog:
    """Base tables and published tables; implements `TableCatalog`.

    Safe to use from several threads. What `table` returns stays the same until `refresh`, so one
    planning sees one state; `state` always looks at the newest version.

    Args:
        base: The base tables.
        store: The storage root, where published tables are.
        planned: The tables that queries publish.
        access: Keeps what is known already of the tables' files.
        use_statistics: Whether `table` looks at what is published for its statistics. Without it
            planning touches no data of these tables.
        staged: Tables that are read as they would be if something staged were published: by name
            in lower case the identity of what is staged.

    Raises:
        CatalogError: Two tables have the same name.
    """

    def __init__(
        self,
        base: TableCatalog,
        store: ObjectStore,
        planned: Sequence[PlannedTable],
        *,
        access: Access | None = None,
        use_statistics: bool = True,
        staged: Mapping[str, str] = _NONE,
    ) -> None:
        self._base = base
        self._store = store
        self._planned = {table.name.lower(): table for table in planned}
        self._access = access or Access()
        self._use_statistics = use_statistics
        self._staged = staged
        self._tables: EachOnce[TableInfo] = EachOnce()
        _check_names(base.table_names(), [table.name for table in planned])

    def __repr__(self) -> str:
        return f"PublishedCatalog({self._base!r}, {len(self._planned)} published tables)"

    def table(self, name: str) -> TableInfo | None:
        """Return the table of that name (case does not matter), or None.

        Raises:
            CatalogError: The table is known but its files cannot be used.
            StorageError: The storage refused.
        """
        planned = self._published(name)
        if planned is None:
            return self._base.table(name)

        def read() -> TableInfo:
            is_newest = split_name(name)[1] is None
            return self._plan(planned) if is_newest else self._at(planned, name).info

        return self._tables.get(name.lower(), read)

    def table_names(self) -> Sequence[str]:
        """Return all names, the base tables first."""
        return [*self._base.table_names(), *(table.name for table in self._planned.values())]

    def function(self, name: str) -> ProjectFunction | None:
        """Return the project's function of that name, or None."""
        return self._base.function(name)

    def function_names(self) -> Sequence[str]:
        """Return the names of all functions."""
        return self._base.function_names()

    @property
    def code_path(self) -> tuple[str, ...]:
        """Folders in which workers look for the functions."""
        return self._base.code_path

    @property
    def macros(self) -> Macros:
        """The macros of the project."""
        return self._base.macros

    def source(self, name: str) -> TableSource:
        """Return where the table is.

        Raises:
            CatalogError: There is no such table.
        """
        planned = self._published(name)
        if planned is None:
            return self._base.source(name)
        table = self._opened(planned)
        return TableSource(name=planned.name, location=table.location, format=table.format_name)

    def state(self, name: str) -> TableState:
        """Return the table and its files, sorted by URI, as they are now.

        Raises:
            CatalogError: There is no such table, it has no data yet, its columns are not those
                that are planned, or its files cannot be used.
            TableVersionError: Its newest version is damaged.
            StorageError: The storage refused.
        """
        planned = self._published(name)
        if planned is None:
            return self._base.state(name)
        table = self._opened(planned)
        if split_name(name)[1] is not None:
            return self._at(planned, name)
        if (staged := self._staged.get(name.lower())) is not None:
            return table.staged_state(staged)
        version = table.current()
        if version is None or not version.has_data:
            raise CatalogError(f"table '{planned.name}' has no data yet; materialize it first")
        if (difference := _difference(planned, version)) is not None:
            raise CatalogError(
                f"table '{planned.name}': {difference} (version {version.number} there, the query "
                f"that makes it here); materialize '{planned.name}' first, as it is defined now"
            )
        return table.state_of(version)

    def stored(self, name: str) -> StoredTable:
        """Return a table that queries make.

        Raises:
            CatalogError: There is no such table.
        """
        planned = self._published(name)
        if planned is None:
            raise CatalogError(f"no query makes a table '{name}'")
        return self._opened(planned)

    def refresh(self) -> None:
        """Forget what was read of the tables' files."""
        self._tables.clear()
        self._base.refresh()

    def _published(self, name: str) -> PlannedTable | None:
        """The published table of that name; None for one of the base tables, or none at all."""
        return self._planned.get(split_name(name)[0].lower())

    def _at(self, planned: PlannedTable, name: str) -> TableState:
        """A published table at the version that is in its name."""
        _, version = split_name(name)
        table = self._opened(planned)
        if version is None:
            return table.state()
        try:
            return table.at(version).named(versioned_name(planned.name, version))
        except CatalogError as error:
            raise CatalogError(f"table '{planned.name}': {error}") from error

    def _plan(self, planned: PlannedTable) -> TableInfo:
        """What the planner is told: the planned columns, with what statistics there are."""
        columns = planned.table_columns
        if columns is None or self._use_statistics:
            table = self._opened(planned)
            version = table.current()
            if version is not None and version.has_data and _difference(planned, version) is None:
                return table.state_of(version).info
        if columns is None:
            raise CatalogError(
                f"table '{planned.name}' has no data yet, so its columns are not known; "
                "materialize it first"
            )
        rows = planned.estimated_rows
        stats = (
            None if rows is None else TableStats(rows, rows * _GUESSED_ROW_BYTES, is_estimate=True)
        )
        name = planned.format or result_format().name  # what it will be; nothing is read
        return TableInfo(name=planned.name, columns=columns, stats=stats, format=name)

    def _opened(self, planned: PlannedTable) -> StoredTable:
        """The table; a plan does not tell its format, so the storage is asked if it could vary."""
        if planned.format or len(stored_formats()) == 1:
            return result_format(planned.format).stored(self._store, planned.name, self._access)
        return find_stored(self._store, planned.name, self._access)


def _difference(planned: PlannedTable, version: StoredVersion) -> str | None:
    columns = planned.table_columns
    return None if columns is None else column_difference(version.columns, columns)


def _check_names(base: Sequence[str], planned: Sequence[str]) -> None:
    known = {name.lower(): name for name in base}
    seen: dict[str, str] = {}
    for name in planned:
        if name.lower() in known:
            raise CatalogError(
                f"table '{known[name.lower()]}' of the catalog has the name of a table that a "
                "query publishes; rename one (output.table)"
            )
        other = seen.setdefault(name.lower(), name)
        if other is not name:
            raise CatalogError(
                f"two queries publish table '{name}'; rename one of them (output.table)"
            )
