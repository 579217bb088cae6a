"""Plain Parquet files as a table format: a file, a folder or a glob, with partition folders or not.

The schema and the statistics come from the footers. Files may have different columns, which are
merged, unless the catalog file declares the table's columns (`file_schemas`). A scan leaves out
files whose partition values or bounds rule them out; tasks leave out row groups likewise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from stagecoach.infra.formats.column_declaration import DeclaredColumns, read_columns
from stagecoach.infra.formats.parquet.file_schemas import (
    check_not_null,
    footer_of_table,
    merged_columns,
    with_storage,
)
from stagecoach.infra.formats.parquet_footers import read_footers, table_info
from stagecoach.infra.formats.parquet_scan import ParquetScan, footer_cache, footers_snapshot
from stagecoach.infra.formats.partitions import declared_partitions, partition_fields
from stagecoach.infra.formats.protocol import Access, ScanPlan, Table, TableFormat, TableSource
from stagecoach.infra.formats.requests import ScanRequest
from stagecoach.infra.formats.snapshot import TableSnapshot, TableState
from stagecoach.infra.storage.table_files import FileEntry, NoFilesError, is_remote, list_files
from stagecoach.planner.catalog import ColumnNotes, TableInfo
from stagecoach.planner.errors import CatalogError


@dataclass(frozen=True)
class ParquetTable(Table):
    """Parquet files at a location."""

    source: TableSource
    access: Access

    def state(self, version: int | None = None) -> TableState:
        """List the files and read their footers, as far as these are not known."""
        if version is not None:
            raise CatalogError(f"table {self.source.name!r}: Parquet files have no versions")
        try:
            return self._state()
        except NoFilesError as error:
            raise NoFilesError(f"table {self.source.name!r}: {error}") from error
        except CatalogError as error:
            raise CatalogError(f"table {self.source.name!r}: {error}") from error

    def planned(self) -> TableInfo:
        """Return the table as its files are; without files, as its columns are declared."""
        try:
            return self.state().info
        except NoFilesError:
            declared = self.source.declaration
            if declared is None:
                raise
            is_local = not is_remote(self.source.location)
            info = TableInfo(self.source.name, declared.fields, by_cores=True, is_local=is_local)
            return self._declared(info, declared)

    def notes(self) -> Mapping[str, ColumnNotes]:
        """Return what is declared of columns besides their types."""
        return {} if self.source.declaration is None else self.source.declaration.notes

    def _state(self) -> TableState:
        location, options = self.source.location, self.access.options
        declared: DeclaredColumns | None = self.source.declaration
        files = list_files(location, options)
        footers = read_footers(files, options, footer_cache(self.access))
        if declared is None:
            partitions = partition_fields(location, files)
            columns = merged_columns(footers)
        else:
            partitions = declared_partitions(location, files, declared.fields)
            columns = declared.fields[: len(declared.fields) - len(partitions)]
        footers = with_storage([footer_of_table(footer, columns) for footer in footers])
        info = table_info(self.source.name, footers, partitions)
        if declared is not None:
            check_not_null(footers, declared.not_null)
            info = self._declared(info, declared)
        return TableState(info, footers_snapshot(info, footers))

    def _declared(self, info: TableInfo, declared: DeclaredColumns) -> TableInfo:
        return replace(info, notes=declared.notes, is_declared=True)

    def entries(self) -> tuple[FileEntry, ...]:
        """List the files."""
        return list_files(self.source.location, self.access.options)


class ParquetFormat(TableFormat):
    """Parquet files that somebody else writes."""

    name = "parquet"
    file_kind = "parquet"
    keys = ("columns",)

    def declare(self, place: str, body: Mapping[Any, Any]) -> DeclaredColumns | None:
        """Check the declared columns."""
        return read_columns(place, body["columns"]) if "columns" in body else None

    def open(self, source: TableSource, access: Access) -> Table:
        """Return the table."""
        return ParquetTable(source, access)

    def plan_scan(self, request: ScanRequest, table: TableSnapshot) -> ScanPlan:
        """Leave out files by the filters of the fragment."""
        return ParquetScan(request, table)


FORMAT = ParquetFormat()
