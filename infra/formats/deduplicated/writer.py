"""Writes chunk files, Arrow IPC or Parquet, and describes their rows.

Nothing that is written here is visible before a version names it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from stagecoach.infra.formats.deduplicated import paths
from stagecoach.infra.formats.deduplicated.declaration import Declaration
from stagecoach.infra.formats.deduplicated.errors import AppendError
from stagecoach.infra.formats.deduplicated.key_order import latest_rows
from stagecoach.infra.formats.deduplicated.statistics import (
    RowFacts,
    group_starts,
    merge_facts,
    row_facts,
    sort_facts,
)
from stagecoach.infra.formats.deduplicated.version import StoredChunk
from stagecoach.infra.formats.tail_sink import TailSink
from stagecoach.infra.integrity.checksums import pack_segments
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.types import Field

log = logging.getLogger(__name__)

ROW_GROUP_ROWS = 1 << 17
"""Rows of a row group or record batch: small, so that a filter on the key reads little."""
MAX_PARTS = 256
"""Most chunks that a piece of rows is divided into."""
_DAY_SECONDS = 86_400


class ChunkFile:
    """One file under way.

    Args:
        store: The table's location.
        name: Name of the file; `.parquet` or `.arrow` tells its format.
        schema: Its columns.
    """

    def __init__(self, store: ObjectStore, name: str, schema: pa.Schema) -> None:
        self._name = name
        self._is_parquet = name.endswith(".parquet")
        self._schema = schema
        self._output = store.open_output(paths.chunk_file(name))
        self._row_groups: list[int] = []
        self._starts: list[pa.Table] = []
        self._bounds: list[int] = []  # where its record batches end
        self._sink: TailSink
        self._writer: Any

    def __enter__(self) -> Self:
        self._sink = TailSink(self._output.__enter__())
        target = pa.PythonFile(self._sink, mode="w")
        if self._is_parquet:
            self._writer = pq.ParquetWriter(
                target, self._schema, compression="zstd", write_page_checksum=True
            )
        else:
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._writer = pa.ipc.new_file(target, self._schema, options=options)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            try:
                self._sink.keep_tail()
                self._writer.close()
            except BaseException as raised:
                self._output.__exit__(type(raised), raised, raised.__traceback__)
                raise
            self._output.__exit__(None, None, None)
            return
        self._sink.drop()
        self._writer.close()  # or it would close itself when it is collected
        self._output.__exit__(kind, error, trace)

    def write(self, rows: pa.Table) -> None:
        """Add rows."""
        for start in range(0, rows.num_rows, ROW_GROUP_ROWS):
            part = rows.slice(start, ROW_GROUP_ROWS).combine_chunks()
            self._writer.write_table(part)
            self._bounds.append(self._sink.num_bytes)
            self._row_groups.append(part.num_rows)
            self._starts.append(part.take([0]))  # and not a slice, which would keep all of it

    def stored(
        self,
        columns: tuple[Field, ...],
        facts: RowFacts,
        sort_order: tuple[str, ...],
        *,
        may_contain_duplicates: bool,
    ) -> StoredChunk:
        """Return the chunk; for a file that has been written to its end."""
        if self._is_parquet:
            checksum, checksums = self._sink.parquet_checksums()
        else:
            checksum, checksums = f"{self._sink.checksums.whole:08x}", self._segments()
        return StoredChunk(
            name=self._name,
            num_rows=sum(self._row_groups),
            num_bytes=self._sink.num_bytes,
            row_groups=tuple(self._row_groups),
            checksum=checksum,
            checksums=checksums,
            columns=columns,
            sort_order=sort_order,
            may_contain_duplicates=may_contain_duplicates,
            group_starts=group_starts(self._starts, sort_order),
            **vars(facts),
        )

    def _segments(self) -> str:
        """Checksums of the parts of an Arrow file: each record batch, and the footer."""
        ends = [*self._bounds, self._sink.num_bytes]
        starts = [0, *ends[:-1]]
        of_range = self._sink.checksums.of_range
        return pack_segments(
            (end - start, of_range(start, end)) for start, end in zip(starts, ends, strict=True)
        )


class ChunkWriter:
    """Writes the chunks of one commit.

    Args:
        store: The table's location.
        declaration: Key and roles of columns.
        token: Identity of the commit.
    """

    def __init__(self, store: ObjectStore, declaration: Declaration, token: str) -> None:
        self._store = store
        self._declaration = declaration
        self._token = token
        self.chunks: list[StoredChunk] = []

    def append(self, rows: pa.Table, columns: tuple[Field, ...], *, sort: bool) -> None:
        """Write rows as they came, or sorted and without what newer rows among them hide.

        Args:
            rows: Rows with exactly these columns.
            columns: The columns.
            sort: Whether the chunks are Parquet, sorted by the key.
        """
        for part in divide(rows, self._declaration):
            if sort:
                self.write_latest([part], columns)
                continue
            order, duplicates = sort_facts(part, self._declaration)
            facts = row_facts(part, self._declaration)
            with self._begin(".arrow", part.schema) as file:
                file.write(part)
            self._add(file.stored(columns, facts, order, may_contain_duplicates=duplicates))

    def write_latest(self, pieces: Sequence[pa.Table], columns: tuple[Field, ...]) -> None:
        """Write the latest rows of each key as one Parquet file; nothing where there are no rows.

        Args:
            pieces: Rows, the older ones first; keys of a piece are all above those of the ones
                before it.
            columns: Their columns.
        """
        self.write_sorted(
            (self._latest(piece) for piece in pieces if piece.num_rows), pieces[0].schema, columns
        )

    def write_sorted(
        self, pieces: Iterator[pa.Table], schema: pa.Schema, columns: tuple[Field, ...]
    ) -> None:
        """Write rows that are sorted by the key and hold each of it once as one Parquet file."""
        first = next((piece for piece in pieces if piece.num_rows), None)
        if first is None:
            return
        facts = [row_facts(first, self._declaration)]
        with self._begin(".parquet", schema) as file:
            file.write(first)
            del first
            for piece in pieces:
                if piece.num_rows:
                    facts.append(row_facts(piece, self._declaration))
                    file.write(piece)
        key = tuple(n for n in self._declaration.primary_key if n in schema.names)
        whole = merge_facts(facts, self._declaration)
        self._add(file.stored(columns, whole, key, may_contain_duplicates=False))

    def discard(self) -> None:
        """Remove what was written; gc would find it too."""
        self._store.delete([chunk.key for chunk in self.chunks])
        self.chunks.clear()

    def _latest(self, rows: pa.Table) -> pa.Table:
        key = [name for name in self._declaration.primary_key if name in rows.schema.names]
        version = self._declaration.version_column
        known = version if version in rows.schema.names else None
        return latest_rows(rows, key, known)[0]

    def _begin(self, suffix: str, schema: pa.Schema) -> ChunkFile:
        name = f"{self._token}-{len(self.chunks):05d}{suffix}"
        return ChunkFile(self._store, name, schema)

    def _add(self, chunk: StoredChunk) -> None:
        self.chunks.append(chunk)
        log.debug("chunk %s: %d rows, %d bytes", chunk.name, chunk.num_rows, chunk.num_bytes)


def check_times(rows: pa.Table, declaration: Declaration, *, table: str, place: str) -> None:
    """Check that each row has a time.

    Raises:
        AppendError: One has none: chunks could then not be told apart by their times.
    """
    name = declaration.time_column
    if name is not None and name in rows.schema.names and rows.column(name).null_count:
        raise AppendError(
            f"{place}: the time column '{name}' of table '{table}' is NULL in "
            f"{rows.column(name).null_count} rows; give them a time, or declare the table without "
            "a time column"
        )


def divide(rows: pa.Table, declaration: Declaration) -> list[pa.Table]:
    """Return the rows by partition values and interval of time, each part in the rows' order.

    Parts share no key, so it does not matter that one gets a higher sequence than another: columns
    that do not belong to the key divide nothing. Rows with more than `MAX_PARTS` different values
    stay together.
    """
    codes = _codes(rows, declaration)
    if codes is None or not rows.num_rows:
        return [rows] if rows.num_rows else []
    values, codes = np.unique(codes, return_inverse=True)
    if len(values) > MAX_PARTS:
        log.warning("%d partitions at once: the rows stay in one chunk", len(values))
        return [rows]
    if len(values) == 1:
        return [rows]
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(len(values)), side="right")
    sorted_rows = rows.take(pa.array(order))
    starts = [0, *ends[:-1]]
    return [sorted_rows.slice(start, end - start) for start, end in zip(starts, ends, strict=True)]


def _codes(rows: pa.Table, declaration: Declaration) -> Any:
    """A number for each combination of partition values and interval; None where there is one."""
    codes: Any = None
    partition_by = declaration.partition_by
    divides = set(partition_by) <= set(declaration.primary_key)
    columns = [rows.column(n) for n in partition_by if divides and n in rows.schema.names]
    interval = interval_units(rows.schema, declaration)
    if interval is not None and declaration.time_column is not None:
        times = time_numbers(rows.column(declaration.time_column))
        columns.append(pa.chunked_array([pa.array(times // interval)]))
    for column in columns:
        values = column.combine_chunks().dictionary_encode(null_encoding="encode")
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        found = values.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        if codes is None:
            codes = found
        else:
            _, codes = np.unique(
                codes * (int(found.max(initial=0)) + 1) + found, return_inverse=True
            )
    return codes


def interval_units(schema: pa.Schema, declaration: Declaration) -> int | None:
    """`chunk_interval` in units of the time column: days, microseconds or the number's own."""
    name, interval = declaration.time_column, declaration.chunk_interval
    if name is None or interval is None or name not in schema.names:
        return None
    if name not in declaration.primary_key:
        return None
    kind = schema.field(name).type
    if pa.types.is_date(kind):
        return max(1, interval // _DAY_SECONDS)
    return interval * 1_000_000 if pa.types.is_timestamp(kind) else interval


def time_numbers(column: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The values of a time column without NULLs as whole numbers."""
    if pa.types.is_date32(column.type):
        column = pc.cast(column, pa.int32())
    made: np.ndarray[Any, np.dtype[np.int64]] = pc.cast(column, pa.int64()).to_numpy()
    return made
