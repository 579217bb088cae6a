"""Order and equality of keys: against plain Python, on what engines differ about."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagecoach.infra.formats.deduplicated.key_order import (
    has_duplicates,
    latest_rows,
    neighbours,
    sort_positions,
)
from tests.infra.formats.deduplicated.model import canonical, rank, sorted_by

DOUBLES = st.sampled_from([None, float("nan"), -0.0, 0.0, 1.5, float("inf"), float("-inf")])
TEXTS = st.sampled_from([None, "", "a", "B", "é", "𝄞", "￿"])
INTS = st.sampled_from([None, -(2**63), 0, 1, 2**63 - 1])
BOOLS = st.sampled_from([None, False, True])
ROWS = st.lists(st.tuples(DOUBLES, TEXTS, INTS, BOOLS), max_size=30)
NAMES = ("d", "t", "i", "b")


def table(rows: list[tuple[Any, ...]], pieces: int = 1) -> pa.Table:
    schema = pa.schema(
        [("d", pa.float64()), ("t", pa.string()), ("i", pa.int64()), ("b", pa.bool_())]
    )
    parts = [rows[i::1][:1] for i in range(len(rows))] if pieces > 1 else [rows]
    made = [
        pa.Table.from_pylist([dict(zip(NAMES, r, strict=True)) for r in p], schema) for p in parts
    ]
    return pa.concat_tables(made) if made else schema.empty_table()


def python_key(row: tuple[Any, ...], names: tuple[str, ...]) -> tuple[Any, ...]:
    values = dict(zip(NAMES, row, strict=True))
    encoded = [v.encode() if isinstance(v := values[n], str) else v for n in names]
    return tuple(rank(value) for value in encoded)


@settings(max_examples=40, deadline=None)
@given(ROWS, st.permutations(NAMES), st.integers(1, 4), st.integers(1, 2))
def test_rows_are_sorted_as_python_sorts_them(
    rows: list[tuple[Any, ...]], order: list[str], count: int, pieces: int
) -> None:
    names = tuple(order[:count])
    found = sort_positions(table(rows, pieces), names).to_pylist()
    # Python's sort is stable as well.
    assert found == sorted(range(len(rows)), key=lambda i: python_key(rows[i], names))
    assert sorted_by(table(rows).take(pa.array(found, pa.uint64())), names)
    in_order = [python_key(row, names) for row in rows]
    above, equal = neighbours(table(rows, pieces), names)
    assert above.tolist() == [a < b for a, b in itertools.pairwise(in_order)]
    assert equal.tolist() == [a == b for a, b in itertools.pairwise(in_order)]


@settings(max_examples=40, deadline=None)
@given(ROWS, st.permutations(NAMES), st.integers(1, 4))
def test_duplicates_are_found(rows: list[tuple[Any, ...]], order: list[str], count: int) -> None:
    names = order[:count]
    keys = [tuple(canonical(row[NAMES.index(n)]) for n in names) for row in rows]
    assert has_duplicates(table(rows), names) == (len(set(keys)) < len(keys))


@settings(max_examples=40, deadline=None)
@given(ROWS, st.sampled_from([None, "d", "t", "i"]))
def test_the_latest_row_of_a_key_wins(rows: list[tuple[Any, ...]], version: str | None) -> None:
    key = ("b", "d") if version != "d" else ("b",)
    expected: dict[tuple[Any, ...], int] = {}
    for position, row in enumerate(rows):
        values = dict(zip(NAMES, row, strict=True))
        own = tuple(canonical(values[n]) for n in key)
        old = expected.get(own)
        if (
            old is None
            or version is None
            or python_key(row, (version,)) >= python_key(rows[old], (version,))
        ):
            expected[own] = position
    found, positions = latest_rows(table(rows), key, version)
    assert sorted(positions.to_pylist()) == sorted(expected.values())
    assert found.num_rows == len(expected)
    assert sorted_by(found, key)


def test_without_a_key_one_row_is_left() -> None:
    rows = pa.table({"v": [1, 2, 3]})
    assert latest_rows(rows, (), None)[0].to_pylist() == [{"v": 3}]
    assert has_duplicates(rows, ())


@pytest.mark.parametrize(
    "values",
    [
        pa.array([b"b", None, b"a", b"b"]),
        pa.array([3, None, 1, 3], pa.date32()),
        pa.array([3, None, 1, 3], pa.timestamp("us", "UTC")),
        pa.array([3, None, 1, 3], pa.int8()).cast(pa.decimal128(20, 2)),
        pa.array([3, None, 1, 3], pa.float32()),
    ],
    ids=lambda v: str(v.type),
)
def test_every_type_of_a_key_is_ordered(values: pa.Array) -> None:
    rows = pa.table({"k": values})
    assert sort_positions(rows, ["k"]).to_pylist() == [1, 2, 0, 3]
    assert has_duplicates(rows, ["k"])
    assert not has_duplicates(rows.slice(0, 3), ["k"])
    assert latest_rows(rows, ["k"], None)[1].to_pylist() == [1, 2, 3]
