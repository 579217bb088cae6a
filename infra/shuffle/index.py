"""The columnar index of a stage, an Arrow IPC file that tells where each range lies.

Rows are sorted by partition, then by file, and lie in batches of about a megabyte whose byte ranges
and checksums the manifest knows, so that a reader of few partitions out of a large index fetches a
slice in one request instead of M×N entries. A range without rows is not listed. Indexes that older
versions wrote list these, too, with length 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import google_crc32c
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stagecoach.infra.shuffle.partition_ranges import RANGE, PartitionRanges
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.errors import StagecoachError

INDEX_SCHEMA = pa.schema(
    [
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("file", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("length", pa.int64(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("checksum", pa.uint32(), nullable=False),
    ]
)
_OF_FILE = ("offset", "length", "rows", "checksum")
_SLICE_ROWS = 32 << 10  # 36 bytes each


class IndexDamagedError(StagecoachError):
    """The index file does not hold what the manifest says."""


@dataclass(frozen=True, kw_only=True)
class IndexSlice:
    """Where the index rows of some partitions lie.

    Attributes:
        lo: First partition.
        hi: Partition after the last.
        offset: Byte position of their record batch in the index file.
        length: Bytes of it.
        checksum: CRC-32C of these bytes.
    """

    lo: int
    hi: int
    offset: int
    length: int
    checksum: int


@dataclass(frozen=True)
class Index:
    """The content of an index file and where its slices lie."""

    content: bytes
    slices: tuple[IndexSlice, ...]


def build_index(files: Sequence[PartitionRanges]) -> Index:
    """Return the index of map files, given in task order."""
    content, bounds = _write_slices(files)
    slices = tuple(
        IndexSlice(
            lo=lo,
            hi=hi,
            offset=offset,
            length=length,
            checksum=google_crc32c.value(content[offset : offset + length]),
        )
        for lo, hi, offset, length in bounds
    )
    return Index(content.to_pybytes(), slices)


def _write_slices(
    files: Sequence[PartitionRanges],
) -> tuple[pa.Buffer, list[tuple[int, int, int, int]]]:
    """Return the index, and first partition, last, offset and length of each of its slices."""
    num_partitions = files[0].num_partitions if files else 0
    ranges = np.frombuffer(b"".join(file.packed for file in files), dtype=RANGE)
    counts = [len(file.packed) // RANGE.itemsize for file in files]
    file_of = np.repeat(np.arange(len(files), dtype=np.int32), counts)
    # Stable: the ranges of a partition stay in the order of their files.
    order = np.argsort(ranges["partition"], kind="stable")
    ends = np.cumsum(np.bincount(ranges["partition"], minlength=num_partitions))
    sink = pa.BufferOutputStream()
    bounds = []
    with pa.ipc.new_file(sink, INDEX_SCHEMA) as writer:
        # Arrow writes the file header with the first batch: an empty one makes positions known.
        writer.write_batch(_no_rows())
        for lo, hi in _cuts(ends):
            rows = order[ends[lo - 1] if lo else 0 : ends[hi - 1]]
            start = sink.tell()
            writer.write_batch(_index_batch(ranges[rows], file_of[rows]))
            bounds.append((lo, hi, start, sink.tell() - start))
    return sink.getvalue(), bounds


def read_index(
    store: ObjectStore,
    key: str,
    slices: Sequence[IndexSlice],
    *,
    lo: int,
    hi: int,
) -> pa.RecordBatch:
    """Return the index rows of partitions `lo .. hi-1`, one request for all of them.

    Raises:
        IndexDamagedError: The bytes are not those that the manifest describes.
        StorageError: The store failed, or the index is missing (`ObjectMissingError`).
    """
    wanted = [part for part in slices if part.lo < hi and part.hi > lo]
    if not wanted:
        return _no_rows()
    start, end = wanted[0].offset, wanted[-1].offset + wanted[-1].length
    content = pa.py_buffer(store.read_bytes(key, start, end - start))
    batches = []
    for part in wanted:
        body = content[part.offset - start : part.offset - start + part.length]
        if body.size != part.length:
            raise IndexDamagedError(f"index is short ({start + content.size} of {end} bytes)")
        if google_crc32c.value(body) != part.checksum:
            raise IndexDamagedError(f"index of partitions {part.lo} to {part.hi - 1} is corrupt")
        message = pa.ipc.read_message(pa.BufferReader(body))
        batches.append(pa.ipc.read_record_batch(message, INDEX_SCHEMA))
    batch = pa.concat_batches(batches)
    partitions = values_of(batch, "partition")
    first, last = np.searchsorted(partitions, [lo, hi])
    return batch.slice(first, last - first)


def values_of(index: pa.RecordBatch, name: str) -> npt.NDArray[Any]:
    """Return a column of an index, without a copy and without pandas, which `to_numpy` imports."""
    column = index.column(name)
    dtype = np.dtype(column.type.to_pandas_dtype())
    values = np.frombuffer(column.buffers()[1], dtype=dtype)
    return values[column.offset : column.offset + len(column)]


def rows_by_partition(index: pa.RecordBatch, lo: int, hi: int) -> tuple[int, ...]:
    """Return the rows of each partition `lo .. hi-1` that an index lists."""
    totals = np.zeros(hi - lo, dtype=np.int64)
    np.add.at(totals, values_of(index, "partition") - lo, values_of(index, "rows"))
    return tuple(totals.tolist())


def ranges_by_file(index: pa.RecordBatch, num_partitions: int) -> Callable[[int], PartitionRanges]:
    """Return a function that gives the ranges of a map file by its position.

    Args:
        index: All rows of an index.
        num_partitions: Partitions of the stage.
    """
    ranges = np.empty(index.num_rows, dtype=RANGE)
    for name in ("partition", *_OF_FILE):
        ranges[name] = values_of(index, name)
    files = values_of(index, "file")
    listed = np.flatnonzero(ranges["length"])
    # Stable: the ranges of a file stay in the order of their partitions.
    order = listed[np.argsort(files[listed], kind="stable")]
    ordered = files[order]

    def of(position: int) -> PartitionRanges:
        first, last = np.searchsorted(ordered, [position, position + 1])
        return PartitionRanges(num_partitions, ranges[order[first:last]].tobytes())

    return of


def _cuts(ends: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Divide partitions into slices of about `_SLICE_ROWS` rows, of whole partitions."""
    lo = 0
    while lo < len(ends):
        begin = int(ends[lo - 1]) if lo else 0
        hi = max(lo + 1, int(np.searchsorted(ends, begin + _SLICE_ROWS, side="right")))
        yield lo, hi
        lo = hi


def _index_batch(ranges: npt.NDArray[np.void], files: npt.NDArray[np.int32]) -> pa.RecordBatch:
    values = [ranges["partition"], files, *(ranges[name] for name in _OF_FILE)]
    # From buffers: `pa.array` would import pandas.
    arrays = [
        pa.Array.from_buffers(
            column.type, len(ranges), [None, pa.py_buffer(np.ascontiguousarray(column_values))]
        )
        for column, column_values in zip(INDEX_SCHEMA, values, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=INDEX_SCHEMA)


def _no_rows() -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.nulls(0, column.type) for column in INDEX_SCHEMA], schema=INDEX_SCHEMA
    )
