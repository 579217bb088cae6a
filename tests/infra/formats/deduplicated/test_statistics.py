"""What chunks tell of their rows: NULL, NaN, -0.0, no rows, and values that a float cannot hold."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagecoach.infra.formats.deduplicated.declaration import Declaration
from stagecoach.infra.formats.deduplicated.statistics import (
    merge_facts,
    row_facts,
    sort_facts,
    summarize,
)

NAN = float("nan")


def column(values: list[Any], dtype: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, dtype)])


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        ([], pa.int64(), (0, None, None, 0)),
        ([None, None], pa.int64(), (2, None, None, 0)),
        ([3, None, -1, 3], pa.int32(), (1, -1, 3, 2)),
        ([1.5, -2.0, None], pa.float64(), (1, -2.0, 1.5, None)),
        ([1.0, NAN], pa.float64(), (0, None, None, None)),
        ([NAN, None], pa.float32(), (1, None, None, None)),
        ([-0.0, -0.0], pa.float64(), (0, 0.0, 0.0, None)),
        ([1.0, math.inf], pa.float64(), (0, 1.0, None, None)),
        ([-math.inf, 1.0], pa.float64(), (0, None, 1.0, None)),
        ([True, None, False], pa.bool_(), (1, 0, 1, None)),
        (["é", "", None, "z"], pa.string(), (1, "", "é", 3)),
        (["a" * 70], pa.string(), (0, "a" * 64, None, 1)),
        ([b"a"], pa.binary(), (0, None, None, None)),
        ([datetime.date(1970, 1, 3), None], pa.date32(), (1, 2, 2, 1)),
        ([7, None], pa.timestamp("us", "UTC"), (1, 7, 7, 1)),
        ([[1], None], pa.list_(pa.int32()), (1, None, None, None)),
    ],
    ids=str,
)
def test_bounds_and_counts(
    values: list[Any], dtype: pa.DataType, expected: tuple[Any, ...]
) -> None:
    found = summarize(column(values, dtype))
    shown = (found.null_count, found.min_value, found.max_value, found.distinct_count)
    assert shown == expected
    assert found.num_rows == len(values)
    for bound in (found.min_value, found.max_value):
        assert not isinstance(bound, float) or math.copysign(1, bound) == 1 or bound < 0  # no -0.0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.decimals(-(10**30), 10**30, places=8).filter(lambda d: len(d.as_tuple().digits) <= 38),
        min_size=1,
    )
)
def test_bounds_of_decimals_hold_all_values(values: list[Decimal]) -> None:
    found = summarize(column(values, pa.decimal128(38, 8)))
    assert isinstance(found.min_value, float)
    assert isinstance(found.max_value, float)
    assert Decimal(found.min_value) <= min(values)
    assert max(values) <= Decimal(found.max_value)


DECLARED = Declaration(
    primary_key=("p", "k", "t"), time_column="t", partition_by=("p",), delete_column="gone"
)
SCHEMA = pa.schema(
    [("p", pa.string()), ("k", pa.float64()), ("t", pa.date32()), ("gone", pa.bool_())]
)


def rows(*values: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, v, strict=True)) for v in values], SCHEMA)


def day(number: int) -> datetime.date:
    return datetime.date(1970, 1, 1) + datetime.timedelta(days=number)


def test_facts_of_rows() -> None:
    facts = row_facts(rows(("a", None, day(3), None), ("a", None, day(1), False)), DECLARED)
    assert (facts.partition, facts.time_min, facts.time_max) == (("a",), 1, 3)
    assert facts.null_columns == ("k",)
    assert not facts.has_deletes
    facts = row_facts(rows(("a", NAN, day(3), True), (None, -0.0, day(3), None)), DECLARED)
    assert (facts.partition, facts.time_min, facts.time_max) == (None, 3, 3)
    assert facts.null_columns == ()
    assert facts.has_deletes
    assert row_facts(rows((None, 1.0, day(0), None)), DECLARED).partition == (None,)


def test_a_column_that_is_not_there_is_null() -> None:
    facts = row_facts(rows(("a", 1.0, day(1), None)).select(["t"]), DECLARED)
    assert facts.null_columns == ("p", "k")
    assert facts.partition == (None,)
    assert not facts.has_deletes


def test_facts_of_no_rows() -> None:
    facts = row_facts(rows(), DECLARED)
    assert (facts.partition, facts.time_min, facts.time_max) == (None, None, None)
    assert sort_facts(rows(), DECLARED) == (("p", "k", "t"), False)


def test_facts_add_up() -> None:
    parts = [
        rows(("a", None, day(3), None), ("a", None, day(4), None)),
        rows(("a", NAN, day(1), True)),
    ]
    merged = merge_facts([row_facts(part, DECLARED) for part in parts], DECLARED)
    whole = row_facts(pa.concat_tables(parts), DECLARED)
    assert merged.summaries[1].null_count == whole.summaries[1].null_count == 2
    for name in ("partition", "time_min", "time_max", "has_deletes", "null_columns"):
        assert getattr(merged, name) == getattr(whole, name), name
    other = row_facts(rows(("b", None, day(9), None)), DECLARED)
    assert merge_facts([merged, other], DECLARED).partition is None


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((("a", 1.0, day(1), None), ("a", 2.0, day(0), None)), (("p", "k", "t"), False)),
        ((("a", 0.0, day(1), None), ("a", -0.0, day(1), None)), (("p", "k", "t"), True)),
        ((("a", NAN, day(1), None), ("a", NAN, day(1), None)), (("p", "k", "t"), True)),
        ((("a", NAN, day(1), None), ("a", 1.0, day(1), None)), (("t",), False)),
        ((("a", 1.0, day(1), None), (None, 1.0, day(0), None)), ((), False)),
        (
            (("b", 1.0, day(2), None), ("a", 1.0, day(1), None), ("b", 1.0, day(2), None)),
            ((), True),
        ),
    ],
    ids=str,
)
def test_order_and_duplicates(values: tuple[Any, ...], expected: tuple[Any, ...]) -> None:
    assert sort_facts(rows(*values), DECLARED) == expected
