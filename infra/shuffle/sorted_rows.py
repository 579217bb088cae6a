"""Rows in partition order: in, chunks of rows and their partition ids; out, rows by partition.

A chunk is sorted by itself, while its values are in the processor's cache. The rows of a partition
are then small slices of many chunks, which are joined once for what becomes a batch of the file.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from infra.shuffle import encoding
from infra.shuffle.encoding import Piece

_JOIN_PARTITIONS = 16
_JOIN_BYTES = 2 << 20
"""Small partitions whose slices are joined at one go."""


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
        indices = pa.Array.from_buffers(pa.int64(), len(order), [None, pa.py_buffer(order)])
        self.batch = pc.take(rows, indices, boundscheck=False)
        self.row_counts = counts
        sizes = encoding.sizes(self.batch, bounds)
        self.num_bytes = int(sizes.sum())
        self.sizes: list[int] = sizes.tolist()
        self.bounds: list[int] = bounds.tolist()


class HeldRows:
    """Sorted chunks in the order of their rows."""

    def __init__(self, num_partitions: int, batch_rows: int, batch_bytes: int) -> None:
        """Hold nothing yet.

        Args:
            num_partitions: Of the chunks.
            batch_rows: Target rows of a batch in the file.
            batch_bytes: Target size of a batch there before compression.
        """
        self._num_partitions = num_partitions
        self._targets = batch_rows, batch_bytes
        self.clear()

    def clear(self) -> None:
        """Drop all rows."""
        self.num_bytes = 0
        self._chunks: list[SortedChunk] = []
        self._joined: dict[int, Piece | None] = {}
        self._row_counts = np.zeros(self._num_partitions, dtype=np.int64)
        self._sizes = np.zeros(self._num_partitions, dtype=np.int64)

    def add(self, chunk: SortedChunk) -> None:
        """Take a chunk."""
        self._chunks.append(chunk)
        self._row_counts += chunk.row_counts
        self._sizes += np.array(chunk.sizes, dtype=np.int64)
        self.num_bytes += chunk.num_bytes

    def pieces(self, partition: int) -> Iterator[Piece]:
        """Yield the rows of a partition in pieces near the target size, small slices joined."""
        if self._row_counts[partition] > self._targets[0] or (
            self._sizes[partition] > self._targets[1]
        ):
            yield from encoding.coalesce(self._slices(partition), *self._targets)
            return
        if partition not in self._joined:
            self._join_from(partition)
        if (piece := self._joined.pop(partition)) is not None:
            yield piece

    def _join_from(self, first: int) -> None:
        """Join the slices of this partition and of some that follow.

        To do so between two calls of the encoder would find the slices' many small objects
        outside the processor's cache.
        """
        self._joined.clear()
        num_bytes = 0
        for partition in range(first, min(first + _JOIN_PARTITIONS, self._num_partitions)):
            size, num_rows = int(self._sizes[partition]), int(self._row_counts[partition])
            num_bytes += size
            if partition > first and (num_bytes > _JOIN_BYTES or num_rows > self._targets[0]):
                return
            slices = [piece.batch for piece in self._slices(partition)]
            self._joined[partition] = Piece(encoding.concat(slices), size) if slices else None

    def _slices(self, partition: int) -> Iterator[Piece]:
        for chunk in self._chunks:
            start, end = chunk.bounds[partition], chunk.bounds[partition + 1]
            if start != end:
                yield Piece(chunk.batch.slice(start, end - start), chunk.sizes[partition])
