"""Arrow IPC files with checksums: in, record batches; out, messages whose place and CRC are known.

An IPC footer's metadata is fixed before writing, so each batch carries its own in the message:
`stagecoach: partition=00012;crc32c=89abcdef`, the CRC-32C of the whole message with the eight hex
digits replaced by `########`. That makes a file self-describing: each message can be checked before
it is decoded, and the index of a file can be rebuilt from the file alone.

Messages come from Arrow's stream writer and the frame around them is ours, so that a message can be
made at one time and copied into a file at another:

    ARROW1 | schema message | messages … | end of stream | footer | its length | ARROW1
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import google_crc32c
import pyarrow as pa

from infra.shuffle.map_file import Codec
from infra.storage.object_store import ByteSink
from planner.errors import StagecoachError

METADATA_KEY = "stagecoach"
PLACEHOLDER = b"########"
_MARK = b"crc32c="
_MAGIC = b"ARROW1"
_HEADER = _MAGIC + bytes(2)
_END_OF_STREAM = b"\xff\xff\xff\xff" + bytes(4)
_PREFIX_BYTES = 8  # of a message: a marker and the length of its metadata
_JOIN_BYTES = 1 << 20
"""Messages up to this size are made one piece: a copy costs less than many small writes."""

Pieces = Sequence[Any]
"""A message as bytes-like objects in order; its metadata is in the first ones."""


class MessageFormatError(StagecoachError):
    """A message is not one that this module wrote."""


class _PieceSink:
    """A file to which Arrow writes, as little as it needs: it calls `write` for every buffer."""

    closed = False

    def __init__(self) -> None:
        self.pieces: list[Any] = []
        self.write = self.pieces.append

    def take(self) -> list[Any]:
        """Return what was written since the last call."""
        pieces = self.pieces[:]
        self.pieces.clear()
        return pieces


class MessageEncoder:
    """Makes IPC messages of record batches of one schema."""

    def __init__(self, schema: pa.Schema, codec: Codec) -> None:
        self._sink = _PieceSink()
        sink = pa.PythonFile(self._sink, mode="w")
        self._writer = pa.ipc.new_stream(sink, schema, options=write_options(codec))
        # Arrow writes the schema together with the first batch.
        columns = [pa.nulls(0, kind) for kind in schema.types]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
        self._sink.take()

    def encode(self, batch: pa.RecordBatch, partition: int) -> Pieces:
        """Return the sealed message of a batch."""
        metadata = {METADATA_KEY: f"partition={partition:05d};crc32c={PLACEHOLDER.decode()}"}
        self._writer.write_batch(batch, custom_metadata=metadata)
        pieces = self._sink.take()
        if sum(map(len, pieces)) <= _JOIN_BYTES:
            pieces = [b"".join(pieces)]
        _seal(pieces)
        return pieces


class MapFileSink:
    """An Arrow IPC file under construction that knows the byte range of every message."""

    def __init__(self, target: ByteSink, schema: pa.Schema, codec: Codec) -> None:
        self._target = target
        self._schema = schema
        self._encoder = MessageEncoder(schema, codec)
        self._position = 0
        self._checksum = 0
        self._blocks: list[tuple[int, int, int]] = []
        self._hand_on(_HEADER)
        self._hand_on(schema.serialize().to_pybytes())

    @property
    def num_bytes(self) -> int:
        """Bytes written so far, where the next message begins."""
        return self._position

    @property
    def checksum(self) -> int:
        """CRC-32C of all of them."""
        return self._checksum

    def write(self, batch: pa.RecordBatch, partition: int, range_checksum: int) -> tuple[int, int]:
        """Append a batch; return its length in bytes and the partition's CRC-32C with it."""
        return self.write_message(self._encoder.encode(batch, partition), range_checksum)

    def write_message(self, pieces: Pieces, range_checksum: int) -> tuple[int, int]:
        """Append a sealed message of this file's schema and codec, as `write` does a batch."""
        start = self._position
        metadata_bytes = _PREFIX_BYTES + _metadata_length(pieces)
        for piece in pieces:
            range_checksum = google_crc32c.extend(range_checksum, piece)
            self._hand_on(piece)
        length = self._position - start
        self._blocks.append((start, metadata_bytes, length - metadata_bytes))
        return length, range_checksum

    def close(self) -> None:
        """Write the footer; the target stays open."""
        footer = _footer(self._schema, self._blocks)
        self._hand_on(_END_OF_STREAM)
        self._hand_on(footer + struct.pack("<i", len(footer)) + _MAGIC)

    def _hand_on(self, data: Any) -> None:
        self._checksum = google_crc32c.extend(self._checksum, data)
        self._position += len(data)
        self._target.write(data)


