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

from infra.shuffle.encoding import Piece
from infra.shuffle.map_file import Codec
from infra.storage.object_store import ByteSink
from planner.errors import StagecoachError

METADATA_KEY = "stagecoach"
PLACEHOLDER = b"########"
_MARK = b"crc32c="
_MAGIC = b"ARROW1"
_HEADER = _MAGIC + bytes(2)
_END_OF_STREAM = b"\xff\xff\xff\xff" + bytes(4)
_MARKER = 0xFFFF_FFFF
_PREFIX_BYTES = 8  # of a message: a marker and the length of its metadata
_WRITE_BYTES = 512 << 10
"""What is smaller is collected before it is written."""
_SCRATCH_BYTES = 1 << 20
"""Where messages are made: it stays in the processor's cache."""
_COLUMN_BYTES = 512
"""About what a column adds to a message: its metadata and the frames of its buffers."""


class MessageFormatError(StagecoachError):
    """A message is not one that this module wrote."""


class MessageEncoder:
    """Makes IPC messages of record batches of one schema, one after the other in one buffer."""

    def __init__(self, schema: pa.Schema, codec: Codec) -> None:
        self._schema = schema
        self._options = write_options(codec)
        self._schema_bytes = schema.serialize().size
        self._scratch = pa.allocate_buffer(0)
        self._position = 0
        self._stream: tuple[pa.ipc.RecordBatchStreamWriter, pa.FixedSizeBufferWriter] | None = None

    def encode(self, piece: Piece, partition: int) -> pa.Buffer:
        """Return the sealed message of a batch; it stands until the next one is made."""
        metadata = {METADATA_KEY: f"partition={partition:05d};crc32c={PLACEHOLDER.decode()}"}
        expected = piece.num_bytes + piece.num_bytes // 128
        try:
            return self._write(piece.batch, metadata, expected)
        except OSError:  # the buffer is full: how much a codec adds to a buffer is a guess
            most = 2 * max(expected, pa.ipc.get_record_batch_size(piece.batch))
            self._stream = None
            return self._write(piece.batch, metadata, most + len(self._schema.names) * 4096)

    def _write(
        self, batch: pa.RecordBatch, metadata: dict[str, str], expected_bytes: int
    ) -> pa.Buffer:
        expected_bytes += (len(self._schema) + 4) * _COLUMN_BYTES
        if self._stream is None or self._position + expected_bytes > self._scratch.size:
            self._stream = self._begin(expected_bytes)
        writer, sink = self._stream
        start = self._position
        writer.write_batch(batch, custom_metadata=metadata)
        self._position = sink.tell()
        message = self._scratch.slice(start, self._position - start)
        place, checksum = _checksum_place(message), google_crc32c.value(message)
        digits = slice(start + place, start + place + len(PLACEHOLDER))
        memoryview(self._scratch).cast("B")[digits] = b"%08x" % checksum
        return message

    def _begin(
        self, expected_bytes: int
    ) -> tuple[pa.ipc.RecordBatchStreamWriter, pa.FixedSizeBufferWriter]:
        """Start again at the beginning of the buffer, of a larger one if need be."""
        # Arrow writes the schema together with the first batch.
        least = self._schema_bytes + expected_bytes
        if self._scratch.size < least:
            self._scratch = pa.allocate_buffer(max(least, _SCRATCH_BYTES))
        self._position = self._schema_bytes
        sink = pa.FixedSizeBufferWriter(self._scratch)
        return pa.ipc.new_stream(sink, self._schema, options=self._options), sink


class MapFileSink:
    """An Arrow IPC file under construction that knows the byte range of every message."""

    def __init__(self, target: ByteSink, schema: pa.Schema, codec: Codec) -> None:
        self._target = target
        self._schema = schema
        self._encoder = MessageEncoder(schema, codec)
        self._position = 0
        self._checksum = 0
        self._unwritten = bytearray()
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

    def write(self, piece: Piece, partition: int, range_checksum: int) -> tuple[int, int]:
        """Append a batch; return its length in bytes and the partition's CRC-32C with it."""
        return self.write_message(self.encode(piece, partition), range_checksum)

    def encode(self, piece: Piece, partition: int) -> pa.Buffer:
        """Return the message of a batch, for `write_message`; it stands until the next one."""
        return self._encoder.encode(piece, partition)

    def write_message(self, message: bytes | pa.Buffer, range_checksum: int) -> tuple[int, int]:
        """Append a sealed message of this file's schema and codec, as `write` does a batch."""
        length, metadata_bytes = len(message), _metadata_bytes(message)
        self._blocks.append((self._position, metadata_bytes, length - metadata_bytes))
        range_checksum = google_crc32c.extend(range_checksum, message)
        self._hand_on(message)
        return length, range_checksum

    def close(self) -> None:
        """Write the footer; the target stays open."""
        footer = _footer(self._schema, self._blocks)
        self._hand_on(_END_OF_STREAM)
        self._hand_on(footer + struct.pack("<i", len(footer)) + _MAGIC)
        self._write_out()

    def _hand_on(self, data: Any) -> None:
        self._checksum = google_crc32c.extend(self._checksum, data)
        self._position += len(data)
        # Few large writes cost less than many small ones.
        if len(data) < _WRITE_BYTES:
            self._unwritten += data
            if len(self._unwritten) < _WRITE_BYTES:
                return
        self._write_out()
        if len(data) >= _WRITE_BYTES:
            self._target.write(data)

    def _write_out(self) -> None:
        if self._unwritten:
            self._target.write(self._unwritten)
            self._unwritten = bytearray()


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


def _checksum_place(message: pa.Buffer) -> int:
    """Where the placeholder of the checksum is in a message."""
    # The metadata comes before the body, so the mark is not user data.
    metadata = message.slice(0, _metadata_bytes(message)).to_pybytes()
    found = metadata.find(_MARK + PLACEHOLDER)
    if found < 0:
        raise MessageFormatError("Arrow wrote a message without its custom metadata")
    return found + len(_MARK)


def _metadata_bytes(message: bytes | pa.Buffer) -> int:
    """The length of a message's metadata with its prefix, which tells it."""
    marker, length = struct.unpack_from("<Ii", message)
    if marker != _MARKER:
        raise MessageFormatError("Arrow wrote a message where none was expected")
    return _PREFIX_BYTES + int(length)


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
