"""The relations that an engine reads, as plain values that travel to executors.

Worker code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from stagecoach.infra.integrity.local import DEFAULT_CHECKS, FileChecks
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.row_bounds import BoundsTest
from stagecoach.infra.reading.row_groups import DEFAULT_MEMORY_BYTES
from stagecoach.planner.types import DataType, Field, arrow_schema, parse_column_type


@dataclass(frozen=True)
class LeafColumn:
    """A column that a leaf gives to the fragment.

    Args:
        name: Name in the fragment, `c<id>`.
        source: Name in the files of a table; empty for a stage input, which goes by position.
        dtype: Its pinned type.
        field_id: Its id in the table, by which files are read that were written before it was
            renamed; None where columns go by name.
    """

    name: str
    source: str
    dtype: DataType
    field_id: int | None = None

    def to_list(self) -> list[Any]:
        """Plain data for `from_list`."""
        ids = [] if self.field_id is None else [self.field_id]
        return [self.name, self.source, str(self.dtype), *ids]

    @classmethod
    def from_list(cls, values: list[Any]) -> LeafColumn:
        """The column that `to_list` described."""
        name, source, dtype, *ids = values
        return cls(name, source, parse_column_type(dtype), *ids)


@dataclass(frozen=True, kw_only=True)
class ScanInput:
    """Rows of table files; no files for an empty input.

    Args:
        columns: Columns to read.
        files: What to read of which file, in order.
        test: What row groups must pass for a row of theirs to be needed, its columns by their
            positions here; None for nothing.
    """

    columns: tuple[LeafColumn, ...]
    files: tuple[DataFile, ...] = ()
    test: BoundsTest | None = None

    def __post_init__(self) -> None:
        if any(file.deletes for file in self.files):
            raise ValueError("engines would read deleted rows; a format reads such files itself")


@dataclass(frozen=True)
class ParquetInput:
    """A scan of Parquet files.

    Args:
        columns: Columns to read.
        files: What to read of which file, in order; none for an empty input.
        storage_options: How to reach files that are not local, for `StorageOptions.from_dict`.
        test: What row groups must pass for a row of theirs to be needed, its columns by their
            positions here; None for nothing. DuckDB looks at those of local files by itself.
        memory_bytes: Bound of the bytes of a file that are fetched and not yet decoded.
        checks: What is checked of the files before they are read.
    """

    columns: tuple[LeafColumn, ...]
    files: tuple[DataFile, ...]
    storage_options: dict[str, Any] = field(default_factory=dict, repr=False)
    test: BoundsTest | None = None
    memory_bytes: int = DEFAULT_MEMORY_BYTES
    checks: FileChecks = DEFAULT_CHECKS

    @property
    def num_rows(self) -> int:
        """Rows that are read."""
        return sum(file.read_rows for file in self.files)

    @property
    def stored_bytes(self) -> int:
        """About how many stored bytes they have, in all columns."""
        return sum(file.read_bytes for file in self.files)


@dataclass(frozen=True)
class ArrowInput:
    """Rows that are handed over as record batches, already with the leaf's names and types.

    Args:
        columns: Columns of the batches.
        batches: Gives the rows, once.
        num_bytes: About how many bytes they take in memory.
    """

    columns: tuple[LeafColumn, ...]
    batches: Callable[[], Iterator[pa.RecordBatch]]
    num_bytes: int = 0


PlainInput = ParquetInput | ArrowInput
"""What every engine reads by itself."""


def leaf_schema(columns: tuple[LeafColumn, ...]) -> pa.Schema:
    """The Arrow schema that a fragment sees of a leaf."""
    return arrow_schema(tuple(Field(c.name, c.dtype) for c in columns))


def watched(
    batches: Iterator[pa.RecordBatch], errors: list[BaseException]
) -> Iterator[pa.RecordBatch]:
    """The batches; what reading them raises is kept in `errors`.

    Arrow's C interface passes on the text of an error only, so its class must be kept beside it.
    """
    try:
        yield from batches
    except Exception as error:
        errors.append(error)
        raise


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the names and types of `schema`, by position.

    Raises:
        pa.ArrowInvalid: If a value would change.
    """
    if batch.schema.equals(schema):
        return batch
    columns = [
        _conform_array(column, kind)
        for column, kind in zip(batch.columns, schema.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _conform_array(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind and not pa.types.is_nested(kind):
        return column
    if pa.types.is_null(kind):
        return pa.nulls(len(column))
    return column.cast(kind)
