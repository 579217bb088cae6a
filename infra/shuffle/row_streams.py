"""Turns Arrow columns into streams of bytes whose slices are joined cheaply.

A column is one or more streams: its valid bits (a byte each), its values, the lengths and the bytes
of its texts, and so on through nested types. A range of its rows is a range of bytes in each, so
the rows of a partition from many chunks are joined without an Arrow object for each slice of each
column. `stagecoach.infra.shuffle.message_format` makes messages of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stagecoach.infra.shuffle.encoding import Piece, items_of, offset_type

_Bounds = npt.NDArray[np.int64]

Part = bytes | memoryview | int
"""Bytes of a stream; a number for so many bits that are all set."""


class RowSlices(NamedTuple):
    """Some rows.

    Attributes:
        num_rows: How many.
        num_bytes: What they take as a batch, about.
        parts: Of each stream of their schema, its bytes.
    """

    num_rows: int
    num_bytes: int
    parts: Sequence[Part]


class Stream(NamedTuple):
    """One stream of a batch.

    Attributes:
        content: Its bytes; of bits, the bitmap; None for bits that are all set.
        ends: Where each group begins in it, and where the last one ends: bytes, or bits.
        is_bits: Whether its content is a bitmap, which becomes a byte for each bit when joined.
    """

    content: memoryview | None
    ends: _Bounds
    is_bits: bool = False

    def cut_all(self, ends: Sequence[int]) -> list[Part]:
        """Return what lies between each two neighbouring ends."""
        content = self.content
        if content is None:
            return [end - start for start, end in itertools.pairwise(ends)]
        if self.is_bits:
            return [_unpack(content, start, end) for start, end in itertools.pairwise(ends)]
        return [content[start:end] for start, end in itertools.pairwise(ends)]


class GroupedStreams:
    """The streams of batches whose rows are grouped, to be joined group by group."""

    def __init__(self, batches: Sequence[Sequence[Stream]]) -> None:
        """Prepare to join.

        Args:
            batches: Of each batch, its streams.
        """
        # Of each stream: how many bits of each group are set, or else its pieces.
        self._streams: list[tuple[list[int], list[tuple[Stream, list[int]]]]] = []
        for streams in zip(*batches, strict=True):
            if all(stream.content is None for stream in streams):
                counts = np.diff(np.sum([stream.ends for stream in streams], axis=0))
                self._streams.append((counts.tolist(), []))
            else:
                pieces = [(stream, stream.ends.tolist()) for stream in streams]
                self._streams.append(([], pieces))

    def join(self, first: int, end: int) -> list[tuple[Part, ...]]:
        """Return the streams of each of the groups `first .. end - 1`."""
        # Stream by stream: what the next group needs of it lies behind what this one does.
        found: list[list[Part]] = []
        for counts, pieces in self._streams:
            if counts:
                found.append([*counts[first:end]])
                continue
            cuts = [stream.cut_all(ends[first : end + 1]) for stream, ends in pieces]
            found.append([_join(parts) for parts in zip(*cuts, strict=True)])
        return list(zip(*found, strict=True)) if found else [()] * (end - first)


def take_apart(batch: pa.RecordBatch, bounds: _Bounds) -> list[Stream]:
    """Return the streams of a batch in plain encodings.

    Args:
        batch: The rows.
        bounds: The first row of each group, and the number of rows.
    """
    streams: list[Stream] = []
    for column in batch.columns:
        _take_apart(column, bounds, streams)
    return streams


def whole(piece: Piece) -> RowSlices:
    """Return the rows of a batch in plain encodings."""
    bounds = np.array([0, piece.batch.num_rows], dtype=np.int64)
    streams = take_apart(piece.batch, bounds)
    parts = [part for stream in streams for part in stream.cut_all(stream.ends.tolist())]
    return RowSlices(piece.batch.num_rows, piece.num_bytes, parts)


def joined(slices: Iterable[RowSlices], target_rows: int, target_bytes: int) -> Iterator[RowSlices]:
    """Yield the same rows in the same order, joined up to the target size."""
    pending: list[RowSlices] = []
    num_rows = num_bytes = 0
    for rows in slices:
        pending.append(rows)
        num_rows += rows.num_rows
        num_bytes += rows.num_bytes
        if num_rows >= target_rows or num_bytes >= target_bytes:
            yield _join_slices(pending)
            pending, num_rows, num_bytes = [], 0, 0
    if pending:
        yield _join_slices(pending)


def _join_slices(slices: Sequence[RowSlices]) -> RowSlices:
    if len(slices) == 1:
        return slices[0]
    return RowSlices(
        sum(rows.num_rows for rows in slices),
        sum(rows.num_bytes for rows in slices),
        [_join(parts) for parts in zip(*(rows.parts for rows in slices), strict=True)],
    )


def _join(parts: Sequence[Part]) -> Part:
    """Return the pieces of a stream as one."""
    try:
        return b"".join(parts)  # type: ignore[arg-type]
    except TypeError:  # bits, of which those of some batches are all set
        counts = [part for part in parts if isinstance(part, int)]
    if len(counts) == len(parts):
        return sum(counts)
    return b"".join([b"\1" * part if isinstance(part, int) else part for part in parts])


def _take_apart(array: pa.Array, bounds: _Bounds, streams: list[Stream]) -> None:
    """Append the streams of an array; `bounds` count from its first row."""
    kind, count = array.type, len(array)
    if isinstance(kind, pa.BaseExtensionType):
        _take_apart(array.storage, bounds, streams)
        return
    if pa.types.is_null(kind):
        return
    places = bounds + array.offset
    buffers = array.buffers()
    bits = _view(buffers[0]) if array.null_count else None
    streams.append(Stream(bits, places, is_bits=True))
    if pa.types.is_struct(kind):
        for position in range(kind.num_fields):
            _take_apart(array.field(position), bounds, streams)
    elif pa.types.is_fixed_size_list(kind):
        _take_apart(array.values, places * kind.list_size, streams)
    elif pa.types.is_boolean(kind):
        streams.append(Stream(_view(buffers[1]), places, is_bits=True))
    elif (dtype := offset_type(kind)) is None:
        streams.append(Stream(_view(buffers[1]), places * (kind.bit_width // 8)))
    else:
        offsets = np.zeros(1, dtype=dtype)
        if count:
            offsets = np.frombuffer(
                buffers[1], dtype=dtype, count=count + 1, offset=array.offset * dtype.itemsize
            )
        streams.append(Stream(np.diff(offsets).data.cast("B"), bounds * dtype.itemsize))
        inner = offsets[bounds].astype(np.int64)
        if pa.types.is_nested(kind):
            _take_apart(items_of(array), inner, streams)
        else:
            streams.append(Stream(_view(buffers[2]), inner))


def _view(buffer: pa.Buffer | None) -> memoryview:
    return memoryview(b"" if buffer is None else buffer).cast("B")


def _unpack(bitmap: memoryview, start: int, end: int) -> memoryview:
    """Return the bits `start .. end - 1` of a bitmap, each as a byte."""
    first = start // 8
    packed = np.frombuffer(bitmap[first : (end + 7) // 8], dtype=np.uint8)
    bits = np.unpackbits(packed, bitorder="little")
    return bits[start - 8 * first : end - 8 * first].data
