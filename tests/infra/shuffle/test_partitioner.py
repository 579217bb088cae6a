"""The portable hash: frozen values, equality classes, slices, distribution."""

from __future__ import annotations

import datetime
import decimal
import math
import subprocess
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagecoach.infra.shuffle import key_hash
from stagecoach.infra.shuffle.partitioner import (
    MAX_PARTITIONS,
    PARTITIONER_VERSION,
    PartitionKeyError,
    hash_rows,
    partition_ids,
)

UTC = datetime.UTC


def hash_of(value: Any, kind: pa.DataType) -> int:
    return int(hash_rows(one_column(pa.array([value], type=kind)), [0])[0])


def one_column(array: pa.Array) -> pa.RecordBatch:
    return pa.record_batch([array], names=["k"])


# A change here breaks every join between old and new shuffle files: raise PARTITIONER_VERSION.
FROZEN: list[tuple[Any, pa.DataType, int]] = [
    (None, pa.int32(), 0x8990A9E2FB846D4C),
    (0, pa.int32(), 0x7681E38DAD0AC305),
    (1, pa.int64(), 0x3F296EA17A0C06E3),
    (-1, pa.int16(), 0x4C346E078CB31B89),
    (2**63 - 1, pa.int64(), 0x269AE49813D645BF),
    (-(2**63), pa.int64(), 0x6DD87D55628D05B4),
    (2**64 - 1, pa.uint64(), 0x14C44457AA33A3BD),
    (True, pa.bool_(), 0x3F296EA17A0C06E3),
    (False, pa.bool_(), 0x7681E38DAD0AC305),
    (Decimal("123.45"), pa.decimal64(15, 2), 0x682EC2C0CBB08FF2),
    (Decimal("-0.01"), pa.decimal128(38, 2), 0x8EC6598523B5F7BA),
    (Decimal("12345678901234567890123456789.012300000"), pa.decimal128(38, 9), 0xCDBD0417CA95E296),
    (Decimal("-99999999999999999999999999999999999999"), pa.decimal128(38, 0), 0xB07A00560261C79C),
    (0.0, pa.float64(), 0x7681E38DAD0AC305),
    (1.5, pa.float32(), 0x9BDBE28BC6D72BB1),
    (-1e300, pa.float64(), 0x2B254C17AEA831B3),
    (math.inf, pa.float64(), 0xFA5A0F0B41F33433),
    (math.nan, pa.float64(), 0x96810E15C60DFE14),
    (datetime.date(2024, 2, 29), pa.date32(), 0xA6C4F1AD992B8B93),
    (datetime.date(1969, 7, 20), pa.date32(), 0x34AC6F34BCF05B07),
    (datetime.datetime(2024, 2, 29, 12, 30, 1, 500), pa.timestamp("us"), 0xACC60964B07BBC6C),
    (datetime.datetime(1900, 1, 1), pa.timestamp("us"), 0x32230B4FA8DD3572),
    (datetime.timedelta(microseconds=-1), pa.duration("us"), 0x4C346E078CB31B89),
    ("", pa.string(), 0x7681E38DAD0AC305),
    ("a", pa.string(), 0xC4D36924183887C9),
    ("abcdefgh", pa.string(), 0xBE78417BF4957E59),
    ("abcdefghi", pa.string(), 0x4DC035B61BDA0ECF),
    ("größer als €", pa.string(), 0xEA29B3CFFABBAC43),
    ("x" * 1000, pa.string(), 0xFCB39DB581828EEC),
    (b"\x00\xff", pa.binary(), 0x57471AEB3C96B14E),
]


@pytest.mark.parametrize(("value", "kind", "expected"), FROZEN, ids=lambda v: str(v)[:40])
def test_frozen_vectors(value: Any, kind: pa.DataType, expected: int) -> None:
    assert PARTITIONER_VERSION == 1
    assert f"{hash_of(value, kind):016x}" == f"{expected:016x}"


def test_frozen_rows() -> None:
    batch = pa.record_batch(
        [
            pa.array([1, 2, None, 4, 5], pa.int32()),
            pa.array(["a", "", None, "longer than eight bytes", "é"]),
            pa.array([0.0, 1.5, math.nan, None, -1.0]),
        ],
        names=["a", "b", "c"],
    )
    assert partition_ids(batch, [0, 1, 2], 1000).tolist() == [25, 61, 97, 642, 825]
    assert partition_ids(batch, [2, 0], 7).tolist() == [5, 1, 4, 0, 1]


