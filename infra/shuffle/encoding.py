"""Brings batches into the plain Arrow encodings that shuffle files hold.

Dictionary and run-end encoding and string views are the engine's choice, and may differ between
tasks of one stage; a shuffle file has the plain encoding of the same SQL type.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from stagecoach.planner.errors import StagecoachError

_FIRST_ROWS = 1024
"""Rows that are brought to plain encodings before it is known how wide they are there."""


class BatchSchemaError(StagecoachError):
    """A record batch does not have the columns that the stage's output is pinned to."""


class Piece(NamedTuple):
    """Rows, and how many bytes they take (`RecordBatch.nbytes`, which is slow to ask for)."""

    batch: pa.RecordBatch
    num_bytes: int


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the plain encoding of a type, nested types included."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([_plain_field(kind.field(i)) for i in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(
            plain_type(kind.key_type), _plain_field(kind.item_field), keys_sorted=kind.keys_sorted
        )
    if pa.types.is_large_list(kind):
        return pa.large_list(_plain_field(kind.value_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_plain_field(kind.value_field), kind.list_size)
    if pa.types.is_list(kind):
        return pa.list_(_plain_field(kind.value_field))
    return kind


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with plain types and without metadata (an engine's private business)."""
    return pa.schema([_plain_field(field) for field in schema])


def schema_hash(schema: pa.Schema) -> str:
    """Return a hash of the columns of a plain schema."""
    return hashlib.sha256(schema.serialize()).hexdigest()[:32]


def to_plain(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return `batch` in the encodings of the plain `schema`; the same buffers where they agree.

    Columns go by position. An encoding may differ (dictionary, view, decimal or offset width); a
    SQL type may not.

    Raises:
        BatchSchemaError: The number of columns or a column's SQL type differs.
    """
    if batch.num_columns != len(schema):
        raise BatchSchemaError(
            f"record batch has {batch.num_columns} columns {batch.schema.names}, "
            f"expected {len(schema)} {schema.names}"
        )
    if batch.schema.equals(schema):
        return batch
    if not len(schema):
        return batch
    columns = [
        _column_to_plain(batch.column(position), field) for position, field in enumerate(schema)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def plain_pieces(
    batch: pa.RecordBatch, schema: pa.Schema, target_rows: int, target_bytes: int
) -> Iterator[Piece]:
    """Yield the rows of a batch in the encodings of the plain `schema`, in pieces near a size.

    A batch in other encodings may be a hundred times wider in plain ones (a dictionary of long
    texts), so it goes a few rows at a time.

    Raises:
        BatchSchemaError: The number of columns or a column's SQL type differs.
    """
    if batch.schema.equals(schema) or not len(schema):
        yield from split(Piece(to_plain(batch, schema), batch.nbytes), target_rows, target_bytes)
        return
    start, count = 0, _FIRST_ROWS
    while start < batch.num_rows:
        plain = to_plain(batch.slice(start, count), schema)
        piece = Piece(plain, plain.nbytes)
        yield from split(piece, target_rows, target_bytes)
        start += plain.num_rows
        width = max(1, piece.num_bytes // plain.num_rows)
        count = max(1, min(target_rows, target_bytes // width, 8 * count))


def coalesce(pieces: Iterable[Piece], target_rows: int, target_bytes: int) -> Iterator[Piece]:
    """Yield the same rows in the same order in pieces near the target size, none far above it.

    A piece that is worth a batch of its own passes without a copy; smaller ones are joined.
    """
    pending: list[pa.RecordBatch] = []
    rows = size = 0
    for whole in pieces:
        for piece in split(whole, target_rows, target_bytes):
            if is_batch(piece, target_rows, target_bytes):
                if pending:
                    yield Piece(concat(pending), size)
                    pending, rows, size = [], 0, 0
                yield piece
                continue
            pending.append(piece.batch)
            rows += piece.batch.num_rows
            size += piece.num_bytes
            if rows >= target_rows or size >= target_bytes:
                yield Piece(concat(pending), size)
                pending, rows, size = [], 0, 0
    if pending:
        yield Piece(concat(pending), size)


def is_batch(piece: Piece, target_rows: int, target_bytes: int) -> bool:
    """Return whether a piece is worth a batch of its own: an eighth of a target."""
    return piece.batch.num_rows * 8 >= target_rows or piece.num_bytes * 8 >= target_bytes


def split(piece: Piece, target_rows: int, target_bytes: int) -> Iterator[Piece]:
    """Yield slices of a piece, near or below the target but for a wide row; none when empty."""
    batch, num_bytes = piece
    num_rows = batch.num_rows
    if not num_rows:
        return
    count = max(-(-num_rows // target_rows), -(-num_bytes // target_bytes))
    if count <= 1 or num_rows == 1:
        yield piece
        return
    step = max(1, -(-num_rows // count))
    for start in range(0, num_rows, step):
        part = batch.slice(start, step)
        part_bytes = part.nbytes
        if part_bytes > 2 * target_bytes and part.num_rows > 1:
            # Rows of very different widths.
            yield from split(Piece(part, part_bytes), target_rows, target_bytes)
        else:
            yield Piece(part, part_bytes)


def sizes(batch: pa.RecordBatch, bounds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the bytes of rows `bounds[i] .. bounds[i + 1] - 1` for every i, all at once."""
    found = np.zeros(len(bounds) - 1, dtype=np.int64)
    for column in batch.columns:
        found += _array_sizes(column, bounds)
    return found


def concat(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the batches as one; a single batch as it is."""
    if len(batches) == 1:
        return batches[0]
    if not batches[0].num_columns:
        # Arrow's own concatenation forgets the number of rows of batches without columns.
        return rows_without_columns(sum(batch.num_rows for batch in batches))
    return pa.concat_batches(batches)


def offset_type(kind: pa.DataType) -> np.dtype[Any] | None:
    """Return the type of the offsets of an array that has them."""
    for is_kind in (pa.types.is_string, pa.types.is_binary, pa.types.is_list, pa.types.is_map):
        if is_kind(kind):
            return np.dtype(np.int32)
    wide = (pa.types.is_large_string, pa.types.is_large_binary, pa.types.is_large_list)
    return np.dtype(np.int64) if any(is_kind(kind) for is_kind in wide) else None


def items_of(array: pa.Array) -> pa.Array:
    """Return what the offsets of lists or maps point into; entries of maps are structs."""
    if not pa.types.is_map(array.type):
        return array.values
    return pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])


def rows_without_columns(num_rows: int) -> pa.RecordBatch:
    """Return a batch of `num_rows` rows and no columns (`count(*)` needs no more)."""
    return pa.record_batch([pa.nulls(num_rows)], names=["_"]).select([])


def _array_sizes(array: pa.Array, bounds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The bytes of ranges of an array in a plain encoding."""
    kind, rows = array.type, np.diff(bounds)
    if pa.types.is_null(kind):
        return np.zeros_like(rows)
    found = (rows + 7) // 8 if array.null_count else np.zeros_like(rows)
    if pa.types.is_struct(kind):
        for position in range(kind.num_fields):
            found += _array_sizes(array.field(position), bounds)
        return found
    if pa.types.is_fixed_size_list(kind):
        items = array.values
        return found + _array_sizes(items, (bounds + array.offset) * kind.list_size)
    dtype = offset_type(kind)
    if dtype is None:
        return found + (rows * kind.bit_width + 7) // 8
    if not len(array):
        return found
    offsets = np.frombuffer(
        array.buffers()[1],
        dtype=dtype,
        count=len(array) + 1,
        offset=array.offset * dtype.itemsize,
    )[bounds].astype(np.int64)
    found += rows * dtype.itemsize
    if pa.types.is_nested(kind):
        return found + _array_sizes(items_of(array), offsets)
    return found + np.diff(offsets)


def _plain_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, plain_type(field.type), field.nullable)


def _column_to_plain(column: pa.Array, field: pa.Field) -> pa.Array:
    if column.type.equals(field.type):
        return column
    if not _same_sql_type(plain_type(column.type), field.type):
        raise BatchSchemaError(
            f"column {field.name!r} has type {column.type}, expected {field.type}; the type of a "
            "column that crosses an exchange is pinned in the plan"
        )
    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise BatchSchemaError(
            f"column {field.name!r} of type {column.type} cannot be written as {field.type}: "
            f"{error}"
        ) from error


def _same_sql_type(found: pa.DataType, expected: pa.DataType) -> bool:
    """Return whether two plain types differ only in widths and names that SQL does not see."""
    if found.equals(expected):
        return True
    if pa.types.is_decimal(found) and pa.types.is_decimal(expected):
        return bool(found.precision == expected.precision and found.scale == expected.scale)
    for group in (_STRINGS, _BINARIES):
        if found in group and expected in group:
            return True
    if pa.types.is_timestamp(found) and pa.types.is_timestamp(expected):
        # The zone is display only; with and without a zone are two SQL types.
        return bool(found.unit == expected.unit and (found.tz is None) == (expected.tz is None))
    if pa.types.is_struct(found) and pa.types.is_struct(expected):
        return found.num_fields == expected.num_fields and all(
            found.field(i).name == expected.field(i).name
            and _same_sql_type(found.field(i).type, expected.field(i).type)
            for i in range(found.num_fields)
        )
    if pa.types.is_map(found) and pa.types.is_map(expected):
        return _same_sql_type(found.key_type, expected.key_type) and _same_sql_type(
            found.item_type, expected.item_type
        )
    if _is_list(found) and _is_list(expected):
        return _same_sql_type(found.value_type, expected.value_type)
    return False


_STRINGS = (pa.string(), pa.large_string())
_BINARIES = (pa.binary(), pa.large_binary())


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )
