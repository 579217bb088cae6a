"""Reads the deletes of data files: positions in Parquet files, and deletion vectors.

A deletion vector, in a Puffin file of Iceberg's or a file of Delta's, is a bitmap of positions, a
roaring bitmap for each upper half of 64 bits:

    length, big-endian │ D1 D3 39 64 │ number of bitmaps │ key, bitmap │ … │ CRC-32, big-endian
                       │              8 bytes, little-endian           │

Its place in the file is in the table's metadata, so the footer of a Puffin file is not read.

Source: https://iceberg.apache.org/puffin-spec/#deletion-vector-v1-blob-type and
https://github.com/RoaringBitmap/RoaringFormatSpec

Worker code.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from stagecoach.infra.formats.mapped_files.paths import canonical_path
from stagecoach.infra.host.recent_cache import RecentCache
from stagecoach.infra.integrity.errors import DamagedFileError
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.deletes import DeleteFile
from stagecoach.infra.reading.input_files import opened_unchanged
from stagecoach.infra.reading.inputs import ParquetInput
from stagecoach.infra.reading.parquet import read_stored_columns
from stagecoach.infra.storage.object_store import StorageOptions

Positions = npt.NDArray[np.int64]

_MAGIC = b"\xd1\xd3\x39\x64"
_COOKIE, _COOKIE_WITHOUT_RUNS = 12347, 12346
_NO_OFFSET_THRESHOLD = 4  # containers below which a bitmap with runs has no table of offsets
_ARRAY_MAX = 4096  # values from which on a container is a bitmap
_BITMAP_BYTES = 8192

# Several tasks of a worker read the same delete files.
_TABLES: RecentCache[pa.Table] = RecentCache(max_entries=256, max_cost=64 << 20)


def deleted_positions(
    path: str, files: Sequence[DeleteFile], leaf: ParquetInput, listed: Sequence[int] = ()
) -> Positions:
    """Return which rows of a data file are deleted by position, ascending and distinct.

    Args:
        path: The data file's canonical URI.
        files: Files with positions, and deletion vectors.
        leaf: Says how files are read.
        listed: Positions that are known without a file.

    Raises:
        DamagedFileError: A file is damaged.
        InputLostError: A file is gone.
        StorageError: The storage refused.
    """
    parts = [np.asarray(listed, np.int64)] if listed else []
    parts += [_positions(path, file, leaf) for file in files]
    return np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int64)


def _positions(path: str, file: DeleteFile, leaf: ParquetInput) -> Positions:
    if file.offset:
        return _vector(file, StorageOptions.from_dict(leaf.storage_options))
    rows = _TABLES.get(file.uri, lambda: _position_table(file, leaf), lambda t: int(t.nbytes))
    place = pc.index(rows["path"].combine_chunks().dictionary, path).as_py()
    if place < 0:
        return np.empty(0, np.int64)
    mine = pc.equal(pc.cast(rows["path"].combine_chunks().indices, pa.int32()), place)
    found: Positions = rows["position"].combine_chunks().filter(mine).to_numpy()
    return found


def _position_table(file: DeleteFile, leaf: ParquetInput) -> pa.Table:
    """All positions of a file; `path` is a dictionary of canonical URIs."""
    batches = list(_delete_batches(file, ("file_path", "pos"), leaf))
    schema = pa.schema([("file_path", pa.string()), ("pos", pa.int64())])
    table = pa.Table.from_batches(batches, batches[0].schema if batches else schema)
    paths = table["file_path"].cast(pa.string()).combine_chunks().dictionary_encode()
    known = pa.array([canonical_path(text) for text in paths.dictionary.to_pylist()], pa.string())
    # Two spellings of one file would be two entries of the dictionary.
    unique = pc.unique(known)
    indices = pc.take(pc.index_in(known, unique), paths.indices)
    column = pa.DictionaryArray.from_arrays(indices, unique)
    return pa.table({"path": column, "position": table["pos"].cast(pa.int64())})


def _delete_batches(
    file: DeleteFile, names: Sequence[str], leaf: ParquetInput
) -> Iterator[pa.RecordBatch]:
    found = delete_leaf(file, leaf)
    yield from read_stored_columns(found, names)


def delete_leaf(file: DeleteFile, leaf: ParquetInput) -> ParquetInput:
    """Return a scan of a delete file, read as the data files are."""
    from stagecoach.infra.formats.mapped_files.file_footers import num_rows

    entry = DataFile(file.uri, num_rows(file.uri, file.num_bytes, leaf), num_bytes=file.num_bytes)
    return ParquetInput(
        (), (entry,), leaf.storage_options, memory_bytes=leaf.memory_bytes, checks=leaf.checks
    )


def _vector(file: DeleteFile, options: StorageOptions) -> Positions:
    entry = DataFile(file.uri, 0, num_bytes=file.num_bytes)
    with opened_unchanged(entry, options) as source:
        source.seek(file.offset)
        length = int.from_bytes(source.read(4), "big")
        blob = source.read(length + 4)
    if len(blob) != length + 4 or blob[:4] != _MAGIC:
        raise DamagedFileError(file.uri, f"there is no deletion vector at byte {file.offset}")
    if zlib.crc32(blob[:length]) != int.from_bytes(blob[length:], "big"):
        raise DamagedFileError(
            file.uri, f"checksum mismatch of the deletion vector at byte {file.offset}"
        )
    try:
        return decode_bitmap(memoryview(blob)[4:length])
    except (ValueError, IndexError) as error:
        raise DamagedFileError(
            file.uri, f"the deletion vector at byte {file.offset} cannot be decoded ({error})"
        ) from error


def decode_bitmap(data: memoryview) -> Positions:
    """Return the numbers of a 64-bit roaring bitmap in its portable form, ascending.

    Raises:
        ValueError: It is cut short or not such a bitmap.
    """
    reader = _Reader(data)
    parts: list[Positions] = []
    for _ in range(reader.number(8)):
        high = reader.number(4)
        parts += [container + (high << 32) for container in _containers(reader)]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


class _Reader:
    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._place = 0

    def take(self, count: int) -> memoryview:
        """The next bytes."""
        found = self._data[self._place : self._place + count]
        if len(found) < count:
            raise ValueError("it is cut short")
        self._place += count
        return found

    def number(self, width: int) -> int:
        """The next number, little-endian."""
        return int.from_bytes(self.take(width), "little")

    def numbers(self, count: int) -> Positions:
        """The next numbers of 16 bits."""
        return np.frombuffer(self.take(2 * count), "<u2").astype(np.int64)


def _containers(reader: _Reader) -> Iterator[Positions]:
    """The numbers in each container of a 32-bit bitmap."""
    cookie = reader.number(4)
    if cookie & 0xFFFF == _COOKIE:
        count = (cookie >> 16) + 1
        flags = np.frombuffer(reader.take((count + 7) // 8), np.uint8)
        runs = np.unpackbits(flags, bitorder="little")[:count].astype(bool).tolist()
    elif cookie == _COOKIE_WITHOUT_RUNS:
        count = reader.number(4)
        runs = [False] * count
    else:
        raise ValueError(f"it begins with {cookie}")
    header = reader.numbers(2 * count).reshape(count, 2)
    if cookie == _COOKIE_WITHOUT_RUNS or count >= _NO_OFFSET_THRESHOLD:
        reader.take(4 * count)
    for (key, less_one), is_run in zip(header.tolist(), runs, strict=True):
        yield _container(reader, less_one + 1, is_run=is_run) + (key << 16)


def _container(reader: _Reader, count: int, *, is_run: bool) -> Positions:
    if is_run:
        pairs = reader.numbers(2 * reader.number(2)).reshape(-1, 2)
        ranges = [np.arange(start, start + more + 1) for start, more in pairs.tolist()]
        return np.concatenate(ranges) if ranges else np.empty(0, np.int64)
    if count <= _ARRAY_MAX:
        return reader.numbers(count)
    bits = np.frombuffer(reader.take(_BITMAP_BYTES), np.uint8)
    return np.flatnonzero(np.unpackbits(bits, bitorder="little")).astype(np.int64)
