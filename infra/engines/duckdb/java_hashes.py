"""Spark's hashes of SQL values, bit for bit, over Arrow columns.

`hash` is Murmur3 of 32 bits with one difference: the last bytes of a string are words of their own.
`xxhash64` is XXH64. Both fold the columns of a row into a seed one by one, and a NULL leaves the
seed as it is. What is hashed is the value as Spark holds it: 4 bytes, 8 bytes, or bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_Array = npt.NDArray[Any]
_U32, _U64 = np.uint32, np.uint64
_P1, _P2, _P3, _P4, _P5 = (
    _U64(p)
    for p in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)


def _rotated(values: _Array, bits: int) -> _Array:
    width = values.dtype.itemsize * 8
    kind = values.dtype.type
    return (values << kind(bits)) | (values >> kind(width - bits))


# ---------------------------------------------------------------- Murmur3, 32 bits


def _murmur_step(seeds: _Array, words: _Array) -> _Array:
    words = _rotated(words * _U32(0xCC9E2D51), 15) * _U32(0x1B873593)
    return _rotated(seeds ^ words, 13) * _U32(5) + _U32(0xE6546B64)


def _murmur_end(seeds: _Array, lengths: _Array | int) -> _Array:
    h: _Array = seeds ^ np.asarray(lengths).astype(_U32)
    h = (h ^ (h >> _U32(16))) * _U32(0x85EBCA6B)
    h = (h ^ (h >> _U32(13))) * _U32(0xC2B2AE35)
    return h ^ (h >> _U32(16))


def _murmur_int(values: _Array, seeds: _Array) -> _Array:
    return _murmur_end(_murmur_step(seeds, values.view(_U32)), 4)


def _murmur_long(values: _Array, seeds: _Array) -> _Array:
    words = values.view(_U64)
    low = (words & _U64(0xFFFF_FFFF)).astype(_U32)
    h = _murmur_step(_murmur_step(seeds, low), (words >> _U64(32)).astype(_U32))
    return _murmur_end(h, 8)


def _murmur_bytes(text: _Bytes, seeds: _Array) -> _Array:
    h = seeds.copy()
    for rows, words in text.words(4, text.lengths // 4):
        h[rows] = _murmur_step(h[rows], words)
    for rows, found in text.words(1, text.lengths % 4, text.lengths // 4 * 4):
        h[rows] = _murmur_step(h[rows], found.view(np.int8).astype(np.int32).view(_U32))
    return _murmur_end(h, text.lengths)


# ---------------------------------------------------------------- XXH64


def _xx_end(h: _Array) -> _Array:
    h = (h ^ (h >> _U64(33))) * _P2
    h = (h ^ (h >> _U64(29))) * _P3
    return h ^ (h >> _U64(32))


def _xx_4(h: _Array, words: _Array) -> _Array:
    return _rotated(h ^ (words.astype(_U64) * _P1), 23) * _P2 + _P3


def _xx_8(h: _Array, words: _Array) -> _Array:
    return _rotated(h ^ (_rotated(words * _P2, 31) * _P1), 27) * _P1 + _P4


def _xx_int(values: _Array, seeds: _Array) -> _Array:
    return _xx_end(_xx_4(seeds + _P5 + _U64(4), values.view(_U32)))


def _xx_long(values: _Array, seeds: _Array) -> _Array:
    return _xx_end(_xx_8(seeds + _P5 + _U64(8), values.view(_U64)))


def _xx_bytes(text: _Bytes, seeds: _Array) -> _Array:
    lengths = text.lengths
    h = seeds + _P5
    long_rows = np.flatnonzero(lengths >= 32)
    if len(long_rows):
        h[long_rows] = _xx_blocks(text.of(long_rows), seeds[long_rows])
    h += lengths.astype(_U64)
    done = lengths // 32 * 32
    for rows, words in text.words(8, (lengths - done) // 8, done):
        h[rows] = _xx_8(h[rows], words)
    done = lengths // 8 * 8
    for rows, words in text.words(4, (lengths - done) // 4, done):
        h[rows] = _xx_4(h[rows], words)
    done = lengths // 4 * 4
    for rows, found in text.words(1, lengths - done, done):
        h[rows] = _rotated(h[rows] ^ (found.astype(_U64) * _P5), 11) * _P1
    return _xx_end(h)


def _xx_blocks(text: _Bytes, seeds: _Array) -> _Array:
    """What the whole blocks of 32 bytes come to, for strings that have one."""
    # As numbers of Python and not of numpy, which warns where these wrap.
    mask = 0xFFFF_FFFF_FFFF_FFFF
    starts = ((int(_P1) + int(_P2)) & mask, int(_P2), 0, -int(_P1) & mask)
    lanes = [seeds + _U64(start) for start in starts]
    blocks = text.lengths // 32
    for number, lane in enumerate(lanes):
        for rows, words in text.words(8, blocks, np.full(len(blocks), 8 * number), stride=32):
            lane[rows] = _rotated(lane[rows] + words * _P2, 31) * _P1
    h: _Array = np.zeros(len(seeds), dtype=_U64)
    for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True):
        h += _rotated(lane, bits)
    for lane in lanes:
        h = (h ^ (_rotated(lane * _P2, 31) * _P1)) * _P1 + _P4
    return h


# ---------------------------------------------------------------- columns


class _Bytes:
    """Strings of bytes in one buffer, read as little-endian words at any offset."""

    def __init__(self, buffer: _Array, starts: _Array, lengths: _Array) -> None:
        self._buffer = buffer
        self._starts = starts
        self.lengths = lengths

    @classmethod
    def from_arrow(cls, array: pa.Array) -> _Bytes:
        """The strings of a column; a NULL is empty."""
        array = array.cast(pa.large_binary())
        offsets = np.frombuffer(array.buffers()[1], np.int64, len(array) + 1, array.offset * 8)
        data = array.buffers()[2]
        size = 0 if data is None else data.size
        # Some bytes more, so that a word can be read at the start of the last one.
        buffer = np.zeros(size + 8, dtype=np.uint8)
        if data is not None:
            buffer[:size] = np.frombuffer(data, np.uint8)
        lengths = offsets[1:] - offsets[:-1]
        if array.null_count:
            lengths = np.where(array.is_valid().to_numpy(zero_copy_only=False), lengths, 0)
        return cls(buffer, offsets[:-1], lengths)

    def of(self, rows: _Array) -> _Bytes:
        """Some of the strings."""
        return _Bytes(self._buffer, self._starts[rows], self.lengths[rows])

    def words(
        self, width: int, counts: _Array, skip: _Array | int = 0, *, stride: int = 0
    ) -> list[tuple[_Array, _Array]]:
        """For each step, the rows that have a word there, and the words.

        Args:
            width: Bytes of a word.
            counts: Words of each string.
            skip: Bytes before the first word of each string.
            stride: Bytes from word to word; 0 is the width.
        """
        every = np.ndarray(
            (len(self._buffer) - width + 1,), f"<u{width}", self._buffer, strides=(1,)
        )
        first = self._starts + skip
        found = []
        rows = np.arange(len(counts))
        for step in range(int(counts.max(initial=0))):
            rows = rows[counts[rows] > step]
            found.append((rows, every[first[rows] + step * (stride or width)]))
        return found


def _over(
    fold: Callable[..., _Array], seed_type: Any
) -> Callable[[pa.ChunkedArray, pa.ChunkedArray], pa.Array]:
    """A function of columns from one of arrays; a NULL leaves the seed."""
    unsigned = np.dtype(f"u{np.dtype(seed_type).itemsize}")

    def over_columns(values: pa.ChunkedArray, seeds: pa.ChunkedArray) -> pa.Array:
        column = values.combine_chunks()
        given = seeds.to_numpy().view(unsigned)
        hashes = fold(_held(column), given)
        if column.null_count:
            hashes = np.where(column.is_valid().to_numpy(zero_copy_only=False), hashes, given)
        return pa.array(hashes.view(seed_type))

    return over_columns


def _held(column: pa.Array) -> Any:
    """The values as Spark holds them: whole numbers, or strings of bytes."""
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return _Bytes.from_arrow(column)
    values = column.fill_null(0).to_numpy()
    if pa.types.is_floating(column.type):
        # Without the sign of a zero, and with one NaN.
        values = np.where(values == 0, values.dtype.type(0), values)
        values = np.where(np.isnan(values), values.dtype.type(np.nan), values)
        return values.view(f"i{values.dtype.itemsize}")
    return values


COLUMN_HASHES: dict[str, tuple[Callable[..., pa.Array], str, str]] = {
    f"java_{name}_{kind.lower()}": (_over(fold, seed_type), kind, seed)
    for name, seed, seed_type, folds in (
        ("hash", "INTEGER", np.int32, (_murmur_int, _murmur_long, _murmur_bytes)),
        ("xxhash64", "BIGINT", np.int64, (_xx_int, _xx_long, _xx_bytes)),
    )
    for kind, fold in (
        ("INTEGER", folds[0]),
        ("FLOAT", folds[0]),
        ("BIGINT", folds[1]),
        ("DOUBLE", folds[1]),
        ("BLOB", folds[2]),
    )
}
"""What DuckDB calls by name: the function, the type of its value, the type of seed and result."""
