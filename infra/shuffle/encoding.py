"""Plain Arrow encodings: in, batches as an engine made them; out, as shuffle files hold them.

Dictionary and run-end encoding and string views are the engine's choice, and may differ between
tasks of one stage; a shuffle file has the plain encoding of the same SQL type.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import pyarrow as pa

from planner.errors import StagecoachError


class BatchSchemaError(StagecoachError):
    """A record batch does not have the columns that the stage's output is pinned to."""


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


def coalesce(
    batches: Iterable[pa.RecordBatch], target_rows: int, target_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in the same order in batches near the target size, none far above it.

    A batch of a quarter of the target or more passes without a copy; smaller ones are joined.
    """
    pending: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        for piece in split(batch, target_rows, target_bytes):
            piece_bytes = piece.nbytes
            if piece.num_rows * 4 >= target_rows or piece_bytes * 4 >= target_bytes:
                if pending:
                    yield concat(pending)
                    pending, rows, size = [], 0, 0
                yield piece
                continue
            pending.append(piece)
            rows += piece.num_rows
            size += piece_bytes
            if rows >= target_rows or size >= target_bytes:
                yield concat(pending)
                pending, rows, size = [], 0, 0
    if pending:
        yield concat(pending)


def split(batch: pa.RecordBatch, target_rows: int, target_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield slices of `batch` of about even size, near or below the target; none when empty."""
    num_rows = batch.num_rows
    if not num_rows:
        return
    pieces = max(-(-num_rows // target_rows), -(-batch.nbytes // target_bytes))
    if pieces <= 1:
        yield batch
        return
    step = max(1, -(-num_rows // pieces))
    for start in range(0, num_rows, step):
        yield batch.slice(start, step)


def concat(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the batches as one; a single batch as it is."""
    if len(batches) == 1:
        return batches[0]
    if not batches[0].num_columns:
        # Arrow's own concatenation forgets the number of rows of batches without columns.
        return rows_without_columns(sum(batch.num_rows for batch in batches))
    return pa.concat_batches(batches)


def rows_without_columns(num_rows: int) -> pa.RecordBatch:
    """Return a batch of `num_rows` rows and no columns (`count(*)` needs no more)."""
    return pa.record_batch([pa.nulls(num_rows)], names=["_"]).select([])


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
