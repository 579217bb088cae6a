"""Ranges of keys: whatever holds a key is met, and files between the keys are not."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagecoach.infra.pruning.key_ranges import (
    KeyRanges,
    folder_bounds,
    has_ranges,
    key_ranges,
    united,
)
from stagecoach.planner.types import BIGINT, DATE, DOUBLE, INT, STRING, DataType, parse_column_type

TIMESTAMP = parse_column_type("timestamp")
DECIMAL = parse_column_type("decimal(10,2)")


def ranges_of(dtype: DataType, values: list[Any], kind: pa.DataType, size: int = 2) -> KeyRanges:
    array = pa.array(sorted(values), kind)
    batches = [array.slice(start, 3) for start in range(0, len(array), 3)]
    return key_ranges(dtype, batches, has_null=False, size=size)


def test_files_between_the_keys_are_left_out() -> None:
    found = ranges_of(BIGINT, [1, 2, 50, 90, 91], pa.int64())
    assert found.ranges == ((1, 2), (50, 50), (90, 91))
    assert found.may_meet((0, 2, 10), 5)
    assert not found.may_meet((0, 3, 49), 5)
    assert found.may_meet((0, 51, 90), 5)
    assert not found.may_meet((0, 92, 99), 5)
    assert not found.may_meet((0, -5, 0), 5)


@pytest.mark.parametrize(
    ("dtype", "kind", "values", "inside", "outside"),
    [
        (DATE, pa.date32(), [dt.date(1970, 1, 11)], (10, 10), (11, 12)),
        (TIMESTAMP, pa.timestamp("us", "UTC"), [dt.datetime(1970, 1, 1, 0, 0, 1)], (10**6,) * 2, (0, 9)),
        (STRING, pa.string(), ["ß"], ("a", "\U0001f600"), ("a", "z")),
        (DECIMAL, pa.decimal128(10, 2), [Decimal("0.10")], (0.1, 0.1), (0.11, 0.2)),
    ],
)  # fmt: skip
def test_values_are_compared_in_the_units_of_bounds(
    dtype: DataType,
    kind: pa.DataType,
    values: list[Any],
    inside: tuple[Any, Any],
    outside: tuple[Any, Any],
) -> None:
    found = ranges_of(dtype, values, kind)
    assert found.may_meet((0, *inside), 1)
    assert not found.may_meet((0, *outside), 1)


def test_null_is_in_files_that_may_have_nulls() -> None:
    only_null = KeyRanges(ranges=(), has_null=True)
    assert only_null.may_meet((None, 1, 2), 5)
    assert only_null.may_meet((1, 1, 2), 5)
    assert not only_null.may_meet((0, 1, 2), 5)
    without = KeyRanges(ranges=((1, 2),), has_null=False)
    assert not without.may_meet((5, None, None), 5)
    assert without.may_meet((4, None, None), 5)
    assert not KeyRanges(ranges=(), has_null=False).may_meet((None, None, None), 5)


def test_where_nothing_is_known_every_file_is_met() -> None:
    assert not has_ranges(DOUBLE)
    assert KeyRanges(ranges=None).may_meet((0, 1, 2), 5)
    assert united([KeyRanges(ranges=None), KeyRanges(ranges=())]).may_meet((0, 1, 2), 5)
    open_ended = KeyRanges(ranges=(("a", "b"),), has_null=False)
    assert open_ended.may_meet((0, "a", None), 5)
    assert not open_ended.may_meet((0, "c", None), 5)


def test_folders_bound_their_columns() -> None:
    assert folder_bounds(None, INT, 7) == (7, None, None)
    assert folder_bounds("-3", INT, 7) == (0, -3, -3)
    assert folder_bounds("1970-01-03", DATE, 7) == (0, 2, 2)
    assert folder_bounds("ü/x", STRING, 7) == (0, "ü/x", "ü/x")


@given(
    parts=st.lists(st.lists(st.integers(-50, 50), max_size=12), min_size=1, max_size=4),
    low=st.integers(-60, 60),
    width=st.integers(0, 20),
    size=st.integers(1, 5),
)
def test_a_file_with_a_key_is_always_met(
    parts: list[list[int]], low: int, width: int, size: int
) -> None:
    """Also after the way through JSON; and with ranges of one key no other file is."""
    found = united([ranges_of(BIGINT, list(set(part)), pa.int64(), size) for part in parts])
    assert KeyRanges.from_dict(found.to_dict()) == found
    holds = any(low <= key <= low + width for part in parts for key in part)
    met = found.may_meet((0, low, low + width), 100)
    assert met or not holds
    if size == 1:
        assert met == holds
    assert found.ranges is not None
    flat = [value for pair in found.ranges for value in pair]
    assert flat == sorted(flat)
