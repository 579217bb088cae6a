"""`FlightData`: rows as clients get them, an IPC message in two fields of a protobuf message.

Batches that are stored compressed are passed on as they are, so that nobody decompresses and copies
what the client decompresses anyway. Others are encoded without compression. A message of rows is
large, so it is put together here in one copy instead of by the library of protobuf.

    FlightData    2 metadata of the IPC message   3 metadata of the application   1000 its body
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from stagecoach.infra.shuffle.stored_batch import StoredBatch

_METADATA_TAG = b"\x12"
_BODY_TAG = b"\xc2\x3e"
_PREFIX_BYTES = 8  # of an encapsulated message: a marker and the length of its metadata
_MARKER = b"\xff\xff\xff\xff"

Rows: TypeAlias = StoredBatch | pa.RecordBatch


@dataclass(frozen=True)
class FlightMessage:
    """A batch on its way to a client.

    Args:
        content: A message `FlightData`.
        num_rows: Rows in it.
        nbytes: Bytes of these rows in memory.
    """

    content: bytes
    num_rows: int
    nbytes: int


def schema_message(schema: pa.Schema) -> bytes:
    """Return the first message of a stream."""
    message = pa.ipc.read_message(schema.serialize())
    return _flight_data(message.metadata, ())


def encoded(
    rows: Iterable[Rows], schema: pa.Schema, most: int, *, compressed: bool
) -> Iterator[FlightMessage]:
    """Yield messages for rows, each of so many bytes at most, or of one row.

    Args:
        rows: The rows.
        schema: Their columns.
        most: Bytes of the rows of a message in memory.
        compressed: Whether the client takes compressed messages.
    """
    encoder = _Encoder(schema)
    for found in rows:
        if isinstance(found, StoredBatch):
            small = found.nbytes <= most or found.num_rows <= 1
            if small and (compressed or not found.is_compressed):
                message = found.message
                body = () if message.body is None else (message.body,)
                content = _flight_data(message.metadata, body)
                yield FlightMessage(content, found.num_rows, found.nbytes)
                continue
            found = found.decode()
        batch = pa.RecordBatch.from_arrays(found.columns, schema=schema)
        for piece in pieces(iter([batch]), most):
            yield FlightMessage(encoder.encode(piece), piece.num_rows, piece.nbytes)


def pieces(batches: Iterator[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches of so many bytes at most, or of one row."""
    for batch in batches:
        yield from _halves(batch, most)


def ipc_message(metadata: bytes, body: bytes) -> bytes:
    """Return the IPC message, as it is in a stream, whose parts a client has sent."""
    padded = metadata + bytes(-len(metadata) % 8)
    return b"".join((_MARKER, struct.pack("<i", len(padded)), padded, body))


class _Encoder:
    """Makes messages of batches of one schema, without compression."""

    def __init__(self, schema: pa.Schema) -> None:
        self._pieces: list[Any] = []
        target = pa.PythonFile(_Target(self._pieces), mode="w")
        options = pa.ipc.IpcWriteOptions(use_threads=False)
        self._writer = pa.ipc.new_stream(target, schema, options=options)
        # With its first batch Arrow writes the schema, which clients have got already.
        self._left_out = schema.serialize().size

    def encode(self, batch: pa.RecordBatch) -> bytes:
        """Return a message `FlightData`."""
        self._pieces.clear()
        self._writer.write_batch(batch)
        found = iter(self._pieces)
        while self._left_out > 0:
            self._left_out -= len(next(found))
        head = b""
        while len(head) < _PREFIX_BYTES or len(head) < _end(head):
            head += bytes(next(found))
        end = _end(head)
        content = _flight_data(head[_PREFIX_BYTES:end], (head[end:], *found))
        self._pieces.clear()
        return content


def _end(head: bytes) -> int:
    """Where the metadata ends of a message that begins like that."""
    return _PREFIX_BYTES + int(struct.unpack_from("<i", head, 4)[0])


class _Target:
    """What Arrow writes to: a list of pieces, none of them copied."""

    closed = False

    def __init__(self, found: list[Any]) -> None:
        self._pieces = found

    def write(self, piece: Any) -> int:
        """Take the next piece."""
        self._pieces.append(piece)
        return len(piece)

    def flush(self) -> None:
        """Nothing waits."""


def _flight_data(metadata: Any, body: Iterable[Any]) -> bytes:
    parts = tuple(body)
    size = sum(len(part) for part in parts)
    head = (_METADATA_TAG, _varint(len(metadata)), metadata)
    return b"".join((*head, _BODY_TAG, _varint(size), *parts))


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def _halves(batch: pa.RecordBatch, most: int) -> Iterator[pa.RecordBatch]:
    if batch.num_rows <= 1 or batch.nbytes <= most:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _halves(batch.slice(0, half), most)
    yield from _halves(batch.slice(half), most)
