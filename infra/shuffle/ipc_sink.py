"""Arrow IPC files with checksums: in, record batches; out, messages whose place and CRC are known.

An IPC footer's metadata is fixed before writing, so each batch carries its own in the message:
`stagecoach: partition=00012;crc32c=89abcdef`, the CRC-32C of the whole message with the eight hex
digits replaced by `########`. That makes a file self-describing: each message can be checked before
it is decoded, and the index of a file can be rebuilt from the file alone.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import google_crc32c
import pyarrow as pa

from infra.shuffle.map_file import Codec
from infra.storage.object_store import ByteSink
from planner.errors import StagecoachError

METADATA_KEY = "stagecoach"
PLACEHOLDER = b"########"
_MARK = b"crc32c="


class MessageFormatError(StagecoachError):
    """A message is not one that this module wrote."""


class ChecksumSink(io.RawIOBase):
    """Hands bytes on to `target`, counting and checksumming them on the way.

    Between `begin_message` and `end_message` the bytes are held back, so that the checksum can be
    put into the message's metadata before they leave.
    """

    def __init__(self, target: ByteSink) -> None:
        super().__init__()
        self._target = target
        self._position = 0
        self._checksum = 0
        self._message: list[Any] | None = None

    @property
    def checksum(self) -> int:
        """CRC-32C of everything handed on so far."""
        return self._checksum

    @property
    def position(self) -> int:
        """Number of bytes handed on so far."""
        return self._position

    def writable(self) -> bool:
        """Always true."""
        return True

    def write(self, data: Any, /) -> int:
        """Take bytes from Arrow."""
        if self._message is None:
            self._hand_on(data)
        else:
            self._message.append(data)
        return len(data)

    def begin_message(self) -> None:
        """Hold back what comes until `end_message`."""
        self._message = []

    def end_message(self, header_bytes: int, range_checksum: int) -> tuple[int, int]:
        """Seal the message and hand it on.

        Args:
            header_bytes: Bytes of file header in front of the message (first batch only).
            range_checksum: CRC-32C of the partition's messages so far.

        Returns:
            The length of the message and the partition's CRC-32C with it.
        """
        pieces = self._message or []
        self._message = None
        while header_bytes > 0:
            header_bytes -= len(pieces[0])
            self._hand_on(pieces.pop(0))
        if header_bytes:
            raise MessageFormatError("the IPC file header does not end where a message begins")
        _seal(pieces)
        start = self._position
        for piece in pieces:
            range_checksum = google_crc32c.extend(range_checksum, piece)
            self._hand_on(piece)
        return self._position - start, range_checksum

    def _hand_on(self, data: Any) -> None:
        self._checksum = google_crc32c.extend(self._checksum, data)
        self._position += len(data)
        self._target.write(data)


class MapFileSink:
    """An Arrow IPC file under construction that knows the byte range of every batch."""

    def __init__(self, target: ByteSink, schema: pa.Schema, codec: Codec) -> None:
        self._sink = ChecksumSink(target)
        self._header_bytes = 8 + schema.serialize().size  # b"ARROW1", padding, schema message
        self._writer = pa.ipc.new_file(self._sink, schema, options=write_options(codec))

    @property
    def num_bytes(self) -> int:
        """Bytes written so far."""
        return max(self._sink.position, self._header_bytes)

    @property
    def checksum(self) -> int:
        """CRC-32C of the bytes written so far."""
        return self._sink.checksum

    def write(self, batch: pa.RecordBatch, partition: int, range_checksum: int) -> tuple[int, int]:
        """Append a batch; return its length in bytes and the partition's CRC-32C with it."""
        metadata = {METADATA_KEY: f"partition={partition:05d};crc32c={PLACEHOLDER.decode()}"}
        # Arrow writes the file header together with the first batch.
        header_bytes = self._header_bytes - min(self._sink.position, self._header_bytes)
        self._sink.begin_message()
        self._writer.write_batch(batch, custom_metadata=metadata)
        return self._sink.end_message(header_bytes, range_checksum)

    def close(self) -> None:
        """Write the footer; the target stays open."""
        self._writer.close()


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
        if isinstance(piece, bytes) and _MARK + PLACEHOLDER in piece:
            digits = f"{checksum:08x}".encode()
            pieces[position] = piece.replace(_MARK + PLACEHOLDER, _MARK + digits, 1)
            return
    raise MessageFormatError("Arrow wrote a message without its custom metadata")