ALIKE: list[list[tuple[Any, pa.DataType]]] = [
    [
        (value, kind)
        for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64())
        for value in (5,)
    ]
    + [
        (Decimal("5"), pa.decimal32(9, 0)),
        (Decimal("5.00"), pa.decimal32(9, 2)),
        (Decimal("5.0"), pa.decimal64(15, 1)),
        (Decimal("5.00"), pa.decimal128(15, 2)),
        (Decimal("5.000000000000000000"), pa.decimal128(38, 18)),
        (Decimal("5." + "0" * 37), pa.decimal128(38, 37)),  # unscaled beyond 64 bits
    ],
    [
        (-7, pa.int8()),
        (-7, pa.int64()),
        (Decimal("-7.00"), pa.decimal64(10, 2)),
        (Decimal("-7." + "0" * 37), pa.decimal128(38, 37)),
    ],
    [
        (Decimal("-1.5"), pa.decimal32(5, 1)),
        (Decimal("-1.50"), pa.decimal64(15, 2)),
        (Decimal("-1.5" + "0" * 30), pa.decimal128(38, 31)),
    ],
    [(0, pa.int8()), (Decimal("0.000"), pa.decimal128(20, 3)), (Decimal("0.0"), pa.decimal32(5, 1))],
    [(0.0, pa.float64()), (-0.0, pa.float64()), (0.0, pa.float32()), (-0.0, pa.float32())],
    [(0.5, pa.float16()), (0.5, pa.float32()), (0.5, pa.float64())],
    [(math.nan, pa.float64()), (math.nan, pa.float32()), (-math.nan, pa.float64())],
    [
        ("héllo wörld", kind)
        for kind in (pa.string(), pa.large_string(), pa.string_view())
    ]
    + [
        ("héllo wörld".encode(), kind)
        for kind in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(13))
    ],
    [
        (datetime.datetime(2024, 5, 6, 7, 8, 9), pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")
    ]
    + [(datetime.datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC), pa.timestamp("us", "Europe/Berlin"))],
    [(datetime.date(1969, 12, 31), pa.date32()), (datetime.date(1969, 12, 31), pa.date64())],
    [
        (None, kind)
        for kind in (
            pa.null(), pa.int8(), pa.decimal128(38, 3), pa.float64(), pa.string(), pa.string_view(),
            pa.bool_(), pa.date32(), pa.timestamp("us"), pa.dictionary(pa.int8(), pa.string()),
        )
    ],
]  # fmt: skip


@pytest.mark.parametrize("group", ALIKE, ids=lambda group: str(group[0]))
def test_equal_sql_values_are_alike(group: list[tuple[Any, pa.DataType]]) -> None:
    hashes = {str(kind): hash_of(value, kind) for value, kind in group}
    assert len(set(hashes.values())) == 1, hashes


def test_every_nan_is_the_same() -> None:
    bits = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001], dtype=np.uint64)
    array = pa.Array.from_buffers(pa.float64(), 3, [None, pa.py_buffer(bits)])
    assert len(set(hash_rows(one_column(array), [0]).tolist())) == 1


def test_different_values_differ() -> None:
    values = [0, 1, -1, 2, 10, 100, 1 << 32, 1 << 62, -(1 << 62), None]
    assert len(set(hash_rows(one_column(pa.array(values, pa.int64())), [0]).tolist())) == len(
        values
    )
    decimals = [
        Decimal(text) for text in ("0.1", "0.01", "1.0", "10.0", "100", "0.11", "1.1", "-0.1")
    ]
    assert len({hash_of(value, pa.decimal128(38, 10)) for value in decimals}) == len(decimals)
    texts = ["", "\0", "\0\0", "a", "a\0", "b", "ab", "ba", "a" * 8, "a" * 9, "a" * 16, "a" * 17]
    texts += ["12345678abcdefgh", "abcdefgh12345678"]  # words swapped
    assert len(set(hash_rows(one_column(pa.array(texts)), [0]).tolist())) == len(texts)


def test_null_is_not_zero_or_empty() -> None:
    assert hash_of(None, pa.int64()) != hash_of(0, pa.int64())
    assert hash_of(None, pa.string()) != hash_of("", pa.string())


def test_order_of_keys_matters() -> None:
    batch = pa.record_batch([pa.array([1]), pa.array([2])], names=["a", "b"])
    assert hash_rows(batch, [0, 1]) != hash_rows(batch, [1, 0])


def test_bytes_below_a_null_do_not_matter() -> None:
    offsets = pa.py_buffer(np.array([0, 3, 6], dtype=np.int32))
    valid = pa.py_buffer(b"\x02")
    array = pa.Array.from_buffers(pa.string(), 2, [valid, offsets, pa.py_buffer(b"abcdef")])
    assert array.to_pylist() == [None, "def"]
    expected = hash_rows(one_column(pa.array([None, "def"])), [0])
    assert hash_rows(one_column(array), [0]).tolist() == expected.tolist()


@pytest.mark.parametrize(
    "kind",
    [
        pa.struct([("x", pa.int32())]), pa.list_(pa.int32()), pa.map_(pa.string(), pa.string()),
        pa.month_day_nano_interval(), pa.decimal256(50, 2),
    ],
    ids=str,
)  # fmt: skip
def test_keys_without_canonical_form_are_refused(kind: pa.DataType) -> None:
    batch = pa.record_batch([pa.nulls(2, kind)], names=["bad"])
    with pytest.raises(
        PartitionKeyError, match=r"column 'bad' of type .* cannot be a partition key"
    ):
        partition_ids(batch, [0], 4)


