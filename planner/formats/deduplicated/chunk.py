"""What the planner knows of a deduplicated table and of the chunks that hold its rows.

These are immutable values, taken from a version of the table.

A deduplicated table shows one row for each value of its primary key: the latest. Latest is the
highest version (where the table has a version column; NULL is lowest), then the highest sequence of
a chunk, then the last position within it. Key values are equal as Spark's GROUP BY has it: NULL to
NULL, NaN to NaN, -0.0 to 0.0. Where the latest row is marked as deleted, no row is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from stagecoach.planner.errors import CatalogError
from stagecoach.planner.types import DataType, Field

ChunkKind = OneOf["parquet", "arrow"]
"""`parquet`: persisted, sorted or not; `arrow`: fresh rows in an Arrow IPC file."""

ChunkValue = bool | int | float | str
"""A value of a column: integers as int, dates as days and timestamps as microseconds since 1970,
text as it is, decimals and floats as float (bounds only)."""

TIME_KINDS = frozenset(
    {"tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz"}
)
"""Kinds of types that a time column may have: those whose values are whole numbers."""


@dataclass(frozen=True)
class ColumnRange:
    """Bounds of a column's values in a chunk.

    Args:
        name: The column, as the table spells it.
        null_count: Number of NULLs; None where unknown.
        low: No value is below; None where unknown. NaN is left out of both bounds.
        high: No value is above; None where unknown.
    """

    name: str
    null_count: int | None = None
    low: ChunkValue | None = None
    high: ChunkValue | None = None


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Rows that were written together: one file.

    Args:
        chunk_id: Its name, unique in the table for all time.
        kind: Format of the file.
        uri: Where the file is: an absolute path or a URL.
        store: Which storage the file is in, such as `file` or `s3://bucket`; files of different
            stores are not read by the same scan.
        file_version: Which version of the file it is; empty if it is never written twice.
        num_rows: Rows of the file.
        num_bytes: Size of the file.
        row_groups: Rows of each row group or record batch, in file order; empty where unknown.
        sequence: Number of the write: of two rows with equal keys and versions that of the higher
            sequence is newer. No two live chunks with overlapping keys have the same.
        columns: Columns that the file has, in file order, with the file's types. A column of the
            table that is not among them is NULL in all rows.
        partition: Values of the table's `partition_by` columns, if all rows agree in each of them;
            None where they do not, or it is unknown. A value None is NULL.
        time_min: Smallest value of the time column; None, as the next one, if a row's time is NULL
            or the range is unknown.
        time_max: Largest value of the time column.
        sort_order: Columns by which the file is sorted, ascending, NULLs first, NaN last; rows with
            equal values are in the order of their positions. Empty: unsorted.
        may_contain_duplicates: Whether two rows of the file may have equal primary keys.
        has_deletes: Whether a row may be marked as deleted.
        group_starts: Value of the first column of `sort_order` in the first row of each row group;
            empty where unknown.
        null_columns: Columns of the primary key that are NULL in all rows.
        ranges: Bounds of columns, where known.
        checksum: Of the footer of a Parquet file, of the whole of an Arrow file.
        checksums: Of the file's parts, packed; empty where they are not known.
    """

    chunk_id: str
    kind: ChunkKind = "parquet"
    uri: str = ""
    store: str = "file"
    file_version: str = ""
    num_rows: int = 0
    num_bytes: int = 0
    row_groups: tuple[int, ...] = ()
    sequence: int = 0
    columns: tuple[Field, ...] = ()
    partition: tuple[ChunkValue | None, ...] | None = None
    time_min: int | None = None
    time_max: int | None = None
    sort_order: tuple[str, ...] = ()
    may_contain_duplicates: bool = True
    has_deletes: bool = False
    group_starts: tuple[ChunkValue | None, ...] = ()
    null_columns: tuple[str, ...] = ()
    ranges: tuple[ColumnRange, ...] = ()
    checksum: str = ""
    checksums: str = ""

    def __post_init__(self) -> None:
        if (self.time_min is None) != (self.time_max is None):
            raise CatalogError(f"chunk '{self.chunk_id}' has only one end of a time range")
        ends = self.time_range
        if ends is not None and ends[0] > ends[1]:
            raise CatalogError(
                f"chunk '{self.chunk_id}': its times end at {ends[1]}, "
                f"before they begin at {ends[0]}"
            )
        if self.row_groups and sum(self.row_groups) != self.num_rows:
            raise CatalogError(
                f"chunk '{self.chunk_id}' has {self.num_rows} rows, "
                f"its row groups {sum(self.row_groups)}"
            )
        if self.group_starts and len(self.group_starts) != len(self.row_groups):
            raise CatalogError(
                f"chunk '{self.chunk_id}' has {len(self.row_groups)} row groups, "
                f"and tells where {len(self.group_starts)} start"
            )

    def type_of(self, column: str) -> DataType | None:
        """The file's type of a column, None where the file does not have it."""
        return next((f.dtype for f in self.columns if f.name == column), None)

    @property
    def time_range(self) -> tuple[int, int] | None:
        """First and last time, both included; None where it is unknown."""
        if self.time_min is None or self.time_max is None:
            return None
        return self.time_min, self.time_max


