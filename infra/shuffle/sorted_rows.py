"""Sorts chunks of rows by partition.

A chunk is sorted by itself, while its values are in the processor's cache. The rows of a partition
are then small slices of many chunks, which are joined once for what becomes a batch of the file.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from arro3.compute import take as take_texts

from stagecoach.infra.shuffle import encoding
from stagecoach.infra.shuffle.encoding import Piece


class SortedChunk:
    """Rows of a chunk in partition order, and where each partition begins."""

    def __init__(
        self, rows: pa.RecordBatch, ids: npt.NDArray[np.uint16], num_partitions: int
    ) -> None:
        """Sort `rows` by their partition `ids`; rows of one partition keep their order."""
        counts = np.bincount(ids, minlength=num_partitions)
        bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        # A radix sort: the ids are 16 bits wide, and 8 bits take one pass less.
        order = np.argsort(ids.astype(np.uint8) if num_partitions <= 256 else ids, kind="stable")
        self.batch = _take(rows, pa.array(order.astype(np.uint32)))
        self.sizes = encoding.sizes(self.batch, bounds)
        self.bounds: list[int] = bounds.tolist()
        self.num_bytes = int(self.sizes.sum())


class HeldRows:
    """Sorted chunks in the order of their rows."""

    def __init__(self, batch_rows: int, batch_bytes: int) -> None:
        """Hold nothing yet.

        Args:
            batch_rows: Target rows of a batch in the file.
            batch_bytes: Target size of a batch there before compression.
        """
        self._targets = batch_rows, batch_bytes
        self.clear()

    def clear(self) -> None:
        """Drop all rows."""
        self.num_bytes = 0
        self._chunks: list[SortedChunk] = []

    def add(self, chunk: SortedChunk) -> None:
        """Take a chunk."""
        self._chunks.append(chunk)
        self.num_bytes += chunk.num_bytes

    def pieces(self, partition: int) -> Iterator[Piece]:
        """Yield the rows of a partition in pieces near the target size, small slices joined."""
        return encoding.coalesce(self._slices(partition), *self._targets)

    def _slices(self, partition: int) -> Iterator[Piece]:
        for chunk in self._chunks:
            start, end = chunk.bounds[partition], chunk.bounds[partition + 1]
            if start != end:
                yield Piece(chunk.batch.slice(start, end - start), int(chunk.sizes[partition]))


def _take(rows: pa.RecordBatch, indices: pa.Array) -> pa.RecordBatch:
    """Return the rows at some positions."""
    columns = [
        # Half the time of Arrow's own kernel, which is the fastest for everything else.
        pa.array(take_texts(column, indices))
        if _is_text(column.type)
        else pc.take(column, indices, boundscheck=False)
        for column in rows.columns
    ]
    if not columns:
        return pc.take(rows, indices, boundscheck=False)
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())
