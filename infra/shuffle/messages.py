"""Decoding of IPC messages: in, the bytes of a range; out, its record batches, checked before.

A whole range is checked by the checksum in the index. A range too large for that comes in parts:
each message is checked by the checksum that it carries, and the index has the last word.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

import google_crc32c
import pyarrow as pa

from infra.shuffle.fetch import RangeRequest
from infra.shuffle.ipc_sink import MessageFormatError, message_checksum, unseal

_MAX_METADATA_BYTES = 1 << 20
_CORRUPT = "corrupt: its checksum does not fit"


def decode_whole(
    parts: Iterator[pa.Buffer],
    request: RangeRequest,
    schema: pa.Schema,
    positions: list[int] | None,
    compressed: bool,
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a range that comes in one buffer, without a copy if uncompressed.

    Raises:
        MessageFormatError: The bytes are not those that were written.
    """
    body = next(parts)
    if body.size != request.length:
        raise MessageFormatError(f"short: {body.size} bytes, expected {request.length}")
    if google_crc32c.value(body) != request.checksum:
        raise MessageFormatError(_CORRUPT)
    if positions and compressed:
        yield from _decode_columns(body, schema, positions)
        return
    source = pa.BufferReader(body)
    while source.tell() < body.size:
        batch = pa.ipc.read_record_batch(pa.ipc.read_message(source), schema)
        yield batch if positions is None else batch.select(positions)


def decode_stream(
    parts: Iterator[pa.Buffer],
    request: RangeRequest,
    schema: pa.Schema,
    positions: list[int] | None,
    compressed: bool,
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a large range message by message; memory: one message and one part.

    Raises:
        MessageFormatError: The bytes are not those that were written. Rows of messages that were
            right may have been yielded before.
    """
    reader = _PartReader(parts, request.length)
    checksum = 0
    while reader.remaining:
        try:
            message = pa.ipc.read_message(pa.PythonFile(reader, mode="r"))
        except EOFError as error:
            raise MessageFormatError("short: ends inside a message") from error
        except OSError as error:  # what Arrow raises for bytes that are no message
            raise MessageFormatError(f"corrupt: {error}") from error
        pieces = reader.take_pieces()
        _check_message(pieces)
        for piece in pieces:
            checksum = google_crc32c.extend(checksum, piece)
        if positions and compressed:
            yield from _decode_columns(message.serialize(), schema, positions)
            continue
        batch = pa.ipc.read_record_batch(message, schema)
        yield batch if positions is None else batch.select(positions)
    if checksum != request.checksum:
        raise MessageFormatError(_CORRUPT)


def _decode_columns(
    body: pa.Buffer, schema: pa.Schema, positions: list[int]
) -> Iterator[pa.RecordBatch]:
    """Yield batches of some columns, so that the others are not decompressed.

    Arrow selects columns only when it reads a stream, so the schema is put in front; that copies
    the compressed bytes, which is cheaper than to decompress columns that nobody asked for.
    """
    stream = pa.py_buffer(b"".join([schema.serialize(), body]))
    options = pa.ipc.IpcReadOptions(included_fields=sorted(set(positions)), use_threads=False)
    kept = sorted(set(positions))
    order = [kept.index(position) for position in positions]
    with pa.ipc.open_stream(pa.BufferReader(stream), options=options) as reader:
        for batch in reader:
            yield batch.select(order)


def _check_message(pieces: list[pa.Buffer]) -> None:
    """Raise unless the message's bytes fit the checksum in its metadata."""
    for position, piece in enumerate(pieces):
        # The metadata comes before the body, so the first mark is not user data.
        if piece.size <= _MAX_METADATA_BYTES and b"crc32c=" in (text := piece.to_pybytes()):
            metadata, expected = unseal(text)
            found = message_checksum([*pieces[:position], metadata, *pieces[position + 1 :]])
            if found != expected:
                raise MessageFormatError(_CORRUPT)
            return
    raise MessageFormatError("corrupt: a message carries no checksum")


class _PartReader(io.RawIOBase):
    """The parts of a range as a file; remembers the pieces that Arrow took from it."""

    def __init__(self, parts: Iterator[pa.Buffer], length: int) -> None:
        super().__init__()
        self._parts = parts
        self._part = pa.py_buffer(b"")
        self._pieces: list[pa.Buffer] = []
        self.remaining = length

    def readable(self) -> bool:
        """Always true."""
        return True

    def read(self, size: int = -1, /) -> pa.Buffer:
        """Return exactly `size` bytes."""
        if not 0 <= size <= self.remaining:
            raise MessageFormatError("corrupt: a message is longer than its range")
        self.remaining -= size
        pieces = []
        while size:
            if not self._part.size:
                self._part = next(self._parts)
            piece = self._part.slice(0, min(size, self._part.size))
            self._part = self._part.slice(piece.size)
            size -= piece.size
            pieces.append(piece)
        joined = pieces[0] if len(pieces) == 1 else pa.py_buffer(b"".join(pieces))
        self._pieces.append(joined)
        return joined

    def take_pieces(self) -> list[pa.Buffer]:
        """Return the pieces read since the last call."""
        pieces, self._pieces = self._pieces, []
        return pieces
