"""Rows of a chunk as they are, for compaction: in, a chunk; out, batches of the table's columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from infra.chunks.version import StoredChunk
from infra.engines.inputs import conform
from infra.storage.object_store import ObjectStore
from planner.types import Field, arrow_schema

_BATCH_ROWS = 1 << 17


def read_chunk(
    store: ObjectStore, chunk: StoredChunk, columns: Sequence[Field]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a chunk in their order, with these columns.

    Args:
        store: The table's location.
        chunk: The chunk.
        columns: Columns of the table; one that the chunk does not have is NULL.

    Raises:
        StorageError: The file is gone.
    """
    schema = arrow_schema(tuple(columns))
    names = [f.name for f in chunk.columns if f.name in schema.names]
    with store.open_input(chunk.key) as file:
        batches: Iterator[pa.RecordBatch]
        if chunk.is_parquet:
            batches = pq.ParquetFile(file).iter_batches(batch_size=_BATCH_ROWS, columns=names)
        else:
            reader = pa.ipc.open_file(file)
            batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
        for batch in batches:
            yield _completed(batch, schema)


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
