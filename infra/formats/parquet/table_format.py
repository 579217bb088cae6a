"""Plain Parquet files as a table format: a file, a folder or a glob, with partition folders or not.

The schema and the statistics come from the footers. A scan leaves out files whose partition values
or bounds rule them out; tasks leave out row groups likewise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stagecoach.infra.formats.file_pruning import row_group_test
from stagecoach.infra.formats.file_scan import FileScan
from stagecoach.infra.formats.parquet.statistics import FooterCache, read_footers, table_info
from stagecoach.infra.formats.partitions import partition_fields, partition_texts
from stagecoach.infra.formats.protocol import Access, ScanPlan, Table, TableFormat, TableSource
from stagecoach.infra.formats.requests import ScanRequest
from stagecoach.infra.formats.snapshot import TableSnapshot, TableState
from stagecoach.infra.formats.units import ScanSlice
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.file_bounds import stored_bounds
from stagecoach.infra.reading.footers import FileFooter
from stagecoach.infra.reading.inputs import ScanInput
from stagecoach.infra.storage.table_files import FileEntry, list_files
from stagecoach.planner.catalog import TableInfo
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
            info = table_info(self.source.name, footers, partitions)
        except CatalogError as error:
            raise CatalogError(f"table {self.source.name!r}: {error}") from error
        return TableState(info, footers_snapshot(info, footers))

    def entries(self) -> tuple[FileEntry, ...]:
        """List the files."""
        return list_files(self.source.location, self.access.options)


class ParquetScan(FileScan):
    """A scan of Parquet files."""

    def bind(self, share: ScanSlice) -> ScanInput:
        """Return the rows of files that a task reads."""
        request, files = self.request, self.file_rows(share)
        test = None
        # DuckDB looks at the row groups of local files by itself.
        if any(file.local_path is None for file in files):
            test = row_group_test(
                request.fragment, request.leaf, self.table, request.parameters, request.time_zone
            )
        return ScanInput(columns=self.columns, files=files, test=test)


class ParquetFormat(TableFormat):
    """Parquet files that somebody else writes."""

    name = "parquet"

    def open(self, source: TableSource, access: Access) -> Table:
        """Return the table."""
        return ParquetTable(source, access)

    def plan_scan(self, request: ScanRequest, table: TableSnapshot) -> ScanPlan:
        """Leave out files by the filters of the fragment."""
        return ParquetScan(request, table)


FORMAT = ParquetFormat()


def footer_cache(access: Access) -> FooterCache:
    """Return the cache of footers that all tables of a catalog share."""
    return access.keep("parquet.footers", FooterCache)


def footers_snapshot(
    info: TableInfo, footers: Sequence[FileFooter], version: int | None = None
) -> TableSnapshot:
    """Return the snapshot of a table with these files.

    Args:
        info: The table.
        footers: Footers of all files.
        version: Number of the table's version, if it has versions.
    """
    return TableSnapshot(
        table=info.name,
        columns=info.columns,
        files=tuple(map(_identity, footers)),
        native_reason=info.native_reason,
        version=version,
        format=info.format,
    )


def _identity(footer: FileFooter) -> DataFile:
    return DataFile(
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
