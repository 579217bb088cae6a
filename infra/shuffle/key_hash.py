"""64-bit hashes of Arrow arrays by SQL value.

The canonical forms are listed in `infra.shuffle.partitioner`, which is the public face. Frozen
with `PARTITIONER_VERSION` 1: nothing here may change a value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

UInt64Array = npt.NDArray[np.uint64]
_AnyArray = npt.NDArray[Any]

_U64 = np.uint64
_NULL_HASH = _U64(0x9AE1_6A3B_2F90_404F)
_WIDE = _U64(0xC3A5_C85C_97CB_3127)  # keeps the high half of a 128-bit value apart from the low
_SCALE = _U64(0xB492_B66F_BE98_F273)
_WORD = _U64(0x9E37_79B9_7F4A_7C15)  # golden ratio: key of the j-th 8-byte word of a string
_LENGTH = _U64(0xD6E8_FEB8_6659_FD93)
_MIX_1 = _U64(0xFF51_AFD7_ED55_8CCD)  # constants of MurmurHash3's fmix64
_MIX_2 = _U64(0xC4CE_B9FE_1A85_EC53)
_NEGATIVE_ZERO = _U64(1 << 63)
_INFINITY = _U64(0x7FF << 52)
_NAN = _U64(0xFFF << 51)
_MASK = 0xFFFF_FFFF_FFFF_FFFF
_FEW_ROWS = 32
"""Strings that are still unfinished when so few are left are hashed one by one, each in one go."""

# Mask of the first n bytes of a little-endian word, n = 0..8.
_BYTE_MASKS = np.array([(1 << (8 * n)) - 1 for n in range(9)], dtype=np.uint64)


def mix(values: UInt64Array) -> UInt64Array:
    """Return `values`, each replaced by MurmurHash3's 64-bit finaliser of it.

    It spreads every input bit over every output bit.
    """
    # In place: what a new array for each step would cost is more than the arithmetic.
    shifted = values >> _U64(33)
    values ^= shifted
    values *= _MIX_1
    np.right_shift(values, _U64(33), out=shifted)
    values ^= shifted
    values *= _MIX_2
    np.right_shift(values, _U64(33), out=shifted)
    values ^= shifted
    return values


def combine(hashes: UInt64Array, key_hashes: UInt64Array) -> UInt64Array:
    """Return the row hashes with one more key folded in; the order of keys matters."""
    rotated = (hashes << _U64(27)) | (hashes >> _U64(37))
    return rotated * _MIX_1 + key_hashes


def combine_first(seed: int, key_hashes: UInt64Array) -> UInt64Array:
    """Return `combine` of rows that all have the hash `seed`; it takes `key_hashes` as its own."""
    # In Python integers: numpy warns of overflow for scalars, though not for arrays.
    rotated = (seed << 27 | seed >> 37) & _MASK
    key_hashes += _U64(rotated * int(_MIX_1) & _MASK)
    return key_hashes


def hash_array(array: pa.Array) -> UInt64Array:
    """Return one hash per row.

    Raises:
        TypeError: The type has no canonical form.
    """
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _hash_dictionary(array)
    if pa.types.is_null(kind):
        return np.full(len(array), _NULL_HASH, dtype=np.uint64)
    array = prepare(array)
    hashes = _hash_values(array)
    if array.null_count:
        hashes[~_validity(array)] = _NULL_HASH
    return hashes


def prepare(array: pa.Array) -> pa.Array:
    """Return `array` with string and binary views laid out as offsets and bytes."""
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    if pa.types.is_binary_view(array.type):
        return array.cast(pa.large_binary())
    return array


def _hash_values(array: pa.Array) -> UInt64Array:
    """Return hashes that are meaningless where the row is NULL."""
    kind = array.type
    if pa.types.is_integer(kind):
        return _hash_integers(_values(array, _integer_dtype(kind)))
    if pa.types.is_boolean(kind):
        return _hash_integers(_bits(array.buffers()[1], array.offset, len(array)).astype(np.int64))
    if pa.types.is_decimal(kind) and kind.bit_width <= 128 and kind.scale >= 0:
        return _hash_decimals(array)
    if pa.types.is_floating(kind):
        with np.errstate(invalid="ignore"):  # widening a signalling NaN
            doubles = _values(array, _FLOAT_TYPES[kind.bit_width]).astype(np.float64, copy=False)
        return _hash_doubles(doubles)
    if pa.types.is_date32(kind):
        return _hash_integers(_values(array, np.int32))
    if pa.types.is_date64(kind):
        return _hash_integers(_values(array, np.int64) // 86_400_000)
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return _hash_integers(_to_micros(_values(array, np.int64), kind.unit))
    if pa.types.is_time(kind):
        width = np.int32 if kind.bit_width == 32 else np.int64
        return _hash_integers(_to_micros(_values(array, width).astype(np.int64), kind.unit))
    if pa.types.is_fixed_size_binary(kind):
        width = kind.byte_width
        starts = (np.arange(len(array), dtype=np.int64) + array.offset) * width
        lengths = np.full(len(array), width, dtype=np.int64)
        return _hash_strings(array.buffers()[1], starts, lengths)
    if (
        pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_large_binary(kind)
    ):
        return _hash_variable_width(array)
    raise TypeError(f"no canonical form for type {kind}")


_FLOAT_TYPES: dict[int, type[np.floating[Any]]] = {16: np.float16, 32: np.float32, 64: np.float64}


def _values(array: pa.Array, dtype: Any) -> _AnyArray:
    """Return the fixed-width values of `array` without a copy."""
    if len(array) == 0:
        return np.empty(0, dtype=dtype)
    itemsize = np.dtype(dtype).itemsize
    return np.frombuffer(
        array.buffers()[1], dtype=dtype, count=len(array), offset=array.offset * itemsize
    )


def _integer_dtype(kind: pa.DataType) -> np.dtype[Any]:
    sign = "i" if pa.types.is_signed_integer(kind) else "u"
    return np.dtype(f"<{sign}{kind.bit_width // 8}")


def _bits(buffer: pa.Buffer, offset: int, length: int) -> npt.NDArray[np.bool_]:
    """Return `length` bits of a bitmap from bit `offset`."""
    if length == 0:
        return np.empty(0, dtype=np.bool_)
    first = offset // 8
    count = (offset + length + 7) // 8 - first
    packed = np.frombuffer(buffer, dtype=np.uint8, count=count, offset=first)
    skip = offset - first * 8
    return np.unpackbits(packed, bitorder="little")[skip : skip + length].view(np.bool_)


def _validity(array: pa.Array) -> npt.NDArray[np.bool_]:
    return _bits(array.buffers()[0], array.offset, len(array))


def _hash_dictionary(array: pa.Array) -> UInt64Array:
    """Hash each distinct value once; a NULL index and a NULL value are both NULL."""
    if len(array.dictionary) == 0:
        return np.full(len(array), _NULL_HASH, dtype=np.uint64)
    table = hash_array(array.dictionary)
    indices = array.indices
    positions = _values(indices, _integer_dtype(indices.type)).astype(np.int64)
    if not indices.null_count:
        return table[positions]
    valid = _validity(indices)
    return np.where(valid, table[np.where(valid, positions, 0)], _NULL_HASH)


def _hash_integers(values: _AnyArray) -> UInt64Array:
    """Hash integers of any width as 128-bit values; the high half is the sign."""
    if values.dtype == np.uint64:
        return _hash_wide(values, np.zeros_like(values))
    signed = values.astype(np.int64, copy=False)
    return _hash_wide(signed.view(np.uint64), (signed >> 63).view(np.uint64))


def _hash_wide(low: UInt64Array, high: UInt64Array) -> UInt64Array:
    mixed = high * _WIDE
    mixed ^= low
    return mix(mixed)


def _hash_doubles(values: npt.NDArray[np.float64]) -> UInt64Array:
    # On the bits: arithmetic on a signalling NaN would warn.
    bits = values.view(np.uint64).copy()
    bits[bits == _NEGATIVE_ZERO] = 0
    bits[(bits & ~_NEGATIVE_ZERO) > _INFINITY] = _NAN
    return mix(bits)


def _to_micros(values: npt.NDArray[np.int64], unit: str) -> npt.NDArray[np.int64]:
    if unit == "us":
        return values
    if unit == "ns":
        return values // 1000
    # Wraps for years beyond 290,000, which are no SQL timestamps; still a function of the value.
    return values * (1_000_000 if unit == "s" else 1000)


def _hash_decimals(array: pa.Array) -> UInt64Array:
    low, high = _unscaled(array)
    scale = array.type.scale
    if scale == 0 or len(array) == 0:
        return _hash_wide(low, high)
    small = high == (low.view(np.int64) >> 63).view(np.uint64)
    scales = np.full(len(array), scale, dtype=np.uint64)
    low, high = low.copy(), high.copy()
    if small.all():
        values, scales = _strip_zeros(low.view(np.int64), scale)
        low, high = values.view(np.uint64), (values >> 63).view(np.uint64)
    else:
        values, stripped = _strip_zeros(low[small].view(np.int64), scale)
        low[small], high[small] = values.view(np.uint64), (values >> 63).view(np.uint64)
        scales[small] = stripped
        low[~small], high[~small], scales[~small] = _strip_zeros_wide(
            low[~small], high[~small], scale
        )
    return _hash_wide(low, high) + scales * _SCALE


def _unscaled(array: pa.Array) -> tuple[UInt64Array, UInt64Array]:
    """Return the low and high halves of the unscaled values as 128-bit two's complement."""
    width = array.type.bit_width
    if width < 128:
        values = _values(array, np.int32 if width == 32 else np.int64).astype(np.int64)
        return values.view(np.uint64), (values >> 63).view(np.uint64)
    if len(array) == 0:
        return np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint64)
    halves = np.frombuffer(
        array.buffers()[1], dtype=np.uint64, count=2 * len(array), offset=16 * array.offset
    )
    return halves[0::2], halves[1::2]


