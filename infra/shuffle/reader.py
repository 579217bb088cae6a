"""Reads ranges of partitions as checked record batches.

Rows come file by file in task order, and inside a file partition by partition, each in the order
in which its task produced it: the order is a function of the manifest alone. The neighbouring
partitions of one file are one byte range, so a read costs one request per map file (more where it
reads more than half of `memory_bytes` of a file), of which a few are in flight within that bound.
Local files are memory maps.

Every byte is checked before it is decoded: a range up to `WHOLE_RANGE_BYTES` by its checksum in
the index; a larger one message by message by the checksums inside, and by the index at its end. A
file that is missing, short or corrupt is a `ShuffleReadError` naming the stage to run again.
Nothing is ever listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

import google_crc32c
import numpy as np
import pyarrow as pa

from stagecoach.infra.errors import ShuffleReadError
from stagecoach.infra.shuffle.commit import load_blocks, load_index
from stagecoach.infra.shuffle.fetch import (
    DEFAULT_MEMORY_BYTES,
    RangeBytes,
    RangeLostError,
    RangeRequest,
    fetch_ranges,
    request_bytes,
)
from stagecoach.infra.shuffle.index import values_of
from stagecoach.infra.shuffle.ipc_sink import MessageFormatError
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.shuffle.messages import RangeDecoder, StoredDecoder
from stagecoach.infra.shuffle.sorted_blocks import Block
from stagecoach.infra.shuffle.stored_batch import StoredBatch
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore
from stagecoach.planner.errors import StagecoachError

WHOLE_RANGE_BYTES = 16 << 20
"""Largest range that is checked at once, in bytes; the reader holds it while it decodes it."""


class ReadRequestError(StagecoachError):
    """A read asks for partitions, files or columns that the manifest does not have."""


def read_partitions(
    store: ObjectStore,
    manifest: Manifest,
    lo: int,
    hi: int,
    *,
    columns: Sequence[str] | None = None,
    files: range | None = None,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the schema and an iterator over the rows of partitions `lo .. hi-1`.

    Args:
        store: Where the stage's files are.
        manifest: The stage's commit.
        lo: First partition.
        hi: Partition after the last.
        columns: Names of the wanted columns, in this order; all if left out.
        files: Positions of the wanted map files (a skewed partition is split this way, and a
            sort-preserving merge reads each file as a stream of its own); all if left out.
        memory_bytes: Bound of the stored bytes that are on their way or looked at.

    Raises:
        ReadRequestError: A partition, file or column does not exist.
        ShuffleReadError: From the iterator, or at once for the index: data is lost.
    """
    files = range(len(manifest.files)) if files is None else files
    if not 0 <= lo <= hi <= manifest.num_partitions:
        raise ReadRequestError(
            f"partitions {lo} to {hi} of {manifest.stage_name}, which has {manifest.num_partitions}"
        )
    _check_positions(manifest, files)
    positions = _column_positions(manifest, columns)
    schema = manifest.schema
    if positions is not None:
        schema = pa.schema([schema.field(position) for position in positions])
    requests = _plan_requests(store, manifest, lo, hi, files)
    decoder = RangeDecoder(manifest.schema, positions)
    return schema, _read(store, manifest, requests, decoder, memory_bytes)


def read_stored(
    store: ObjectStore,
    manifest: Manifest,
    files: range,
    *,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
) -> Iterator[StoredBatch]:
    """Yield the rows of map files, checked but not decoded.

    Args:
        store: Where the stage's files are.
        manifest: The stage's commit.
        files: Positions of the wanted map files.
        memory_bytes: Bound of the stored bytes that are on their way or looked at.

    Raises:
        ReadRequestError: A file does not exist.
        ShuffleReadError: Data is lost.
    """
    _check_positions(manifest, files)
    requests = _plan_requests(store, manifest, 0, manifest.num_partitions, files)
    return _read(store, manifest, requests, StoredDecoder(manifest.schema), memory_bytes)


