"""Decodes IPC messages of a range after checking their checksums.

A small range is checked whole by the checksum in the index. A larger one is read message by
message: each is checked by the checksum that it carries, and the index has the last word.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

import google_crc32c
import pyarrow as pa

from stagecoach.infra.shuffle.fetch import RangeBytes, RangeRequest
from stagecoach.infra.shuffle.ipc_sink import (
    MessageFormatError,
    message_checksum,
    message_seed,
    read_seal,
)
from stagecoach.infra.shuffle.stored_batch import StoredBatch

_MAX_METADATA_BYTES = 1 << 20
_CORRUPT = "corrupt: checksum mismatch"


class RangeDecoder:
    """Decodes ranges of files of one schema, one after the other.

    Arrow selects columns, and leaves its threads out (which cost more than they save for small
    batches, and the cores have tasks of their own), only when it reads a stream. So all ranges
    that are read in one go are one stream, with the schema in front; nothing is copied.
    """

    def __init__(self, schema: pa.Schema, positions: list[int] | None) -> None:
        """Prepare to decode.

        Args:
            schema: Columns of the files.
            positions: Those that are wanted, in this order; None for all.
        """
        self._schema = schema
        self._kept = None if positions is None else sorted(set(positions))
        self._picks = None
        if positions is not None and self._kept is not None:
            self._picks = [self._kept.index(position) for position in positions]
        self._bytes = _Buffers()
        self._reader: pa.ipc.RecordBatchStreamReader | None = None

    def decode_whole(self, content: RangeBytes, request: RangeRequest) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a range that is read in one go, without a copy if uncompressed.

        Raises:
            MessageFormatError: The bytes are not those that were written.
        """
        yield from self._decode(_checked_range(content, request))

    def decode_stream(self, content: RangeBytes, request: RangeRequest) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a large range message by message; memory: one message.

        Raises:
            MessageFormatError: The bytes are not those that were written. Rows of messages that
                were right may have been yielded before.
        """
        for message in _checked_messages(content, request):
            if self._picks is not None:
                yield from self._decode(message.serialize())
                continue
            yield pa.ipc.read_record_batch(message, self._schema)

    def _decode(self, body: pa.Buffer) -> Iterator[pa.RecordBatch]:
        """Yield the batches of whole messages."""
        if self._reader is None:
            options = pa.ipc.IpcReadOptions(included_fields=self._kept, use_threads=False)
            self._bytes.add(self._schema.serialize())
            source = pa.PythonFile(self._bytes, mode="r")
            self._reader = pa.ipc.open_stream(source, options=options)
        self._bytes.add(body)
        while self._bytes.remaining:
            try:
                batch = self._reader.read_next_batch()
            except StopIteration as error:
                raise MessageFormatError("corrupt: a stream ends within a range") from error
            yield batch if self._picks is None else batch.select(self._picks)


class StoredDecoder:
    """Checks ranges like `RangeDecoder`, and leaves their messages as they are.

    Args:
        schema: Columns of the files.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def decode_whole(self, content: RangeBytes, request: RangeRequest) -> Iterator[StoredBatch]:
        """Yield the batches of a range that is read in one go, without a copy.

        Raises:
            MessageFormatError: The bytes are not those that were written.
        """
        source = pa.BufferReader(_checked_range(content, request))
        while source.tell() < request.length:
            yield StoredBatch(pa.ipc.read_message(source), self._schema)

    def decode_stream(self, content: RangeBytes, request: RangeRequest) -> Iterator[StoredBatch]:
        """Yield the batches of a large range message by message; memory: one message.

        Raises:
            MessageFormatError: The bytes are not those that were written. Rows of messages that
                were right may have been yielded before.
        """
        for message in _checked_messages(content, request):
            yield StoredBatch(message, self._schema)


def _checked_range(content: RangeBytes, request: RangeRequest) -> pa.Buffer:
    """All bytes of a range, which are those that were written."""
    body = content.read(request.length)
    if body.size != request.length:
        raise MessageFormatError(f"short: {body.size} bytes, expected {request.length}")
    if google_crc32c.value(body) != request.checksum:
        raise MessageFormatError(_CORRUPT)
    return body


def _checked_messages(content: RangeBytes, request: RangeRequest) -> Iterator[pa.ipc.Message]:
    """The messages of a range, each checked by itself, and all of them at the end."""
    reader = _MessageReader(content, request.length)
    seed = message_seed(request.key.rsplit("/", 1)[-1])
    checksum = 0
    while reader.remaining:
        try:
            message = pa.ipc.read_message(pa.PythonFile(reader, mode="r"))
        except EOFError as error:
            raise MessageFormatError("short: ends inside a message") from error
        except OSError as error:  # what Arrow raises for bytes that are not a message
            raise MessageFormatError(f"corrupt: {error}") from error
        pieces = reader.take_pieces()
        _check_message(pieces, seed, request.partition)
        for piece in pieces:
            checksum = google_crc32c.extend(checksum, piece)
        yield message
    if checksum != request.checksum:
        raise MessageFormatError(_CORRUPT)


class _Buffers:
    """Buffers one after the other as a file; no read goes across their borders."""

    closed = False

    def __init__(self) -> None:
        self._buffer = pa.py_buffer(b"")
        self._position = self.remaining = 0

    def add(self, buffer: pa.Buffer) -> None:
        """Go on with `buffer`; what was added before has been read."""
        self._buffer = buffer
        self._position, self.remaining = 0, buffer.size

    def read(self, size: int = -1, /) -> pa.Buffer:
        """Return the next bytes, at most `size`."""
        piece = self._buffer.slice(self._position, min(size, self.remaining))
        self._position += piece.size
        self.remaining -= piece.size
        return piece


def _check_message(pieces: list[pa.Buffer], seed: int, partition: int) -> None:
    """Raise unless it is a message of that file and partition, as it was written."""
    for position, piece in enumerate(pieces):
        # The metadata comes before the body, so the first mark is not user data.
        if piece.size <= _MAX_METADATA_BYTES and b"crc32c=" in (text := piece.to_pybytes()):
            seal = read_seal(text)
            whole = [*pieces[:position], seal.unsealed, *pieces[position + 1 :]]
            if message_checksum(whole) ^ seed != seal.checksum:
                raise MessageFormatError(_CORRUPT)
            if seal.partition != partition:
                raise MessageFormatError(f"corrupt: rows of partition {seal.partition}")
            return
    raise MessageFormatError("corrupt: a message carries no checksum")


class _MessageReader(io.RawIOBase):
    """The bytes of a range as a file; remembers the pieces that Arrow took from it."""

    def __init__(self, content: RangeBytes, length: int) -> None:
        super().__init__()
        self._content = content
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
        piece = self._content.read(size)
        if piece.size != size:
            raise MessageFormatError(f"short: {piece.size} bytes, expected {size}")
        self._pieces.append(piece)
        return piece

    def take_pieces(self) -> list[pa.Buffer]:
        """Return the pieces read since the last call."""
        pieces, self._pieces = self._pieces, []
        return pieces