def _strip_zeros(
    values: npt.NDArray[np.int64], scale: int
) -> tuple[npt.NDArray[np.int64], UInt64Array]:
    """Divide by ten while that is exact and the scale is positive; return values and scales."""
    values = values.copy()
    scales = np.full(len(values), scale, dtype=np.uint64)
    active = np.arange(len(values))
    for _ in range(scale):
        current = values[active]
        quotient = current // 10
        exact = quotient * 10 == current
        active = active[exact]
        if not len(active):
            break
        values[active] = quotient[exact]
        scales[active] -= _U64(1)
    return values, scales


def _strip_zeros_wide(
    low: UInt64Array, high: UInt64Array, scale: int
) -> tuple[UInt64Array, UInt64Array, UInt64Array]:
    """Do as `_strip_zeros` for values beyond 64 bits: long division over four 32-bit limbs."""
    negative = (high >> _U64(63)).astype(np.bool_)
    low, high = _negate_where(low, high, negative)
    mask = _U64(0xFFFF_FFFF)
    limbs = np.stack([high >> _U64(32), high & mask, low >> _U64(32), low & mask])
    scales = np.full(len(low), scale, dtype=np.uint64)
    active = np.ones(len(low), dtype=np.bool_)
    for _ in range(scale):
        remainder = np.zeros(len(low), dtype=np.uint64)
        quotient = np.empty_like(limbs)
        for position in range(4):
            dividend = (remainder << _U64(32)) | limbs[position]
            quotient[position] = dividend // _U64(10)
            remainder = dividend % _U64(10)
        active &= remainder == 0
        if not active.any():
            break
        limbs[:, active] = quotient[:, active]
        scales[active] -= _U64(1)
    high = (limbs[0] << _U64(32)) | limbs[1]
    low = (limbs[2] << _U64(32)) | limbs[3]
    low, high = _negate_where(low, high, negative)
    return low, high, scales