@pytest.mark.parametrize("num_partitions", [0, -1, MAX_PARTITIONS + 1])
def test_number_of_partitions_is_checked(num_partitions: int) -> None:
    with pytest.raises(PartitionKeyError, match=r"must be between 1 and 65536"):
        partition_ids(one_column(pa.array([1])), [0], num_partitions)


def test_no_rows() -> None:
    for kind in (pa.int32(), pa.string(), pa.bool_(), pa.decimal128(5, 2), pa.binary(4), pa.null()):
        assert len(partition_ids(one_column(pa.array([], kind)), [0], 5)) == 0


@pytest.mark.parametrize("num_partitions", [2, 7, 64, 1000])
@pytest.mark.parametrize("kind", ["sequence", "stride", "double", "string", "date"])
def test_partitions_are_even(kind: str, num_partitions: int) -> None:
    numbers = np.arange(100_000)
    array = {
        "sequence": pa.array(numbers),
        "stride": pa.array(numbers * 1024),
        "double": pa.array(numbers.astype(np.float64)),
        "string": pa.array([f"Customer#{n:09d}" for n in range(100_000)]),
        "date": pa.array(numbers.astype(np.int32)).cast(pa.date32()),
    }[kind]
    counts = np.bincount(partition_ids(one_column(array), [0], num_partitions))
    mean = 100_000 / num_partitions
    assert len(counts) == num_partitions
    assert np.abs(counts - mean).max() < 6 * math.sqrt(mean)


VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int32": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "bool": (pa.bool_(), st.booleans()),
    "double": (pa.float64(), st.floats()),
    "date": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us"), st.datetimes()),
    "decimal": (pa.decimal128(38, 6), st.decimals(-(10**31), 10**31, places=6)),
    "decimal64": (pa.decimal64(18, 3), st.decimals(-(10**14), 10**14, places=3)),
    "string": (pa.string(), st.text(max_size=40)),
    "view": (pa.string_view(), st.text(max_size=40)),
    "binary": (pa.binary(), st.binary(max_size=40)),
    "fixed": (pa.binary(9), st.binary(min_size=9, max_size=9)),
}


@pytest.mark.parametrize("name", VALUES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_row_hashes_alike_wherever_it_lies(name: str, data: st.DataObject) -> None:
    kind, strategy = VALUES[name]
    values = data.draw(st.lists(st.none() | strategy, max_size=70))
    with decimal.localcontext() as context:
        context.prec = 60
        array = pa.array(values, kind)
        whole = hash_rows(one_column(array), [0]).tolist()
        singles = [hash_of(value, kind) for value in values]
    assert whole == singles
    start = data.draw(st.integers(0, len(values)))
    length = data.draw(st.integers(0, len(values)))
    sliced = hash_rows(one_column(array.slice(start, length)), [0]).tolist()
    assert sliced == whole[start : start + length]
    if name not in ("view", "decimal64"):  # Arrow cannot encode these
        encoded = hash_rows(one_column(array.dictionary_encode()), [0]).tolist()
        assert encoded == whole


@settings(max_examples=60, deadline=None)
@given(value=st.decimals(-(10**28), 10**28, places=4), scale=st.integers(4, 9))
def test_decimals_of_every_scale_are_alike(value: Decimal, scale: int) -> None:
    with decimal.localcontext() as context:
        context.prec = 60
        wider = value.quantize(Decimal(1).scaleb(-scale))
        assert hash_of(value, pa.decimal128(38, 4)) == hash_of(wider, pa.decimal128(38, scale))
        if value == value.to_integral_value() and abs(value) < 2**63:
            assert hash_of(int(value), pa.int64()) == hash_of(value, pa.decimal128(38, 4))


def test_long_strings_are_hashed_as_short_ones() -> None:
    """The last few long strings take another path than the crowd: same hashes."""
    texts = [("x" * n) + str(n) for n in (0, 7, 8, 9, 100, 5000, 70_000)]
    few = hash_rows(one_column(pa.array(texts)), [0]).tolist()
    crowd = hash_rows(one_column(pa.array(texts * key_hash._FEW_ROWS * 2)), [0]).tolist()
    assert crowd == few * key_hash._FEW_ROWS * 2


def test_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    array = pa.array([None if n % 7 == 0 else f"value {n}" for n in range(1000)])
    whole = hash_rows(one_column(array), [0]).tolist()
    monkeypatch.setattr("stagecoach.infra.shuffle.partitioner._BLOCK_ROWS", 17)
    assert hash_rows(one_column(array), [0]).tolist() == whole


def test_partitioner_imports_no_pandas() -> None:
    code = (
        "import sys, pyarrow as pa; from stagecoach.infra.shuffle.partitioner import partition_ids;"
        # From buffers: pa.array() of a list imports pandas all by itself.
        "a = pa.Array.from_buffers(pa.int64(), 2, [None, pa.py_buffer(bytes(16))]);"
        "b = pa.record_batch([a, a.cast(pa.string())], names=['a', 'b']);"
        "partition_ids(b, [0, 1], 7);"
        "found = {'pandas', 'pyspark', 'dagster'} & set(sys.modules); assert not found, found"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
