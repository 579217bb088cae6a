"""Lays out Arrow IPC messages from streams of rows.

Arrow makes the metadata of one batch of a schema, in which other batches differ by numbers only:

    marker | length | metadata: rows, nodes (rows, NULLs), buffers (place, length) | body: buffers

Each buffer of the body is compressed by itself. The format lets a buffer be stored as it is, and
that is what becomes of those on which a codec works long for little.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
import pyarrow as pa

from stagecoach.infra.shuffle.encoding import offset_type, rows_without_columns
from stagecoach.infra.shuffle.row_streams import Part, RowSlices

_PREFIX = struct.Struct("<Ii")
_NUMBER = struct.Struct("<q")
_STORED = _NUMBER.pack(-1)
_PADDING = [bytes(-size % 8) for size in range(8)]
_ZSTD_LEVEL = 1  # Arrow's own
_SMALL_BYTES = 1024
"""Buffers that say little about others of their column."""
_UNTRIED_MESSAGES = 15
"""After a buffer that was not worth compressing, so many of its kind are stored untried."""


class MessageFormat:
    """Makes the messages of one schema and codec.

    Attributes:
        template: The metadata of a message with its prefix.
    """

    def __init__(
        self,
        schema: pa.Schema,
        options: pa.ipc.IpcWriteOptions,
        metadata: dict[str, str],
        least_saving: float,
    ) -> None:
        """Have Arrow make the metadata from which that of others is made.

        Args:
            schema: The columns.
            options: Of the writer; they tell the codec.
            metadata: What each message carries besides.
            least_saving: Part of a buffer that compression must save.
        """
        sample = rows_without_columns(1)
        if len(schema):
            columns = [pa.nulls(1, kind) for kind in schema.types]
            sample = pa.RecordBatch.from_arrays(columns, schema=schema)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema, options=options) as writer:
            start = schema.serialize().size
            writer.write_batch(sample, custom_metadata=metadata)
        content = sink.getvalue().slice(start).to_pybytes()
        self.template = content[: _PREFIX.size + _PREFIX.unpack_from(content)[1]]
        self._compress = _compressor(options.compression)
        self._most = 1 - least_saving
        self._columns = [_append_of(kind) for kind in schema.types]
        message = _table(content, _PREFIX.size)
        batch = _table(content, _field(content, message, 2))
        self._body_bytes = _field(content, message, 3)
        self._rows = _field(content, batch, 0)
        self._nodes, num_nodes = _vector(content, batch, 1)
        self._buffers, num_buffers = _vector(content, batch, 2)
        self._node_numbers = struct.Struct(f"<{2 * num_nodes}q")
        self._buffer_numbers = struct.Struct(f"<{2 * num_buffers}q")
        self._untried = [0] * num_buffers

    def message(self, rows: RowSlices) -> list[Any]:
        """Return a message in pieces, of which the first is its metadata."""
        nodes: list[int] = []
        buffers: list[Any] = []
        parts = iter(rows.parts)
        for append in self._columns:
            append(rows.num_rows, parts, nodes, buffers)
        compressed = self._compressed(buffers)
        places: list[int] = []
        metadata = bytearray(self.template)
        pieces: list[Any] = [metadata]
        position = 0
        for number, buffer in enumerate(buffers):
            size = len(buffer)
            if number in compressed:
                found = compressed[number]
                pieces += _NUMBER.pack(size), found
                size = _NUMBER.size + len(found)
            elif size and self._compress is not None:
                pieces += _STORED, buffer
                size += _NUMBER.size
            elif size:
                pieces.append(buffer)
            places += position, size
            position += size
            if rest := size % 8:
                pieces.append(_PADDING[rest])
                position += 8 - rest
        _NUMBER.pack_into(metadata, self._rows, rows.num_rows)
        self._node_numbers.pack_into(metadata, self._nodes, *nodes)
        self._buffer_numbers.pack_into(metadata, self._buffers, *places)
        if position:
            _NUMBER.pack_into(metadata, self._body_bytes, position)
        return pieces

    def _compressed(self, buffers: list[Any]) -> dict[int, Any]:
        """Return those of the buffers that are worth it, compressed."""
        if self._compress is None:
            return {}
        tried = []
        for number, buffer in enumerate(buffers):
            if size := len(buffer):
                if self._untried[number] and size >= _SMALL_BYTES:
                    self._untried[number] -= 1
                else:
                    tried.append(number)
        found = {}
        for number, content in zip(
            tried, self._compress([buffers[number] for number in tried]), strict=True
        ):
            size = len(buffers[number])
            if len(content) <= self._most * size:
                found[number] = content
            elif size >= _SMALL_BYTES:
                self._untried[number] = _UNTRIED_MESSAGES
        return found


def _compressor(codec: str | None) -> Callable[[list[Any]], list[Any]] | None:
    """Return what compresses buffers, each by itself."""
    if codec is None:
        return None
    if codec == "zstd":
        return _zstd_compressor()
    compress = pa.Codec(codec).compress
    return lambda buffers: [compress(buffer) for buffer in buffers]


def _zstd_compressor() -> Callable[[list[Any]], list[Any]]:
    """With one context for all buffers; Arrow makes one for each, which takes 10 µs."""
    import zstandard  # loaded only by workers that use it

    compressor = zstandard.ZstdCompressor(level=_ZSTD_LEVEL)

    def compress(buffers: list[Any]) -> list[Any]:
        if not buffers:
            return []
        found = compressor.multi_compress_to_buffer(buffers)
        return [found[number] for number in range(len(found))]

    return compress


_Append = Callable[[int, Iterator[Part], list[int], list[Any]], None]
"""Appends the nodes and buffers of so many rows of the next streams."""


def _append_of(kind: pa.DataType) -> _Append:
    """Return what appends an array of a type."""
    if isinstance(kind, pa.BaseExtensionType):
        return _append_of(kind.storage_type)
    if pa.types.is_null(kind):
        return _append_nulls
    dtype = offset_type(kind)
    if pa.types.is_struct(kind):
        rest = _append_all([_append_of(kind.field(i).type) for i in range(kind.num_fields)])
    elif pa.types.is_fixed_size_list(kind):
        rest = _append_items(_append_of(kind.value_type), kind.list_size)
    elif pa.types.is_boolean(kind):
        rest = _append_bits
    elif dtype is None:
        rest = _append_values
    elif pa.types.is_map(kind):
        entry = pa.struct([kind.key_field, kind.item_field])
        rest = _append_lists(dtype, _append_of(entry))
    elif pa.types.is_nested(kind):
        rest = _append_lists(dtype, _append_of(kind.value_type))
    else:
        rest = _append_lists(dtype, _append_values)
    return _append_valid(rest)


def _append_nulls(count: int, parts: Iterator[Part], nodes: list[int], buffers: list[Any]) -> None:
    nodes += count, count


def _append_values(count: int, parts: Iterator[Part], nodes: list[int], buffers: list[Any]) -> None:
    buffers.append(next(parts))


def _append_bits(count: int, parts: Iterator[Part], nodes: list[int], buffers: list[Any]) -> None:
    buffers.append(_to_bits(next(parts)))


def _append_valid(rest: _Append) -> _Append:
    def append(count: int, parts: Iterator[Part], nodes: list[int], buffers: list[Any]) -> None:
        bits = next(parts)
        if isinstance(bits, int):
            nodes += count, 0
            buffers.append(b"")
        else:
            nodes += count, count - int(np.count_nonzero(np.frombuffer(bits, dtype=np.uint8)))
            buffers.append(_to_bits(bits))
        rest(count, parts, nodes, buffers)

    return append


def _append_all(columns: list[_Append]) -> _Append:
    def append(count: int, parts: Iterator[Part], nodes: list[int], buffers: list[Any]) -> None:
        for column in columns:
            column(count, parts, nodes, buffers)

    return append


def _append_items(items: _Append, list_size: int) -> _Append:
    def append(count: int, parts: Iterator[Part], nodes: list[int], buffers: list[Any]) -> None:
        items(count * list_size, parts, nodes, buffers)

    return append


def _append_lists(dtype: np.dtype[Any], items: _Append) -> _Append:
    def append(count: int, parts: Iterator[Part], nodes: list[int], buffers: list[Any]) -> None:
        offsets = np.empty(count + 1, dtype=dtype)
        offsets[0] = 0
        np.frombuffer(cast("bytes", next(parts)), dtype=dtype).cumsum(dtype=dtype, out=offsets[1:])
        buffers.append(offsets.data.cast("B"))
        items(int(offsets[-1]), parts, nodes, buffers)

    return append


def _to_bits(content: Any) -> bytes:
    return np.packbits(np.frombuffer(content, dtype=np.uint8), bitorder="little").tobytes()


def _table(content: bytes, place: int) -> int:
    """The position of a flatbuffer table that is referred to at `place`."""
    return place + int(struct.unpack_from("<I", content, place)[0])


def _field(content: bytes, table: int, number: int) -> int:
    """The position of a field of a table; 0 if it has its default."""
    fields = table - struct.unpack_from("<i", content, table)[0]
    if 4 + 2 * number >= struct.unpack_from("<H", content, fields)[0]:
        return 0
    found = int(struct.unpack_from("<H", content, fields + 4 + 2 * number)[0])
    return table + found if found else 0


def _vector(content: bytes, table: int, number: int) -> tuple[int, int]:
    """The position of the first element of a vector, and how many there are."""
    place = _field(content, table, number)
    if not place:
        return 0, 0
    place = _table(content, place)
    return place + 4, int(struct.unpack_from("<I", content, place)[0])
