"""The columnar index of a stage, an Arrow IPC file that tells where each range lies.

Rows are partition-major and dense (row `p * files + f`), and lie in batches of about a megabyte
whose byte ranges and checksums the manifest knows, so that a reader of few partitions out of a
large index fetches a slice in one request instead of M×N entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import google_crc32c
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stagecoach.infra.shuffle.map_file import PartitionRanges
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
    num_partitions = len(files[0]) if files else 0
    step = max(1, _SLICE_ROWS // max(1, len(files)))
    columns = {
        name: np.array([getattr(ranges, name) for ranges in files], dtype=np.int64)
        for name in ("offsets", "lengths", "rows", "checksums")
    }
    sink = pa.BufferOutputStream()
    bounds: list[tuple[int, int, int, int]] = []
    with pa.ipc.new_file(sink, INDEX_SCHEMA) as writer:
        # Arrow writes the file header with the first batch: an empty one makes positions known.
        writer.write_batch(_index_batch(columns, 0, 0))
        for lo in range(0, num_partitions, step):
            hi = min(lo + step, num_partitions)
            start = sink.tell()
            writer.write_batch(_index_batch(columns, lo, hi))
            bounds.append((lo, hi, start, sink.tell() - start))
    content = sink.getvalue().to_pybytes()
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
    return Index(content, slices)


def read_index(
    store: ObjectStore,
    key: str,
    slices: Sequence[IndexSlice],
    *,
    num_files: int,
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
    first = (lo - wanted[0].lo) * num_files
    found = batch.slice(first, (hi - lo) * num_files)
    if found.num_rows != (hi - lo) * num_files:
        raise IndexDamagedError(f"index lists {found.num_rows} ranges, not {(hi - lo) * num_files}")
    return found


def _index_batch(columns: dict[str, npt.NDArray[np.int64]], lo: int, hi: int) -> pa.RecordBatch:
    num_files = len(columns["offsets"])
    if not num_files:
        return _no_rows()
    partitions = np.repeat(np.arange(lo, hi, dtype=np.int32), num_files)
    files = np.tile(np.arange(num_files, dtype=np.int32), hi - lo)

    def flat(name: str, dtype: type[np.int64] | type[np.uint32]) -> npt.NDArray[Any]:
        return np.ascontiguousarray(columns[name][:, lo:hi].T).reshape(-1).astype(dtype)

    values = [
        partitions,
        files,
        flat("offsets", np.int64),
        flat("lengths", np.int64),
        flat("rows", np.int64),
        flat("checksums", np.uint32),
    ]
    # From buffers: `pa.array` would import pandas.
    arrays = [
        pa.Array.from_buffers(column.type, len(column_values), [None, pa.py_buffer(column_values)])
        for column, column_values in zip(INDEX_SCHEMA, values, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=INDEX_SCHEMA)


def _no_rows() -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.nulls(0, column.type) for column in INDEX_SCHEMA], schema=INDEX_SCHEMA
    )
