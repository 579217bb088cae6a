"""A batch as it is stored: an IPC message whose checksum is right, not decoded.

Who passes rows on as IPC messages needs no decoding; the receiver decompresses them. All that must
be known is in the metadata of the message, a flatbuffer, and at the beginning of its buffers:

    Message       1 type of the header   2 header   3 length of the body
    RecordBatch   0 rows   1 nodes   2 places of the buffers   3 compression
    a buffer      its length uncompressed (-1: it is not compressed), then its bytes
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import pyarrow as pa

from stagecoach.planner.cached_property import cached_property

_HEADER_FIELD = 2
_ROWS_FIELD, _BUFFERS_FIELD, _COMPRESSION_FIELD = 0, 2, 3
_UNCOMPRESSED = -1


@dataclass(frozen=True)
class StoredBatch:
    """Rows as an IPC message.

    Args:
        message: The message, of a record batch.
        schema: The columns as they are stored.
    """

    message: pa.ipc.Message
    schema: pa.Schema

    @cached_property
    def num_rows(self) -> int:
        """How many rows it has."""
        place = self._header.field(_ROWS_FIELD)
        return 0 if place is None else int(struct.unpack_from("<q", self._metadata, place)[0])

    @cached_property
    def is_compressed(self) -> bool:
        """Whether its buffers are compressed."""
        return self._header.field(_COMPRESSION_FIELD) is not None

    @cached_property
    def nbytes(self) -> int:
        """Bytes of its buffers, uncompressed."""
        place = self._header.field(_BUFFERS_FIELD)
        if place is None:
            return 0
        (start,) = struct.unpack_from("<I", self._metadata, place)
        (count,) = struct.unpack_from("<I", self._metadata, place + start)
        body = memoryview(self.message.body) if self.message.body is not None else memoryview(b"")
        total = 0
        for offset, length in struct.iter_unpack(
            "<qq", self._metadata[place + start + 4 : place + start + 4 + 16 * count]
        ):
            total += _plain_length(body, offset, length) if self.is_compressed else length
        return total

    def decode(self) -> pa.RecordBatch:
        """Return the rows.

        Raises:
            pa.ArrowException: The message is not one of this schema.
        """
        return pa.ipc.read_record_batch(self.message, self.schema)

    def slice(self, offset: int) -> StoredBatch | pa.RecordBatch:
        """Return the rows from this one on; they are decoded unless that is all of them."""
        return self.decode().slice(offset) if offset else self

    @cached_property
    def _metadata(self) -> bytes:
        found: bytes = self.message.metadata.to_pybytes()
        return found

    @cached_property
    def _header(self) -> _Table:
        message = _Table(self._metadata, 0)
        place = message.field(_HEADER_FIELD)
        if place is None:
            raise pa.ArrowInvalid("a message without a header")
        return _Table(self._metadata, place)


class _Table:
    """A table of a flatbuffer.

    Args:
        content: The flatbuffer.
        pointer: Where it says how far ahead the table is.
    """

    def __init__(self, content: bytes, pointer: int) -> None:
        self._content = content
        self._start = pointer + struct.unpack_from("<I", content, pointer)[0]
        self._fields = self._start - struct.unpack_from("<i", content, self._start)[0]
        (self._size,) = struct.unpack_from("<H", content, self._fields)

    def field(self, number: int) -> int | None:
        """Return the place of a field; None for one that is left out."""
        slot = 4 + 2 * number
        if slot + 2 > self._size:
            return None
        (offset,) = struct.unpack_from("<H", self._content, self._fields + slot)
        return self._start + offset if offset else None


def _plain_length(body: memoryview, offset: int, length: int) -> int:
    """The length of a buffer that may be compressed."""
    if length < 8:
        return 0
    (plain,) = struct.unpack_from("<q", body, offset)
    return length - 8 if plain == _UNCOMPRESSED else int(plain)
