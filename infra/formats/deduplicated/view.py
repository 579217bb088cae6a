"""A version of a deduplicated table as the planner and runs see it.

Nothing is read: a version tells all that planning and pruning need.
"""

from __future__ import annotations

from collections.abc import Sequence

from stagecoach.infra.formats.deduplicated.declaration import KIND
from stagecoach.infra.formats.deduplicated.version import ChunkTableVersion, StoredChunk
from stagecoach.infra.integrity.adoption import warn_without_checksums
from stagecoach.infra.reading.column_summary import (
    ColumnSummary,
    column_stats,
    merge_summaries,
)
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.storage.table_files import canonical_uri
from stagecoach.planner.catalog import TableInfo, TableStats
from stagecoach.planner.formats.deduplicated.chunk import Chunk, ColumnRange, DedupState, DedupTable
from stagecoach.planner.types import DataType


def dedup_table(version: ChunkTableVersion) -> DedupTable:
    """Return what a version says of its table."""
    return version.declaration.table(version.table, version.columns)


def table_chunks(store: ObjectStore, version: ChunkTableVersion) -> tuple[Chunk, ...]:
    """Return the live chunks of a version, the oldest first.

    Args:
        store: The table's location.
        version: The version.
    """
    return tuple(_chunk(store, chunk) for chunk in version.chunks)


def chunk_table_info(store: ObjectStore, version: ChunkTableVersion) -> TableInfo:
    """Return what the planner knows of a table: its rows are those of all chunks, hidden ones too.

    Args:
        store: The table's location.
        version: The version.
    """
    warn_without_checksums(
        version.table, store.uri("chunks"), (chunk.any_checksums for chunk in version.chunks)
    )
    columns = {
        field.name: column_stats(_summary(version.chunks, field.name), field.dtype)
        for field in version.columns
    }
    return TableInfo(
        name=version.table,
        columns=version.columns,
        stats=TableStats(
            num_rows=version.num_rows,
            num_bytes=version.num_bytes,
            num_files=len(version.chunks),
            columns=columns,
            is_estimate=_may_hide_rows(version.chunks),
        ),
        unique_key=version.declaration.primary_key,
        format=KIND,
        detail=DedupState(dedup_table(version), table_chunks(store, version)),
    )


def _may_hide_rows(chunks: Sequence[StoredChunk]) -> bool:
    """Whether a row of a chunk may replace, or delete, another one."""
    return len(chunks) > 1 or any(c.may_contain_duplicates or c.has_deletes for c in chunks)


def _summary(chunks: Sequence[StoredChunk], column: str) -> ColumnSummary:
    parts = []
    for chunk in chunks:
        names = [field.name for field in chunk.columns]
        if column in names:
            parts.append(chunk.summaries[names.index(column)])
        else:
            count = chunk.num_rows
            parts.append(ColumnSummary(num_rows=count, num_bytes=0, null_count=count))
    return merge_summaries(parts)


def _chunk(store: ObjectStore, chunk: StoredChunk) -> Chunk:
    uri = canonical_uri(store, chunk.key)
    return Chunk(
        chunk_id=chunk.name.rpartition(".")[0],
        kind="parquet" if chunk.is_parquet else "arrow",
        uri=uri,
        store="/".join(uri.split("/", 3)[:3]) if "://" in uri else "file",
        num_rows=chunk.num_rows,
        num_bytes=chunk.num_bytes,
        row_groups=chunk.row_groups,
        sequence=chunk.sequence,
        columns=chunk.columns,
        partition=chunk.partition,
        time_min=chunk.time_min,
        time_max=chunk.time_max,
        sort_order=chunk.sort_order,
        group_starts=chunk.group_starts,
        may_contain_duplicates=chunk.may_contain_duplicates,
        has_deletes=chunk.has_deletes,
        null_columns=chunk.null_columns,
        ranges=tuple(
            _range(field.name, field.dtype, summary)
            for field, summary in zip(chunk.columns, chunk.summaries, strict=True)
        ),
        checksum=chunk.checksum,
        checksums=chunk.checksums,
    )


def _range(name: str, dtype: DataType, summary: ColumnSummary) -> ColumnRange:
    low, high = summary.min_value, summary.max_value
    if not dtype.is_atomic or dtype.kind == "boolean":
        low = high = None
    return ColumnRange(name, summary.null_count, low, high)