def write_options(codec: Codec) -> pa.ipc.IpcWriteOptions:
    """Return Arrow's options for a codec; tasks are the unit of parallelism, so no threads."""
    return pa.ipc.IpcWriteOptions(compression=None if codec == "none" else codec, use_threads=False)


def message_checksum(pieces: Iterable[Any]) -> int:
    """Return the CRC-32C of the pieces (bytes or Arrow buffers) in order."""
    checksum = 0
    for piece in pieces:
        checksum = google_crc32c.extend(checksum, piece)
    return checksum


def unseal(metadata: bytes) -> tuple[bytes, int]:
    """Return a message's metadata with the placeholder put back, and the CRC-32C found there.

    Raises:
        MessageFormatError: There is no checksum.
    """
    start = metadata.find(_MARK) + len(_MARK)
    digits = metadata[start : start + len(PLACEHOLDER)]
    try:
        if start < len(_MARK):
            raise ValueError("no checksum")
        checksum = int(digits, 16)
    except ValueError as error:
        raise MessageFormatError("a message carries no checksum") from error
    return metadata[:start] + PLACEHOLDER + metadata[start + len(PLACEHOLDER) :], checksum


def _seal(pieces: list[Any]) -> None:
    """Put the checksum of the message in place of its placeholder."""
    checksum = message_checksum(pieces)
    for position, piece in enumerate(pieces):
        # The metadata comes before the body, so the first mark is not user data.
        if isinstance(piece, bytes) and (found := piece.find(_MARK + PLACEHOLDER)) >= 0:
            start = found + len(_MARK)
            sealed = bytearray(piece)
            sealed[start : start + len(PLACEHOLDER)] = f"{checksum:08x}".encode()
            pieces[position] = bytes(sealed)
            return
    raise MessageFormatError("Arrow wrote a message without its custom metadata")


def _metadata_length(pieces: Pieces) -> int:
    """The length of a message's metadata, which its prefix tells."""
    prefix = b""
    for piece in pieces:
        prefix += bytes(memoryview(piece)[: _PREFIX_BYTES - len(prefix)])
        if len(prefix) == _PREFIX_BYTES:
            break
    return int(struct.unpack_from("<i", prefix, 4)[0])


def _footer(schema: pa.Schema, blocks: Sequence[tuple[int, int, int]]) -> bytes:
    """The flatbuffer `Footer` of a file: Arrow's own for an empty file, with our list of messages.

    Args:
        schema: Columns of the file.
        blocks: Position, length of the metadata and of the body of each message.
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema):
        pass
    content = sink.getvalue().to_pybytes()
    end = len(content) - len(_MAGIC) - 4
    footer = bytearray(content[end - struct.unpack_from("<i", content, end)[0] : end])
    # A table begins with the way back to its list of fields; `recordBatches` is field 3 of it.
    table = struct.unpack_from("<I", footer, 0)[0]
    fields = table - struct.unpack_from("<i", footer, table)[0]
    place = table + struct.unpack_from("<H", footer, fields + 4 + 2 * 3)[0]
    # A new list at the end: its length, then structs, which must begin at a multiple of 8.
    footer += bytes(-(len(footer) + 4) % 8)
    struct.pack_into("<I", footer, place, len(footer) - place)
    footer += struct.pack("<I", len(blocks))
    for block in blocks:
        footer += struct.pack("<qi4xq", *block)
    return bytes(footer)
