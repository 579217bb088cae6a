"""Scans of tables of mapped files.

The format puts this into `TableSnapshot.detail`, as plain data:

    columns    the columns of the table, `MappedColumn`
    hidden     others that deletes name
    names      which columns the names of files stand for, `MappedName`
    by_names   whether these count for files with field ids, too
    files      by URI, a list whose last item is the file's constants: pairs of field id and text
"""

from __future__ import annotations

from dataclasses import dataclass

from stagecoach.infra.formats.file_pruning import row_group_test
from stagecoach.infra.formats.file_scan import FileScan
from stagecoach.infra.formats.mapped_files.columns import MappedColumn, MappedName
from stagecoach.infra.formats.mapped_files.inputs import MappedInput
from stagecoach.infra.formats.requests import ScanRequest
from stagecoach.infra.formats.snapshot import TableSnapshot
from stagecoach.infra.formats.units import ScanSlice
from stagecoach.infra.reading.data_file import DataFile


@dataclass(frozen=True)
class MappedScan(FileScan):
    """A scan of a table of mapped files, planned."""

    def bind(self, share: ScanSlice) -> MappedInput:
        """Return the rows of files that a task reads."""
        request = self.request
        files = tuple(
            self._file(self._files[unit.uri], (unit.row_start, unit.row_end))
            for unit in share.units
        )
        test = None
        # DuckDB looks at the row groups of local files by itself.
        if any(file.local_path is None for file in files):
            test = row_group_test(
                request.fragment, request.leaf, self.table, request.parameters, request.time_zone
            )
        wanted = {
            number
            for file in files
            if file.deletes is not None
            for deleted in file.deletes.files
            for number in deleted.columns
        }
        known = {
            c.field_id: c
            for c in (*stored_trees(self.table, "columns"), *stored_trees(self.table, "hidden"))
        }
        return MappedInput(
            columns=self.columns,
            trees=read_columns(request, self.table),
            keys=tuple(known[number] for number in sorted(wanted)),
            names=tuple(map(MappedName.from_list, self.table.detail["names"])),
            by_names=self.table.detail["by_names"],
            files=files,
            test=test,
        )

    def _file(self, file: DataFile, rows: tuple[int, int]) -> DataFile:
        return file.for_task(rows, constants_of(file.uri, self.table))


def read_columns(request: ScanRequest | None, table: TableSnapshot) -> tuple[MappedColumn, ...]:
    """Return the columns that a scan reads, in its order; all of them without one."""
    columns = stored_trees(table, "columns")
    if request is None:
        return columns
    by_name = {column.name.lower(): column for column in columns}
    return tuple(by_name[source.lower()] for source in request.leaf.source)


def stored_trees(table: TableSnapshot, kind: str) -> tuple[MappedColumn, ...]:
    """Return the columns of a table of one kind, `columns` or `hidden`."""
    return tuple(map(MappedColumn.from_list, table.detail[kind]))


def constants_of(uri: str, table: TableSnapshot) -> tuple[tuple[str, str | None], ...]:
    """Return values of columns that are the same in all rows of a file, by field id."""
    found = table.detail["files"].get(uri)
    return tuple((str(number), value) for number, value in found[-1]) if found else ()
