"""Scans whose units are the files of the snapshot: what most formats need of `ScanPlan`.

A file is left out where its partition values or its bounds show that no row passes the filters
right above the scan.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from stagecoach.infra.formats.file_pruning import pruned_files, table_constants
from stagecoach.infra.formats.requests import ScanRequest
from stagecoach.infra.formats.snapshot import FileIdentity, TableSnapshot
from stagecoach.infra.formats.units import FileSlice, ScanSlice, SourceFile
from stagecoach.infra.reading.inputs import FileRows, LeafColumn

if TYPE_CHECKING:
    from stagecoach.infra.reading.format_input import TableInput


@dataclass(frozen=True)
class FileScan(ABC):
    """A scan of a table's files; implements `ScanPlan`.

    Args:
        request: The scan in its fragment.
        table: The table in the run's snapshot.
    """

    request: ScanRequest
    table: TableSnapshot

    @cached_property
    def units(self) -> Sequence[SourceFile]:
        """The files that the filters do not rule out."""
        return [_unit(file) for file in needed_files(self.request, self.table)]

    @property
    def columns(self) -> tuple[LeafColumn, ...]:
        """The columns to give, with their ids if the table has such."""
        if not self.table.field_ids:
            return self.request.columns
        ids = self.table.field_id
        return tuple(replace(c, field_id=ids(c.source)) for c in self.request.columns)

    def file_rows(self, share: ScanSlice) -> tuple[FileRows, ...]:
        """Return the rows of files that a task reads, given its share of them."""
        known = {file.uri: file for file in self.table.files}
        return tuple(self._rows(known[part.uri], part) for part in share.files)

    def _rows(self, file: FileIdentity, part: FileSlice) -> FileRows:
        return FileRows(
            file.uri,
            part.row_start,
            part.row_end,
            file.num_rows,
            file.num_bytes,
            file.version,
            table_constants(self.table, file, self.request.time_zone),
            file.footer_checksum,
            file.checksums,
            file.deletes,
        )

    @abstractmethod
    def bind(self, share: ScanSlice) -> TableInput:
        """Return what a task reads, given its share of the files."""


def needed_files(request: ScanRequest, table: TableSnapshot) -> tuple[FileIdentity, ...]:
    """Return the files that may hold rows which the filters right above the scan let through."""
    if not request.filters:
        return table.files
    return pruned_files(
        request.fragment, request.leaf, table, request.parameters, request.time_zone
    )


def _unit(file: FileIdentity) -> SourceFile:
    # The snapshot has no bytes per row group; rows of one file are about equally wide.
    groups = tuple(
        (rows, file.num_bytes * rows // file.num_rows if file.num_rows else 0)
        for rows in file.row_groups
    )
    return SourceFile(file.uri, groups, deletes=file.deletes)
