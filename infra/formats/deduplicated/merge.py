"""Merges chunks into chunks with the latest row of each key.

    chunks ─▶ rows, oldest first ─▶ pieces by a range of the key ─▶ latest rows ─▶ Parquet

Each piece has about `target_rows` rows and is merged in memory. Where there are several, a first
pass divides the rows into temporary files. With a time column in the key, the ranges are those of
time, and each piece becomes a chunk of its own: they do not overlap. Without one, the ranges are
those of the first column of the key, and all pieces become one chunk.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stagecoach.infra.formats.deduplicated.declaration import Declaration
from stagecoach.infra.formats.deduplicated.key_order import latest_rows, sort_positions
from stagecoach.infra.formats.deduplicated.reading import read_chunk
from stagecoach.infra.formats.deduplicated.version import StoredChunk
from stagecoach.infra.formats.deduplicated.writer import (
    ChunkWriter,
    divide,
    interval_units,
    time_numbers,
)
from stagecoach.infra.host.process_folders import ProcessFolder
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.types import Field, arrow_schema

_MAX_SAMPLE = 1 << 20
_MAX_PIECES = 500
"""Files that are open at once; above it, pieces are larger."""

Indices = Any  # a numpy array: the piece of each row


class Merger:
    """Merges some chunks of a table.

    Args:
        store: The table's location.
        declaration: Key and roles of columns.
        columns: Columns of the table.
        chunks: Chunks, the oldest first; all that may have rows of their keys.
        target_rows: Rows of a piece.
    """

    def __init__(
        self,
        store: ObjectStore,
        declaration: Declaration,
        columns: tuple[Field, ...],
        chunks: Sequence[StoredChunk],
        target_rows: int,
    ) -> None:
        self._store = store
        self._declaration = declaration
        self._columns = columns
        self._schema = arrow_schema(columns)
        self._chunks = chunks
        self._target_rows = target_rows
        time = declaration.time_column
        self._by_time = time is not None and time in declaration.primary_key

    def write(self, writer: ChunkWriter) -> None:
        """Write the merged chunks.

        Raises:
            StorageError: A chunk is gone, or the store failed.
        """
        place = self._places()
        if place is None:
            rows = pa.Table.from_batches(self._rows(), self._schema)
            self._write_parts(writer, self._latest(rows))
            return
        with contextlib.closing(ProcessFolder(tempfile.gettempdir(), "compaction")) as folder:
            pieces = self._pieces(Path(folder.path), place)
            if self._by_time:
                for piece in pieces:
                    self._write_parts(writer, piece)
            else:
                writer.write_sorted(pieces, self._schema, self._columns)

    def _write_parts(self, writer: ChunkWriter, rows: pa.Table) -> None:
        """Rows without duplicates in the order of the key, a chunk for each partition."""
        for part in divide(rows, self._declaration):
            writer.write_sorted(iter([part]), self._schema, self._columns)

    def _rows(self, columns: Sequence[Field] | None = None) -> Iterator[pa.RecordBatch]:
        for chunk in self._chunks:
            yield from read_chunk(self._store, chunk, columns or self._columns)

    def _latest(self, rows: pa.Table) -> pa.Table:
        declared = self._declaration
        latest, _ = latest_rows(rows, declared.primary_key, declared.version_column)
        # A marker must outlive rows that come later with a lower version; without versions
        # whatever comes later is newer.
        if declared.delete_column is not None and declared.version_column is None:
            marked = pc.fill_null(latest.column(declared.delete_column), False)
            latest = latest.filter(pc.invert(marked))
        return latest

    def _places(self) -> Callable[[pa.RecordBatch], Indices] | None:
        """Tells the piece of each row; None if there is one only."""
        count = -(-sum(chunk.num_rows for chunk in self._chunks) // self._target_rows)
        count = min(count, _MAX_PIECES)
        if self._by_time:
            return self._places_by_time(count)
        if count < 2:
            return None
        name = self._declaration.primary_key[0]
        bounds = _quantiles(self._sample(name), count)

        def place(batch: pa.RecordBatch) -> Indices:
            column = batch.column(name)
            found = np.zeros(batch.num_rows, dtype=np.int64)
            for bound in bounds:
                found += pc.fill_null(pc.greater_equal(column, bound), False).to_numpy(
                    zero_copy_only=False
                )
            if pa.types.is_floating(column.type):
                is_nan = pc.fill_null(pc.is_nan(column), False).to_numpy(zero_copy_only=False)
                found[is_nan] = len(bounds)
            return found

        return place if len(bounds) else None

    def _places_by_time(self, count: int) -> Callable[[pa.RecordBatch], Indices] | None:
        name = self._declaration.time_column or ""
        interval = interval_units(self._schema, self._declaration)
        bounds: Indices = np.array([], dtype=np.int64)
        if count > 1:
            times = np.sort(time_numbers(self._sample(name).column(name)))
            steps = [len(times) * i // count for i in range(1, count)]
            bounds = np.unique(times[steps])
        if interval is not None:
            lows = [c.time_min for c in self._chunks if c.time_min is not None]
            highs = [c.time_max for c in self._chunks if c.time_max is not None]
            first, last = min(lows) // interval + 1, max(highs) // interval
            if last - first < _MAX_PIECES:
                edges = np.arange(first, last + 1, dtype=np.int64) * interval
                bounds = np.unique(np.concatenate([bounds, edges]))
        if not len(bounds):
            return None

        def place(batch: pa.RecordBatch) -> Indices:
            times = time_numbers(pa.chunked_array([batch.column(name)]))
            return np.searchsorted(bounds, times, side="right")

        return place

    def _sample(self, name: str) -> pa.Table:
        """Some values of a column, evenly from all chunks."""
        field = next(f for f in self._columns if f.name == name)
        total = sum(chunk.num_rows for chunk in self._chunks)
        step = max(1, total // _MAX_SAMPLE)
        parts = [
            batch.take(pa.array(np.arange(0, batch.num_rows, step)))
            for batch in self._rows([field])
        ]
        return pa.Table.from_batches(parts, schema=arrow_schema((field,)))

    def _pieces(
        self, folder: Path, place: Callable[[pa.RecordBatch], Indices]
    ) -> Iterator[pa.Table]:
        """The latest rows of each piece, by rising ranges of the key."""
        writers: dict[int, pa.RecordBatchFileWriter] = {}
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        try:
            for batch in self._rows():
                pieces = place(batch)
                for number in np.unique(pieces):
                    if int(number) not in writers:
                        path = str(folder / f"{int(number)}.arrow")
                        writers[int(number)] = pa.ipc.new_file(path, self._schema, options=options)
                    writers[int(number)].write_batch(
                        batch.take(pa.array(np.flatnonzero(pieces == number)))
                    )
        finally:
            for writer in writers.values():
                writer.close()
        for number in sorted(writers):
            spilled = folder / f"{number}.arrow"
            with pa.ipc.open_file(str(spilled)) as reader:
                rows = reader.read_all()
            spilled.unlink()
            yield self._latest(rows)


def _quantiles(sample: pa.Table, count: int) -> list[pa.Scalar]:
    """Values that divide the sample into `count` parts of about equal size, each once.

    NULLs belong to the first part and NaN to the last one.
    """
    name = sample.schema.names[0]
    values = sample.take(sort_positions(sample, [name])).column(name).combine_chunks()
    values = values.drop_null()
    if pa.types.is_floating(values.type):
        values = values.filter(pc.invert(pc.is_nan(values)))
    steps = sorted({len(values) * i // count for i in range(1, count)})
    found: list[pa.Scalar] = []
    for step in steps if len(values) else []:
        if not found or not values[step].equals(found[-1]):
            found.append(values[step])
    return found