def _negate_where(
    low: UInt64Array, high: UInt64Array, where: npt.NDArray[np.bool_]
) -> tuple[UInt64Array, UInt64Array]:
    negated_low = ~low + _U64(1)
    negated_high = ~high + (negated_low == 0).astype(np.uint64)
    return np.where(where, negated_low, low), np.where(where, negated_high, high)


def _hash_variable_width(array: pa.Array) -> UInt64Array:
    kind = array.type
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    dtype = np.int64 if wide else np.int32
    if len(array) == 0:
        return np.empty(0, dtype=np.uint64)
    offsets = np.frombuffer(
        array.buffers()[1],
        dtype=dtype,
        count=len(array) + 1,
        offset=array.offset * np.dtype(dtype).itemsize,
    ).astype(np.int64)
    lengths = offsets[1:] - offsets[:-1]
    if array.null_count:
        # The bytes below a NULL are arbitrary, and may be long.
        lengths = np.where(_validity(array), lengths, 0)
    return _hash_strings(array.buffers()[2], offsets[:-1], lengths)


def _hash_strings(
    buffer: pa.Buffer | None, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> UInt64Array:
    """Hash byte strings as a sum over their 8-byte words, each mixed with its position.

    All strings advance one word per pass, and those that have ended drop out, so the number of
    numpy calls is the number of words of the longest string but for the last few strings.
    """
    sums = lengths.astype(np.uint64) * _LENGTH
    active = np.flatnonzero(lengths)
    if not len(active):
        return mix(sums)
    words = _unaligned_words(buffer)
    starts, remaining = starts[active], lengths[active]
    position = 0
    while len(active) > _FEW_ROWS:
        found = _read_words(words, starts) & _BYTE_MASKS[np.minimum(remaining, 8)]
        sums[active] += mix(found ^ _word_key(position))
        position += 1
        more = remaining > 8
        if more.all():
            starts, remaining = starts + 8, remaining - 8
        else:
            active, starts, remaining = active[more], starts[more] + 8, remaining[more] - 8
    rests = [
        _sum_words(words, int(start), int(length), position)
        for start, length in zip(starts, remaining, strict=True)
    ]
    sums[active] += np.array(rests, dtype=np.uint64)
    return mix(sums)


def _word_key(position: int) -> np.uint64:
    # In Python integers: numpy warns of overflow for scalars, though not for arrays.
    return _U64((position + 1) * int(_WORD) & _MASK)


def _sum_words(words: _Words, start: int, length: int, position: int) -> np.uint64:
    """Return the rest of one string's sum, all its words at once."""
    count = (length + 7) // 8
    found = _read_words(words, start + 8 * np.arange(count, dtype=np.int64))
    found[-1] &= _BYTE_MASKS[length - 8 * (count - 1)]
    keys = np.arange(position + 1, position + 1 + count, dtype=np.uint64) * _WORD
    return np.add.reduce(mix(found ^ keys), dtype=np.uint64)


class _Words:
    """A byte buffer as a little-endian 8-byte word at every byte offset."""

    def __init__(self, body: UInt64Array, tail: UInt64Array, num_body: int) -> None:
        self.body = body
        self.tail = tail
        self.num_body = num_body


def _unaligned_words(buffer: pa.Buffer | None) -> _Words:
    size = 0 if buffer is None else buffer.size
    num_body = max(size - 7, 0)
    body = (
        np.ndarray((num_body,), dtype="<u8", buffer=buffer, strides=(1,))
        if num_body
        else np.empty(0, dtype=np.uint64)
    )
    # The last 7 offsets have no whole word behind them: serve them from a padded copy.
    last = b"" if buffer is None else buffer.slice(num_body).to_pybytes()
    padded = last + bytes(8)
    tail = np.ndarray((len(last),), dtype="<u8", buffer=padded, strides=(1,))
    return _Words(body, tail, num_body)


def _read_words(words: _Words, starts: npt.NDArray[np.int64]) -> UInt64Array:
    if len(starts) and int(starts.max()) < words.num_body:
        return words.body[starts]
    found = np.empty(len(starts), dtype=np.uint64)
    inside = starts < words.num_body
    found[inside] = words.body[starts[inside]]
    found[~inside] = words.tail[starts[~inside] - words.num_body]
    return found
