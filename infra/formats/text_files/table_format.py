"""Text files as a table format: what CSV, JSON and plain lines share.

    catalog.yaml ──▶ TextDeclaration (columns, options) ──▶ TextTable ──▶ files, rows
                                                                              │
                    TextInput (a range of bytes, columns, options) ◀── TextScan

Rows of small tables are counted, those of others estimated. Where only Spark can read the files,
the table's `native_reason` says why, and stages that scan it are planned for Spark. Else a task
reads them, and raises where a line is not plain.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

from stagecoach.infra.formats.column_declaration import DeclaredColumns, read_columns
from stagecoach.infra.formats.file_scan import FileScan
from stagecoach.infra.formats.partitions import declared_partitions, partition_texts
from stagecoach.infra.formats.protocol import Access, ScanPlan, Table, TableFormat, TableSource
from stagecoach.infra.formats.requests import ScanRequest
from stagecoach.infra.formats.snapshot import TableSnapshot, TableState
from stagecoach.infra.formats.text_files.inputs import TextInput
from stagecoach.infra.formats.text_files.line_rules import LineRule
from stagecoach.infra.formats.text_files.options import FileOptions, read_options
from stagecoach.infra.formats.text_files.row_counts import RowCounts
from stagecoach.infra.formats.units import ScanSlice
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.line_blocks import is_split, spark_only
from stagecoach.infra.reading.spark_files import SparkFiles
from stagecoach.infra.storage.table_files import FileEntry, NoFilesError, list_files
from stagecoach.planner.catalog import ColumnNotes, TableInfo, TableStats
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.types import DataType, Field

PIECE_BYTES = 8 << 20
"""Tasks cut files where such a number of bytes ends."""

_COMPRESSION = 4
"""Text is about so many times larger than its compressed form."""
_WIDTHS = {"boolean": 5, "tinyint": 3, "smallint": 4, "int": 6, "date": 10, "string": 16}
_WIDTH = 12


@dataclass(frozen=True, kw_only=True)
class TextDeclaration:
    """What the catalog file says of a table of text files.

    Args:
        columns: Its columns; None where they are still to be inferred.
        options: How its files are read.
    """

    columns: DeclaredColumns | None
    options: FileOptions


@dataclass(frozen=True)
class TextTable(Table):
    """Text files at a location."""

    source: TableSource
    access: Access
    format: TextFormat

    def state(self, version: int | None = None) -> TableState:
        """List the files, and count their rows if they are small."""
        if version is not None:
            raise CatalogError(f"table {self.source.name!r}: text files have no versions")
        try:
            return self._state(list_files(self.source.location, self.access.options))
        except NoFilesError as error:
            raise NoFilesError(f"table {self.source.name!r}: {error}") from error
        except CatalogError as error:
            raise CatalogError(f"table {self.source.name!r}: {error}") from error

    def planned(self) -> TableInfo:
        """Return the table as its files are; without files, as its columns are declared."""
        try:
            return self.state().info
        except NoFilesError:
            return self._info(self._columns.fields, None, self._native_reason(()))

    def notes(self) -> Mapping[str, ColumnNotes]:
        """Return what is declared of columns besides their types."""
        columns = self.source.declaration.columns
        return {} if columns is None else columns.notes

    def entries(self) -> tuple[FileEntry, ...]:
        """List the files."""
        return list_files(self.source.location, self.access.options)

    def infers(self) -> TextTable:
        """Return the table itself."""
        return self

    def inferred_from(self) -> SparkFiles:
        """Return the files and the options with which Spark finds columns in them."""
        given = self.source.declaration.options.given
        if self.format.name == "csv":
            given = (*given, ("inferSchema", "true"))
        files = tuple(
            replace(
                _data_file(entry, 1),
                constants=tuple((folder.partition("=")[0], "") for folder in entry.folders),
            )
            for entry in self.entries()
        )
        return SparkFiles(
            columns=(),
            reader=self.format.input_class.reader,
            options=given,
            fields=(),
            files=files,
        )

    @property
    def _columns(self) -> DeclaredColumns:
        found: DeclaredColumns | None = self.source.declaration.columns
        if found is None:
            raise CatalogError(
                f"table {self.source.name!r}: its columns are not declared; "
                f"'stagecoach tables infer {self.source.name}' prints what Spark finds"
            )
        return found

    def _state(self, entries: Sequence[FileEntry]) -> TableState:
        fields = self._columns.fields
        partitions = declared_partitions(self.source.location, entries, fields)
        stored = fields[: len(fields) - len(partitions)]
        row_bytes = self.format.row_bytes(stored)
        counts, is_exact = self._counts(entries)
        files = tuple(
            _data_file(entry, row_bytes, rows) for entry, rows in zip(entries, counts, strict=True)
        )
        reason = self._native_reason(entries, stored)
        stats = TableStats(
            num_rows=sum(
                file.num_rows if rows is None else rows
                for file, rows in zip(files, counts, strict=True)
            ),
            num_bytes=sum(file.num_bytes for file in files),
            num_files=len(files),
            is_estimate=not is_exact,
        )
        snapshot = TableSnapshot(
            table=self.source.name,
            columns=fields,
            files=files,
            native_reason=reason,
            format=self.format.name,
            detail=[list(pair) for pair in self.source.declaration.options.given],
        )
        return TableState(self._info(fields, stats, reason), snapshot)

    def _counts(self, entries: Sequence[FileEntry]) -> tuple[Sequence[int | None], bool]:
        """Rows of each file, None where they are to be estimated, and whether all are exact."""
        rule = self.format.line_rule(self.source.declaration.options)
        if rule is None:
            return (None,) * len(entries), False
        known = self.access.keep("text.rows", RowCounts)
        counts = known.of(entries, rule, self.access.options)
        return counts, rule.is_exact and None not in counts

    def _native_reason(
        self, entries: Sequence[FileEntry], stored: Sequence[Field] | None = None
    ) -> str | None:
        fields = self._columns.fields if stored is None else stored
        reason = self.format.native_reason(fields, self.source.declaration.options)
        return reason or next((why for e in entries if (why := spark_only(e.uri))), None)

    def _info(
        self, fields: tuple[Field, ...], stats: TableStats | None, reason: str | None
    ) -> TableInfo:
        return TableInfo(
            self.source.name,
            fields,
            stats,
            native_reason=reason,
            format=self.format.name,
            notes=self._columns.notes,
            is_declared=True,
        )


@dataclass(frozen=True)
class TextScan(FileScan):
    """A scan of text files."""

    input_class: Callable[..., TextInput] | None = None

    def bind(self, share: ScanSlice) -> TextInput:
        """Return what a task reads, given its share of the files."""
        assert self.input_class is not None
        return self.input_class(
            columns=self.columns,
            units=self.file_rows(share),
            fields=self.table.columns,
            options=_options_of(self.table),
            time_zone=self.request.time_zone,
            native_reason=self.table.native_reason,
        )


class TextFormat(TableFormat):
    """What formats of text files share."""

    keys = ("columns", "options")
    known_options: ClassVar[tuple[str, ...]]
    default_columns: ClassVar[DeclaredColumns | None] = None
    input_class: ClassVar[type[TextInput]]

    def declare(self, place: str, body: Mapping[Any, Any]) -> TextDeclaration:
        """Check the columns and the options."""
        columns = (
            read_columns(place, body["columns"]) if "columns" in body else self.default_columns
        )
        given = body.get("options")
        options = FileOptions() if given is None else read_options(place, given, self.known_options)
        if columns is not None:
            self.check(place, columns, options)
        return TextDeclaration(columns=columns, options=options)

    def check(self, place: str, columns: DeclaredColumns, options: FileOptions) -> None:
        """Check that columns and options go together.

        Raises:
            CatalogError: They do not.
        """
        for field in columns.fields:
            if field.name == options.corrupt_column and field.dtype.kind != "string":
                raise CatalogError(
                    f"{place}, column {field.name!r}: the text of corrupt records is a STRING, "
                    f"not {field.dtype}"
                )

    def open(self, source: TableSource, access: Access) -> Table:
        """Return the table."""
        return TextTable(source, access, self)

    def plan_scan(self, request: ScanRequest, table: TableSnapshot) -> ScanPlan:
        """Leave out files by their partition values."""
        return TextScan(request, table, self.input_class)

    def scanned(
        self, request: ScanRequest | None, table: TableSnapshot
    ) -> Sequence[Sequence[object]]:
        """Return what decides the rows of a scan: files, options and declared columns."""
        fields = [[f.name, str(f.dtype)] for f in table.columns]
        return [*super().scanned(request, table), [self.name, table.detail, fields]]

    @abstractmethod
    def native_reason(self, fields: Sequence[Field], options: FileOptions) -> str | None:
        """Return why only Spark may read files with these columns and options, or None."""

    @abstractmethod
    def line_rule(self, options: FileOptions) -> LineRule | None:
        """Return which lines are rows, or None where lines do not tell how many rows there are."""

    def row_bytes(self, fields: Sequence[Field]) -> int:
        """Estimate how many bytes a row has."""
        return max(sum(_width(f.dtype) + 1 for f in fields), 1)


def _options_of(table: TableSnapshot) -> FileOptions:
    return FileOptions(tuple((name, value) for name, value in table.detail or ()))


def _width(dtype: DataType) -> int:
    if dtype.fields:
        return sum(_width(f.dtype) + 1 for f in dtype.fields)
    return _WIDTHS.get(dtype.kind, _WIDTH)


def _data_file(entry: FileEntry, row_bytes: int, counted: int | None = None) -> DataFile:
    """A file with about as many rows as it may have, in pieces of about equal size.

    Its rows stand for its bytes: a file that has bytes has one at least, so that all are read.
    """
    whole = not is_split(entry.uri)
    expected = entry.num_bytes * (_COMPRESSION if whole else 1) // row_bytes
    expected = expected if counted is None else counted
    rows = max(expected, 1) if entry.num_bytes else 0
    pieces = 1 if whole else max(min(entry.num_bytes // PIECE_BYTES, rows), 1)
    cuts = [rows * i // pieces for i in range(pieces + 1)]
    return DataFile(
        entry.uri,
        rows,
        num_bytes=entry.num_bytes,
        version=entry.version,
        row_groups=tuple(b - a for a, b in pairwise(cuts)),
        partition=partition_texts(entry),
    )