@dataclass(frozen=True, kw_only=True)
class DedupTable:
    """What a table declares about its rows.

    Args:
        name: Name in the catalog.
        columns: Columns of the table as it is now; chunks may lack some or have narrower types.
        primary_key: Columns of which each value is shown once; at least one.
        time_column: Column of `TIME_KINDS` by which chunks are told apart, or None.
        partition_by: Columns of whose values chunks hold one each, if all goes well.
        version_column: Column that decides which of two rows is newer, before sequence and
            position; None where there is none.
        delete_column: Boolean column that marks a row as deleted; None where there is none.
    """

    name: str
    columns: tuple[Field, ...]
    primary_key: tuple[str, ...]
    time_column: str | None = None
    partition_by: tuple[str, ...] = ()
    version_column: str | None = None
    delete_column: str | None = None

    def __post_init__(self) -> None:
        kinds = {f.name: f.dtype for f in self.columns}
        if not self.primary_key:
            raise CatalogError(f"table '{self.name}' needs a primary key")
        for role, names in self._roles():
            for name in names:
                if name not in kinds:
                    raise CatalogError(
                        f"table '{self.name}': its {role} '{name}' is not a column "
                        f"(available: {', '.join(kinds)})"
                    )
            if len(set(names)) != len(names):
                raise CatalogError(f"table '{self.name}' names a column of its {role} twice")
        self._check_types(kinds)

    def _roles(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        single = (
            ("time column", self.time_column),
            ("version column", self.version_column),
            ("delete column", self.delete_column),
        )
        return (
            ("primary key", self.primary_key),
            ("partition column", self.partition_by),
            *((role, (name,)) for role, name in single if name is not None),
        )

    def _check_types(self, kinds: dict[str, DataType]) -> None:
        for name in (*self.primary_key, *self.partition_by):
            if not kinds[name].is_atomic or kinds[name].is_interval:
                raise CatalogError(
                    f"table '{self.name}': column '{name}' of type {kinds[name]} cannot be part "
                    "of a key; use a column of a simple type"
                )
        if self.time_column is not None and kinds[self.time_column].kind not in TIME_KINDS:
            raise CatalogError(
                f"table '{self.name}': its time column '{self.time_column}' is of type "
                f"{kinds[self.time_column]}; use a date, a timestamp or a whole number"
            )
        if self.version_column is not None and not kinds[self.version_column].is_atomic:
            raise CatalogError(
                f"table '{self.name}': versions of type {kinds[self.version_column]} have no order"
            )
        if self.delete_column is not None and kinds[self.delete_column].kind != "boolean":
            raise CatalogError(
                f"table '{self.name}': its delete column '{self.delete_column}' is of type "
                f"{kinds[self.delete_column]}; use a boolean"
            )
        if self.delete_column in self.primary_key:
            raise CatalogError(
                f"table '{self.name}': the delete column cannot belong to the primary key"
            )

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of all columns, in order."""
        return tuple(f.name for f in self.columns)

    @property
    def splits_by_partition(self) -> bool:
        """Whether rows with equal keys are sure to have equal values of `partition_by`."""
        return bool(self.partition_by) and set(self.partition_by) <= set(self.primary_key)

    @property
    def splits_by_time(self) -> bool:
        """Whether rows with equal keys are sure to have equal times."""
        return self.time_column is not None and self.time_column in self.primary_key


@dataclass(frozen=True)
class DedupState:
    """A deduplicated table at some time.

    Args:
        table: What it declares.
        chunks: Its chunks then, the oldest first.
    """

    table: DedupTable
    chunks: tuple[Chunk, ...] = ()
