"""Reads the rows of a chunk as they are, for compaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from stagecoach.infra.formats.deduplicated.version import StoredChunk
from stagecoach.infra.integrity.errors import DamagedFileError
from stagecoach.infra.integrity.fetched import FetchedChecks, open_checked_arrow
from stagecoach.infra.integrity.parquet import FooterError, read_footer
from stagecoach.infra.reading.inputs import conform
from stagecoach.infra.reading.row_groups import read_row_groups
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.types import Field, arrow_schema


def read_chunk(
    store: ObjectStore, chunk: StoredChunk, columns: Sequence[Field]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a chunk in their order, with these columns.

    Args:
        store: The table's location.
        chunk: The chunk.
        columns: Columns of the table; one that the chunk does not have is NULL.

    Raises:
        DamagedFileError: The file is damaged.
        StorageError: The file is gone.
    """
    schema = arrow_schema(tuple(columns))
    names = [f.name for f in chunk.columns if f.name in schema.names]
    with store.open_input(chunk.key) as file:
        batches: Iterator[pa.RecordBatch]
        if chunk.is_parquet:
            batches = _parquet_batches(file, store.uri(chunk.key), chunk, names)
        else:
            uri = store.uri(chunk.key)
            reader = pa.ipc.open_file(
                open_checked_arrow(file, uri, chunk.num_bytes, chunk.checksum, chunk.checksums)
            )
            batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
        for batch in batches:
            yield _completed(batch, schema)


def _parquet_batches(
    file: pa.NativeFile, uri: str, chunk: StoredChunk, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    try:
        metadata = read_footer(file, file.size(), chunk.checksum)
    except FooterError as error:
        raise DamagedFileError(uri, str(error)) from error
    groups = range(metadata.num_row_groups)
    checks = FetchedChecks(uri, chunk.checksums, len(groups) * metadata.num_columns)
    return read_row_groups(file, metadata, groups, names, checks=checks)


def _completed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with all columns; types are those of the table, which are as wide or wider."""
    arrays = [
        batch.column(field.name)
        if field.name in batch.schema.names
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    if not arrays:
        return batch
    return conform(pa.RecordBatch.from_arrays(arrays, names=schema.names), schema)
