"""Scans whose units are the files of the snapshot: what most formats need of `ScanPlan`.

A file is left out where its partition values or its bounds show that no row passes the filters
right above the scan.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stagecoach.infra.formats.file_pruning import pruned_files, table_constants
from stagecoach.infra.formats.requests import ScanRequest
from stagecoach.infra.formats.snapshot import TableSnapshot
from stagecoach.infra.formats.units import ScanSlice, ScanUnit
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.inputs import LeafColumn
from stagecoach.planner.cached_property import cached_property

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
    def units(self) -> Sequence[ScanUnit]:
        """The files that the filters do not rule out."""
        return [unit_of(file) for file in needed_files(self.request, self.table)]

    @property
    def columns(self) -> tuple[LeafColumn, ...]:
        """The columns to give, with their ids if the table has such."""
        if not self.table.field_ids:
            return self.request.columns
        ids = self.table.field_id
        return tuple(replace(c, field_id=ids(c.source)) for c in self.request.columns)

    @cached_property
    def _sources(self) -> frozenset[str]:
        return frozenset(column.source.lower() for column in self.request.columns)

    @cached_property
    def _files(self) -> Mapping[str, DataFile]:
        # Each task of the stage is bound by this scan.
        return {file.uri: file for file in self.table.files}

    def file_rows(self, share: ScanSlice) -> tuple[DataFile, ...]:
        """Return the rows of files that a task reads, given its share of them."""
        return tuple(self._rows(self._files[unit.uri], unit) for unit in share.units)

    def _rows(self, file: DataFile, unit: ScanUnit) -> DataFile:
        constants = table_constants(self.table, file, self.request.time_zone)
        return file.for_task((unit.row_start, unit.row_end), constants, self._sources)

    @abstractmethod
    def bind(self, share: ScanSlice) -> TableInput:
        """Return what a task reads, given its share of the files."""


def needed_files(request: ScanRequest, table: TableSnapshot) -> tuple[DataFile, ...]:
    """Return the files that may hold rows which the filters right above the scan let through."""
    if not request.filters:
        return table.files
    return pruned_files(
        request.fragment, request.leaf, table, request.parameters, request.time_zone
    )


def unit_of(file: DataFile) -> ScanUnit:
    """Return a file as a unit, which may be cut between its row groups."""
    # The snapshot has no bytes per row group; rows of one file are about equally wide.
    groups = tuple(
        (rows, file.num_bytes * rows // file.num_rows if file.num_rows else 0)
        for rows in file.row_groups
    )
    return ScanUnit(file.uri, groups)
