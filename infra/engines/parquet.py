"""Parquet files that DuckDB cannot open itself: in, rows of files; out, record batches.

Worker code. Files in object storage are read by pyarrow through the same store classes as shuffle
files, row group by row group, projected columns only.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from infra.catalog.files import stat_file
from infra.engines.errors import InputLostError
from infra.engines.inputs import FileRows, LeafColumn, ParquetInput, leaf_schema
from infra.storage.object_store import StorageOptions
from infra.storage.stores import open_store

_BATCH_ROWS = 1 << 17


def check_file(file: FileRows, options: StorageOptions | None = None) -> None:
    """Look whether a file is still the one of the run's snapshot, by size and version.

    Raises:
        InputLostError: It is gone or has changed.
        StorageError: The storage refused.
    """
    try:
        found = stat_file(file.uri, options)
    except FileNotFoundError:
        raise InputLostError(file.uri, "there is no such file") from None
    if file.version and (found.num_bytes, found.version) != (file.num_bytes, file.version):
        raise InputLostError(file.uri, "it has changed since")


def read_parquet_batches(leaf: ParquetInput) -> Iterator[pa.RecordBatch]:
    """The rows of a scan with the leaf's names and types, file by file.

    Raises:
        InputLostError: A file is gone or has fewer rows than the snapshot says.
        StorageError: The store refuses or fails.
    """
    schema = leaf_schema(leaf.columns)
    options = StorageOptions.from_dict(leaf.storage_options)
    for file in leaf.files:
        check_file(file, options)
        folder, _, name = file.uri.rpartition("/")
        source = open_store(folder, options).open_input(name)
        with (
            source,
            pq.ParquetFile(source, pre_buffer=True, coerce_int96_timestamp_unit="us") as parquet,
        ):
            yield from _read_file(parquet, file, leaf.columns, schema)


def _read_file(
    parquet: pq.ParquetFile, file: FileRows, columns: tuple[LeafColumn, ...], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    if parquet.metadata.num_rows != file.num_rows:
        found = parquet.metadata.num_rows
        raise InputLostError(file.uri, f"it has {found} rows instead of {file.num_rows}")
    groups, skip = _select_groups(parquet, file)
    stored = {name.lower(): name for name in parquet.schema_arrow.names}
    constants = dict(file.constants)
    names = [stored[c.source.lower()] for c in columns if c.source.lower() in stored]
    remaining = file.row_end - file.row_start
    # Without columns pyarrow still yields batches of the right length.
    for batch in parquet.iter_batches(_BATCH_ROWS, row_groups=groups, columns=names):
        if skip >= batch.num_rows:
            skip -= batch.num_rows
            continue
        piece = batch.slice(skip, remaining)
        skip = 0
        remaining -= piece.num_rows
        arrays = [_column(piece, c, stored, constants) for c in columns]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        if not remaining:
            return


def _select_groups(parquet: pq.ParquetFile, file: FileRows) -> tuple[list[int], int]:
    """Row groups that overlap the rows, and how many rows to skip in the first."""
    groups: list[int] = []
    skip = 0
    start = 0
    for group in range(parquet.metadata.num_row_groups):
        rows = parquet.metadata.row_group(group).num_rows
        if start < file.row_end and start + rows > file.row_start:
            if not groups:
                skip = max(file.row_start - start, 0)
            groups.append(group)
        start += rows
    return groups, skip


def _column(
    batch: pa.RecordBatch,
    column: LeafColumn,
    stored: dict[str, str],
    constants: dict[str, str | None],
) -> pa.Array:
    kind = leaf_schema((column,)).types[0]
    if column.source.lower() in constants:
        value = pa.scalar(constants[column.source.lower()], pa.string())
        return pa.repeat(value.cast(kind), len(batch))
    if column.source.lower() not in stored:
        return pa.nulls(len(batch), kind)
    array = batch.column(stored[column.source.lower()])
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array.cast(kind)
