"""Rows are compared by the equality of Spark's values."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagecoach.assets.query_tests.compare import difference

DOUBLE = pa.float64()
MAP = pa.map_(pa.string(), pa.float64())
STRUCT = pa.struct([("a", pa.float64()), ("b", pa.list_(pa.timestamp("us")))])


def table(values: list[Any], kind: pa.DataType) -> pa.Table:
    return pa.table({"c0": pa.array(values, kind)})


def equal(left: list[Any], right: list[Any], kind: pa.DataType, **options: Any) -> bool:
    ordered = options.pop("ordered", False)
    return difference(table(left, kind), table(right, kind), ordered=ordered, **options) is None


@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        ([None], [None], pa.int32()),
        ([math.nan], [math.nan], DOUBLE),
        ([0.0], [-0.0], DOUBLE),
        ([Decimal("1.0")], [Decimal("1.00")], pa.decimal128(10, 2)),
        ([{"a": -0.0, "b": None}], [{"a": 0.0, "b": None}], STRUCT),
        ([[("x", 1.0), ("y", math.nan)]], [[("y", math.nan), ("x", 1.0)]], MAP),
        ([1, 2, 2], [2, 1, 2], pa.int32()),
        ([], [], pa.int32()),
    ],
)
def test_equal(left: list[Any], right: list[Any], kind: pa.DataType) -> None:
    assert equal(left, right, kind)


@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        ([None], [0], pa.int32()),
        ([None], [math.nan], DOUBLE),
        ([0.1 + 0.2], [0.3], DOUBLE),
        ([1, 1, 2], [1, 2, 2], pa.int32()),
        ([1], [], pa.int32()),
        ([], [1], pa.int32()),
        ([{"a": 1.0, "b": []}], [{"a": 1.0, "b": None}], STRUCT),
        (["NaN"], ["nan"], pa.string()),
    ],
)
def test_different(left: list[Any], right: list[Any], kind: pa.DataType) -> None:
    assert not equal(left, right, kind)


def test_order_counts_if_the_query_orders() -> None:
    assert equal([1, 2], [1, 2], pa.int32(), ordered=True)
    told = difference(table([1, 2], pa.int32()), table([2, 1], pa.int32()), ordered=True)
    assert told is not None
    assert told.reordered


@pytest.mark.parametrize("ordered", [True, False])
def test_tolerance(ordered: bool) -> None:
    assert equal([0.1 + 0.2, 5.0], [0.3, 5.0], DOUBLE, tolerance=1e-9, ordered=ordered)
    assert not equal([0.1, 5.0], [0.3, 5.0], DOUBLE, tolerance=1e-9, ordered=ordered)
    assert not equal([None, 5.0], [0.3, 5.0], DOUBLE, tolerance=1e-9, ordered=ordered)


def test_similar_rows_are_shown_together() -> None:
    left = pa.table({"k": [1, 2, 3], "v": ["a", "b", "c"]})
    right = pa.table({"k": [3, 2, 4], "v": ["x", "b", "y"]})
    told = difference(left, right, ordered=False)
    assert told is not None
    assert told.pairs == ((0, None), (2, 0), (None, 2))


CELLS = st.one_of(st.none(), st.sampled_from([0.0, -0.0, math.nan, 1.5, math.inf]))


@settings(deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS)), st.randoms())
def test_a_bag_equals_any_order_of_itself(rows: list[tuple[Any, Any]], random: Any) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    names = ("a", "b")
    schema = pa.schema([(name, DOUBLE) for name in names])
    left, right = (
        pa.Table.from_pylist([dict(zip(names, r, strict=True)) for r in part], schema)
        for part in (rows, shuffled)
    )
    assert difference(left, right, ordered=False) is None
    if rows:
        told = difference(left, right.slice(1), ordered=False)
        assert told is not None
        assert len(told.pairs) == 1
        assert told.pairs[0][1] is None
