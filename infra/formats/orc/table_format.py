"""ORC files as a table format: a file, a folder or a glob, with partition folders or not.

    catalog.yaml ──▶ DeclaredColumns, if any ──▶ OrcTable ──▶ footers ──▶ files, stripes
                                                                              │
                              OrcInput (stripes of files, columns) ◀── FileScan

The columns are declared, or those of the files, merged as those of Parquet files are. A column that
only Spark may read sends the stages that read it to Spark, and no others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from stagecoach.infra.formats.column_declaration import DeclaredColumns, read_columns
from stagecoach.infra.formats.file_scan import FileScan
from stagecoach.infra.formats.orc.footers import OrcFooter, as_data_file, read_footers
from stagecoach.infra.formats.orc.input import OrcInput, stripe_starts
from stagecoach.infra.formats.partitions import (
    declared_partitions,
    partition_fields,
    partition_texts,
)
from stagecoach.infra.formats.protocol import Access, ScanPlan, Table, TableFormat, TableSource
from stagecoach.infra.formats.requests import ScanRequest
from stagecoach.infra.formats.snapshot import TableSnapshot, TableState
from stagecoach.infra.formats.units import ScanSlice
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.schema_merge import MergeError, check_names, merge_fields
from stagecoach.infra.reading.spark_files import SparkFiles
from stagecoach.infra.storage.table_files import FileEntry, NoFilesError, list_files
from stagecoach.planner.catalog import ColumnNotes, TableInfo, TableStats
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.types import Field


@dataclass(frozen=True)
class OrcTable(Table):
    """ORC files at a location."""

    source: TableSource
    access: Access

    def state(self, version: int | None = None) -> TableState:
        """List the files and read their footers, as far as these are not known."""
        if version is not None:
            raise CatalogError(f"table {self.source.name!r}: ORC files have no versions")
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
            declared = self._declared
            if declared is None:
                raise
            return self._info(declared.fields, None, {})

    def notes(self) -> Mapping[str, ColumnNotes]:
        """Return what is declared of columns besides their types."""
        return {} if self._declared is None else self._declared.notes

    def entries(self) -> tuple[FileEntry, ...]:
        """List the files."""
        return list_files(self.source.location, self.access.options)

    def infers(self) -> OrcTable:
        """Return the table itself."""
        return self

    def inferred_from(self) -> SparkFiles:
        """Return the files in which Spark finds columns."""
        files = tuple(
            replace(
                as_data_file(entry),
                constants=tuple((folder.partition("=")[0], "") for folder in entry.folders),
            )
            for entry in self.entries()
        )
        options = (("mergeSchema", "true"),)
        return SparkFiles(columns=(), reader="orc", options=options, fields=(), files=files)

    @property
    def _declared(self) -> DeclaredColumns | None:
        found: DeclaredColumns | None = self.source.declaration
        return found

    def _state(self) -> TableState:
        location, entries = self.source.location, self.entries()
        footers = read_footers(entries, self.access.options, self.access.keep("orc.footers", dict))
        if self._declared is None:
            stored = _merged(footers)
            fields = (*stored, *partition_fields(location, entries))
        else:
            fields = self._declared.fields
            partitions = declared_partitions(location, entries, fields)
            stored = fields[: len(fields) - len(partitions)]
        files = tuple(_data_file(footer, stored) for footer in footers)
        stats = TableStats(
            num_rows=sum(file.num_rows for file in files),
            num_bytes=sum(file.num_bytes for file in files),
            num_files=len(files),
        )
        snapshot = TableSnapshot(
            table=self.source.name, columns=fields, files=files, format=FORMAT.name
        )
        return TableState(self._info(fields, stats, _spark_columns(footers, stored)), snapshot)

    def _info(
        self,
        fields: tuple[Field, ...],
        stats: TableStats | None,
        spark_columns: Mapping[str, str],
    ) -> TableInfo:
        return TableInfo(
            self.source.name,
            fields,
            stats,
            spark_columns=spark_columns,
            format=FORMAT.name,
            notes=self.notes(),
            is_declared=self._declared is not None,
        )


@dataclass(frozen=True)
class OrcScan(FileScan):
    """A scan of ORC files."""

    def bind(self, share: ScanSlice) -> OrcInput:
        """Return what a task reads, given its share of the files."""
        return OrcInput(
            columns=self.columns,
            units=self.file_rows(share),
            fields=self.table.columns,
            time_zone=self.request.time_zone,
        )


class OrcFormat(TableFormat):
    """ORC files that somebody else writes."""

    name = "orc"
    file_kind = "orc"
    keys = ("columns",)

    def declare(self, place: str, body: Mapping[Any, Any]) -> DeclaredColumns | None:
        """Check the declared columns."""
        return read_columns(place, body["columns"]) if "columns" in body else None

    def open(self, source: TableSource, access: Access) -> Table:
        """Return the table."""
        return OrcTable(source, access)

    def plan_scan(self, request: ScanRequest, table: TableSnapshot) -> ScanPlan:
        """Leave out files by their partition values."""
        return OrcScan(request, table)

    def scanned(
        self, request: ScanRequest | None, table: TableSnapshot
    ) -> Sequence[Sequence[object]]:
        """Return what decides the rows of a scan: files and columns."""
        fields = [[f.name, str(f.dtype)] for f in table.columns]
        return [*super().scanned(request, table), [self.name, fields]]


FORMAT = OrcFormat()


def _merged(footers: Sequence[OrcFooter]) -> tuple[Field, ...]:
    """The columns of a table with these files, as Spark merges them."""
    fields: tuple[Field, ...] = ()
    for footer in footers:
        found = [column.field for column in footer.columns]
        try:
            check_names(found)
            fields = merge_fields(fields, found)
        except CatalogError as error:
            raise CatalogError(f"{footer.entry.uri}: {error}") from error
        except MergeError as error:
            raise CatalogError(
                f"file {footer.entry.uri} differs from those before it: column "
                f"{'.'.join(error.path)!r} is {error.right}, not {error.left}, which Spark does "
                "not merge; declare the table's columns in the catalog file ('columns')"
            ) from error
    return fields


def _spark_columns(footers: Sequence[OrcFooter], stored: Sequence[Field]) -> Mapping[str, str]:
    """Columns that only Spark may read, by their names in lower case, and why."""
    found: dict[str, str] = {}
    for footer in footers:
        columns = {column.field.name.lower(): column for column in footer.columns}
        if columns and all(name.startswith("_col") for name in columns):
            # Hive wrote such names; Spark takes the columns by their places then.
            reason = "only Spark reads ORC files whose columns have no names"
            return {field.name.lower(): reason for field in stored}
        for field in stored:
            column = columns.get(field.name.lower())
            why = None if column is None else column.why_spark(field.dtype)
            if why is not None:
                found.setdefault(field.name.lower(), why)
    return found


def _data_file(footer: OrcFooter, stored: Sequence[Field]) -> DataFile:
    entry = footer.entry
    has = {column.field.name.lower() for column in footer.columns}
    lacks = sorted(field.name.lower() for field in stored if field.name.lower() not in has)
    starts = stripe_starts(footer.num_rows, footer.num_stripes)
    return DataFile(
        entry.uri,
        footer.num_rows,
        num_bytes=entry.num_bytes,
        version=entry.version,
        row_groups=tuple(b - a for a, b in pairwise(starts)),
        partition=partition_texts(entry),
        stored_types=tuple((name, None) for name in lacks),
    )