def read_blocks(
    store: ObjectStore,
    manifest: Manifest,
    blocks: Sequence[Block],
    *,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some messages of map files with one partition, in the order given.

    Args:
        store: Where the stage's files are.
        manifest: The stage's commit.
        blocks: The messages.
        memory_bytes: Bound of the stored bytes that are on their way or looked at.

    Raises:
        ShuffleReadError: Data is lost.
    """
    names = [manifest.file_key(file) for file in manifest.files]
    requests = [
        RangeRequest(key=names[block.file], partition=0, **block._asdict()) for block in blocks
    ]
    decoder = RangeDecoder(manifest.schema, None)
    return _read(store, manifest, requests, decoder, memory_bytes)


def read_table(
    store: ObjectStore,
    manifest: Manifest,
    lo: int = 0,
    hi: int | None = None,
    *,
    columns: Sequence[str] | None = None,
    files: range | None = None,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
) -> pa.Table:
    """Return the rows of partitions `lo .. hi-1` (all by default) as a table.

    Raises:
        ReadRequestError: A partition, file or column does not exist.
        ShuffleReadError: Data is lost.
    """
    hi = manifest.num_partitions if hi is None else hi
    schema, batches = read_partitions(
        store, manifest, lo, hi, columns=columns, files=files, memory_bytes=memory_bytes
    )
    return pa.Table.from_batches(batches, schema=schema)


def verify_files(store: ObjectStore, manifest: Manifest) -> None:
    """Check size and checksum of every map file whole, and all of the index.

    Raises:
        ShuffleReadError: A file is missing, short or corrupt.
    """
    load_index(store, manifest)
    load_blocks(store, manifest)
    for position in range(len(manifest.files)):
        verify_file(store, manifest, position)


def verify_file(store: ObjectStore, manifest: Manifest, position: int) -> None:
    """Check size and checksum of one map file.

    Raises:
        ShuffleReadError: It is missing, short or corrupt.
    """
    file = manifest.files[position]
    key = manifest.file_key(file)
    checksum, offset = 0, 0
    while offset < file.num_bytes:
        try:
            part = store.read_bytes(key, offset, min(WHOLE_RANGE_BYTES, file.num_bytes - offset))
        except ObjectMissingError as error:
            raise _lost(store, manifest, position, None, "not found") from error
        if not part:
            problem = f"short: {offset} bytes, expected {file.num_bytes}"
            raise _lost(store, manifest, position, None, problem)
        checksum = google_crc32c.extend(checksum, part)
        offset += len(part)
    size = store.size(key)
    if size != file.num_bytes:
        problem = f"{size} bytes, expected {file.num_bytes}"
        raise _lost(store, manifest, position, None, problem)
    if checksum != file.checksum:
        raise _lost(store, manifest, position, None, "corrupt: checksum mismatch")


def _check_positions(manifest: Manifest, files: range) -> None:
    if any(not 0 <= position < len(manifest.files) for position in files):
        raise ReadRequestError(
            f"files {files} of {manifest.stage_name}, which has {len(manifest.files)}"
        )


def _column_positions(manifest: Manifest, columns: Sequence[str] | None) -> list[int] | None:
    if columns is None or list(columns) == manifest.schema.names:
        return None
    positions = [manifest.schema.get_field_index(name) for name in columns]
    if -1 in positions:
        missing = columns[positions.index(-1)]
        raise ReadRequestError(
            f"column {missing!r} of {manifest.stage_name}; available: "
            f"{', '.join(manifest.schema.names)}"
        )
    return positions


def _plan_requests(
    store: ObjectStore, manifest: Manifest, lo: int, hi: int, files: range
) -> list[RangeRequest]:
    """Return the non-empty ranges in reading order."""
    if lo == hi or not len(files):
        return []
    index = load_index(store, manifest, lo, hi)
    position, partition, lengths = (
        values_of(index, name) for name in ("file", "partition", "length")
    )
    wanted = np.flatnonzero((lengths > 0) & (position >= files.start) & (position < files.stop))
    # The index goes by partition, a read by file.
    order = wanted[np.lexsort((partition[wanted], position[wanted]))]
    names = ("file", "partition", "offset", "length", "checksum", "rows")
    ranges = zip(*(values_of(index, name)[order].tolist() for name in names), strict=True)
    return [
        RangeRequest(
            key=manifest.file_key(manifest.files[file]),
            file=file,
            partition=partition,
            offset=offset,
            length=length,
            checksum=checksum,
            rows=rows,
        )
        for file, partition, offset, length, checksum, rows in ranges
    ]


class _Batch(Protocol):
    """A batch, decoded or not."""

    @property
    def num_rows(self) -> int: ...


_B = TypeVar("_B", bound=_Batch, covariant=True)


class _Decoder(Protocol[_B]):
    """Makes batches of checked ranges."""

    def decode_whole(self, content: RangeBytes, request: RangeRequest) -> Iterator[_B]: ...

    def decode_stream(self, content: RangeBytes, request: RangeRequest) -> Iterator[_B]: ...


def _read(
    store: ObjectStore,
    manifest: Manifest,
    requests: list[RangeRequest],
    decoder: _Decoder[_B],
    memory_bytes: int,
) -> Iterator[_B]:
    sizes = [file.num_bytes for file in manifest.files]
    whole_bytes = min(WHOLE_RANGE_BYTES, request_bytes(memory_bytes))
    current = None
    try:
        for current, content in fetch_ranges(store, requests, sizes, memory_bytes):
            rows = 0
            is_small = current.length <= whole_bytes
            decode = decoder.decode_whole if is_small else decoder.decode_stream
            for batch in decode(content, current):
                rows += batch.num_rows
                yield batch
            if rows != current.rows:
                raise MessageFormatError(f"corrupt: {rows} rows, expected {current.rows}")
    except RangeLostError as error:
        lost = error.request
        raise _lost(store, manifest, lost.file, lost.partition, error.problem) from error
    except (MessageFormatError, pa.ArrowException) as error:
        if current is None:
            raise
        raise _lost(store, manifest, current.file, current.partition, str(error)) from error


def _lost(
    store: ObjectStore, manifest: Manifest, file: int, partition: int | None, problem: str
) -> ShuffleReadError:
    found = manifest.files[file]
    uri = store.uri(manifest.file_key(found))
    return ShuffleReadError(manifest.stage_name, found.task_index, partition, uri, problem)
