"""Writes Arrow IPC files whose messages have known places and checksums.

An IPC footer's metadata is fixed before writing, so each batch carries its own in the message:
`stagecoach: partition=00012;crc32c=89abcdef`, the CRC-32C of the whole message with the eight hex
digits replaced by `########`, XOR that of the file's name. That makes a file self-describing: each
message can be checked before it is decoded, one of another file does not fit, and the index of a
file can be rebuilt from the file alone. Without the name, which no two attempts share, the
checksums tell whether two files hold the same rows.

Messages come from Arrow's stream writer and the frame around them is ours, so that a message can be
made at one time and copied into a file at another:

    ARROW1 | schema message | messages … | end of stream | footer | its length | ARROW1
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import google_crc32c
import pyarrow as pa

from stagecoach.infra.shuffle.encoding import Piece
from stagecoach.infra.shuffle.map_file import Codec
from stagecoach.infra.storage.object_store import ByteSink
from stagecoach.planner.errors import StagecoachError

METADATA_KEY = "stagecoach"
PLACEHOLDER = b"########"
_MARK = b"crc32c="
_SEAL = re.compile(rb"partition=(\d{5});crc32c=([0-9a-f]{8})")
_MAGIC = b"ARROW1"
_HEADER = _MAGIC + bytes(2)
_END_OF_STREAM = b"\xff\xff\xff\xff" + bytes(4)
_MARKER = 0xFFFF_FFFF
_PREFIX_BYTES = 8  # of a message: a marker and the length of its metadata
_WRITE_BYTES = 128 << 10
"""What is smaller is collected before it is written."""


class MessageFormatError(StagecoachError):
    """A message is not one that this module wrote."""


class MessageEncoder:
    """Makes sealed IPC messages of batches of one schema."""

    def __init__(self, schema: pa.Schema, codec: Codec, *, seed: int = 0) -> None:
        """Prepare to encode.

        Args:
            schema: Columns of the batches, in plain encodings.
            codec: Compression of the messages.
            seed: Of their file, `message_seed`.
        """
        self._seed = seed
        self._pieces = _Pieces()
        target = pa.PythonFile(self._pieces, mode="w")
        self._writer = pa.ipc.new_stream(target, schema, options=write_options(codec))
        # Before its first batch Arrow writes the schema, which is no part of a message.
        self._writer.write_batch(pa.RecordBatch.from_pylist([], schema=schema))

    def encode(self, batch: pa.RecordBatch, partition: int) -> pa.Buffer:
        """Return the sealed message of a batch."""
        self._pieces.clear()
        seal = f"partition={partition:05d};crc32c={PLACEHOLDER.decode()}"
        self._writer.write_batch(batch, custom_metadata={METADATA_KEY: seal})
        content = bytearray().join(self._pieces)
        # The metadata comes before the body, so the first mark is not user data.
        start = content.index(_MARK + PLACEHOLDER) + len(_MARK)
        # The checksum's library takes nothing that it could change.
        message = pa.py_buffer(content)
        checksum = google_crc32c.value(message) ^ self._seed
        content[start : start + len(PLACEHOLDER)] = b"%08x" % checksum
        return message


class _Pieces(list[Any]):
    """What Arrow writes, piece by piece and without a copy."""

    closed = False

    def write(self, piece: Any) -> int:
        """Take the next piece."""
        self.append(piece)
        return len(piece)

    def flush(self) -> None:
        """Nothing waits."""


class MapFileSink:
    """An Arrow IPC file under construction that knows the byte range of every message."""

    def __init__(
        self,
        target: ByteSink,
        schema: pa.Schema,
        codec: Codec,
        *,
        seed: int = 0,
    ) -> None:
        """Begin the file.

        Args:
            target: Where its bytes go.
            schema: Its columns.
            codec: Compression of its messages.
            seed: Of the file, `message_seed`.
        """
        self._target = target
        self._schema = schema
        self._encoder = MessageEncoder(schema, codec, seed=seed)
        self._seed = seed
        self._position = 0
        self._checksum = 0
        self._content_checksum = 0
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

    @property
    def content_checksum(self) -> int:
        """CRC-32C of the messages' own checksums: equal for two files of the same messages."""
        return self._content_checksum

    def write(self, piece: Piece, partition: int, range_checksum: int) -> tuple[int, int]:
        """Append a batch; return its length in bytes and the partition's CRC-32C with it."""
        return self.write_message(self.encode(piece.batch, partition), range_checksum)

    def encode(self, batch: pa.RecordBatch, partition: int) -> pa.Buffer:
        """Return the message of a batch, for `write_message`."""
        return self._encoder.encode(batch, partition)

    def write_message(self, message: bytes | pa.Buffer, range_checksum: int) -> tuple[int, int]:
        """Append a sealed message of this file's schema and codec, as `write` does a batch."""
        length, metadata_bytes = len(message), _metadata_bytes(message)
        self._blocks.append((self._position, metadata_bytes, length - metadata_bytes))
        range_checksum = google_crc32c.extend(range_checksum, message)
        own = b"%08x" % (
            read_seal(bytes(memoryview(message)[:metadata_bytes])).checksum ^ self._seed
        )
        self._content_checksum = google_crc32c.extend(self._content_checksum, own)
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


def message_seed(file_name: str) -> int:
    """Return what makes a message's checksum one of its file; attempts never share a name."""
    return int(google_crc32c.value(file_name.encode()))


def message_checksum(pieces: Iterable[Any]) -> int:
    """Return the CRC-32C of the pieces (bytes or Arrow buffers) in order."""
    checksum = 0
    for piece in pieces:
        checksum = google_crc32c.extend(checksum, piece)
    return checksum


class Seal(NamedTuple):
    """What the metadata of a message says of it.

    Attributes:
        unsealed: The metadata with the placeholder put back.
        checksum: CRC-32C of the message with that metadata, XOR the file's `message_seed`.
        partition: To which it belongs.
    """

    unsealed: bytes
    checksum: int
    partition: int


def read_seal(metadata: bytes) -> Seal:
    """Return what a message's metadata says of it.

    Raises:
        MessageFormatError: There is no checksum.
    """
    found = _SEAL.search(metadata)
    if found is None:
        raise MessageFormatError("a message carries no checksum")
    unsealed = metadata[: found.start(2)] + PLACEHOLDER + metadata[found.end(2) :]
    return Seal(unsealed, int(found[2], 16), int(found[1]))


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
