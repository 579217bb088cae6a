"""What a task reads of ORC files: stripes.

Worker code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc

from stagecoach.infra.errors import QueryError
from stagecoach.infra.formats.files_input import FilesInput
from stagecoach.infra.formats.orc.stored_columns import stored_columns
from stagecoach.infra.reading.input_files import opened_unchanged
from stagecoach.planner.text.quoting import duckdb_name
from stagecoach.planner.types import to_arrow

if TYPE_CHECKING:
    from stagecoach.infra.reading.data_file import DataFile
    from stagecoach.infra.reading.inputs import LeafColumn
    from stagecoach.infra.storage.object_store import StorageOptions

_FIRST_GREGORIAN_DAY = -141427
"""1582-10-15. Spark stores days before it as those of the Julian calendar."""


def stripe_starts(num_rows: int, num_stripes: int) -> list[int]:
    """Return where stripes are taken to begin, and the number of rows: pyarrow does not tell.

    Args:
        num_rows: Rows of the file.
        num_stripes: Its stripes.
    """
    return [num_rows * i // num_stripes for i in range(num_stripes)] + [num_rows]


class OrcInput(FilesInput):
    """Rows of ORC files. A range of rows stands for the stripes that are taken to begin in it."""

    reader = "orc"

    def raw_columns(self, sources: Sequence[LeafColumn]) -> tuple[LeafColumn, ...]:
        """Return the columns as they are."""
        return tuple(sources)

    def select(self, sources: Sequence[LeafColumn]) -> tuple[str, str]:
        """Return the columns."""
        return ", ".join(duckdb_name(c.name) for c in sources), "in_0"

    def raw_rows(
        self, unit: DataFile, sources: Sequence[LeafColumn], options: StorageOptions
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of stripes.

        Raises:
            InputLostError: The file is gone, has changed or is damaged.
            QueryError: Only Spark can read a value.
            StorageError: The storage refused.
        """
        if not unit.read_rows:
            return
        with opened_unchanged(unit, options) as source:
            file = orc.ORCFile(source)
            wanted = _names_in(file, sources)
            starts = stripe_starts(file.nrows, file.nstripes)[:-1]
            for i, start in enumerate(starts):
                if unit.row_start <= start < unit.row_end:
                    try:
                        batch = file.read_stripe(i, columns=wanted or file.schema.names[:1])
                    except pa.ArrowInvalid as error:
                        raise QueryError(f"{unit.uri} cannot be read by a task: {error}") from error
                    yield _as_wanted(batch, wanted, sources)


def _names_in(file: orc.ORCFile, sources: Sequence[LeafColumn]) -> list[str]:
    """The names of columns as the file spells them.

    Raises:
        QueryError: Only Spark can read one, which planning may not have known of a newer file.
    """
    stored = {c.field.name.lower(): c for c in stored_columns(file.schema, str(file.writer))}
    found = [stored[column.source.lower()] for column in sources]
    reasons = (has.why_spark(c.dtype) for has, c in zip(found, sources, strict=True))
    if (reason := next(filter(None, reasons), None)) is not None:
        raise QueryError(reason)
    return [column.field.name for column in found]


def _as_wanted(
    batch: pa.RecordBatch, wanted: Sequence[str], sources: Sequence[LeafColumn]
) -> pa.RecordBatch:
    # pyarrow gives the columns in the order of the file.
    columns = [_value(batch.column(name), c) for name, c in zip(wanted, sources, strict=True)]
    if not columns:
        return batch.select([])
    return pa.RecordBatch.from_arrays(columns, names=[c.name for c in sources])


def _value(column: pa.Array, wanted: LeafColumn) -> pa.Array:
    _check_dates(column, wanted.source)
    return column.cast(to_arrow(wanted.dtype))


def _check_dates(column: pa.Array, name: str) -> None:
    """Raise where a value has a day of which the calendar is not clear, at any depth."""
    if pa.types.is_date32(column.type):
        first = pc.min(column.cast(pa.int32())).as_py()
        if first is not None and first < _FIRST_GREGORIAN_DAY:
            raise QueryError(f"column {name!r} has days before 1582-10-15, which only Spark reads")
    elif pa.types.is_map(column.type):
        _check_dates(column.keys, name)
        _check_dates(column.items, name)
    elif pa.types.is_struct(column.type):
        for part in column.flatten():
            _check_dates(part, name)
    elif pa.types.is_list(column.type):
        _check_dates(column.values, name)
