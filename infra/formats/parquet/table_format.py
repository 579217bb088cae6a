"""Plain Parquet files as a table format: a file, a folder or a glob, with partition folders or not.

The schema and the statistics come from the footers. Files may have different columns, which are
merged (`file_schemas`). A scan leaves out files whose partition values
or bounds rule them out; tasks leave out row groups likewise.
"""

from __future__ import annotations

from dataclasses import dataclass

from stagecoach.infra.formats.parquet.file_schemas import footer_of_table, merged_columns
from stagecoach.infra.formats.parquet_footers import read_footers, table_info
from stagecoach.infra.formats.parquet_scan import ParquetScan, footer_cache, footers_snapshot
from stagecoach.infra.formats.partitions import partition_fields
from stagecoach.infra.formats.protocol import Access, ScanPlan, Table, TableFormat, TableSource
from stagecoach.infra.formats.requests import ScanRequest
from stagecoach.infra.formats.snapshot import TableSnapshot, TableState
from stagecoach.infra.storage.table_files import FileEntry, list_files
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
        location, options = self.source.location, self.access.options
        try:
            files = list_files(location, options)
            partitions = partition_fields(location, files)
            footers = read_footers(files, options, footer_cache(self.access))
            columns = merged_columns(footers)
            footers = tuple(footer_of_table(footer, columns) for footer in footers)
            info = table_info(self.source.name, footers, partitions)
        except CatalogError as error:
            raise CatalogError(f"table {self.source.name!r}: {error}") from error
        return TableState(info, footers_snapshot(info, footers))

    def entries(self) -> tuple[FileEntry, ...]:
        """List the files."""
        return list_files(self.source.location, self.access.options)


class ParquetFormat(TableFormat):
    """Parquet files that somebody else writes."""

    name = "parquet"
    file_kind = "parquet"

    def open(self, source: TableSource, access: Access) -> Table:
        """Return the table."""
        return ParquetTable(source, access)

    def plan_scan(self, request: ScanRequest, table: TableSnapshot) -> ScanPlan:
        """Leave out files by the filters of the fragment."""
        return ParquetScan(request, table)


FORMAT = ParquetFormat()
