"""Tables of Parquet files as formats share them: their snapshot from footers, and their scan.

A format says which files a table has. What is here reads their footers once, and leaves out files
and row groups that the filters of a query rule out.
"""

from __future__ import annotations

from collections.abc import Sequence

from stagecoach.infra.formats.file_pruning import row_group_test
from stagecoach.infra.formats.file_scan import FileScan
from stagecoach.infra.formats.parquet_footers import FooterCache
from stagecoach.infra.formats.partitions import partition_texts
from stagecoach.infra.formats.protocol import Access
from stagecoach.infra.formats.snapshot import TableSnapshot
from stagecoach.infra.formats.units import ScanSlice
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.file_bounds import stored_bounds
from stagecoach.infra.reading.footers import FileFooter
from stagecoach.infra.reading.inputs import ScanInput
from stagecoach.infra.reading.row_bounds import BoundsTest
from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.catalog import TableInfo


class ParquetScan(FileScan):
    """A scan of Parquet files."""

    def bind(self, share: ScanSlice) -> ScanInput:
        """Return the rows of files that a task reads."""
        files = self.file_rows(share)
        # DuckDB looks at the row groups of local files by itself.
        is_remote = any(file.local_path is None for file in files)
        return ScanInput(
            columns=self.columns, files=files, test=self._row_group_test if is_remote else None
        )

    @cached_property
    def _row_group_test(self) -> BoundsTest | None:
        request = self.request
        return row_group_test(
            request.fragment, request.leaf, self.table, request.parameters, request.time_zone
        )


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
        stored_types=footer.stored_types,
    )
