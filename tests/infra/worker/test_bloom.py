"""Bloom filters: never a key too few, rarely one too many, equal values are equal keys."""

from __future__ import annotations

import datetime as dt
import json
import math
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagecoach.infra.errors import QueryError
from stagecoach.infra.worker.bloom import (
    HASHES,
    BloomStep,
    add_keys,
    may_hold,
    merge_filters,
)
from stagecoach.planner.distribution.bloom import BITS_PER_KEY, bloom_words
from stagecoach.planner.types import BIGINT, STRING, decimal

VALUES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int32(), st.integers(-(1 << 31), (1 << 31) - 1)),
    (pa.int64(), st.integers(-(1 << 63), (1 << 63) - 1)),
    (pa.string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=20)),
    (pa.binary(), st.binary(max_size=20)),
    (pa.float64(), st.floats()),
    (pa.bool_(), st.booleans()),
    # Eighths of which decimal(20, 3) holds all.
    (
        pa.decimal128(20, 3),
        st.integers(1 - 8 * 10**17, 8 * 10**17 - 1).map(lambda i: Decimal(i) / 8),
    ),
    (pa.date32(), st.dates()),
    (pa.timestamp("us"), st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 1, 1))),
]


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    """Rows of one to three key columns, with NULLs and duplicates."""
    kinds = draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=3))
    count = draw(st.integers(0, 40))
    rows = st.lists(st.tuples(*(st.none() | values for _, values in kinds)), max_size=count)
    found = draw(rows)
    arrays = [
        pa.array([row[i] for row in found] + [None], kind) for i, (kind, _) in enumerate(kinds)
    ]
    return pa.record_batch(arrays, [f"k{i}" for i in range(len(kinds))])


@settings(max_examples=60, deadline=None)
@given(batches(), st.integers(1, 50), st.integers(0, 40))
def test_a_key_that_is_there_always_passes(rows: pa.RecordBatch, words: int, cut: int) -> None:
    keys = list(range(rows.num_columns))
    # In two parts, as by two tasks, and probed in another order.
    parts = [rows.slice(0, cut), rows.slice(cut)]
    build = BloomStep(kind="build", num_words=words, keys=tuple(keys), types=(BIGINT,))
    made = [list(build.apply([part])) for part in parts]
    merge = BloomStep(kind="merge", num_words=words)
    (merged,) = merge.apply([batch for part in made for batch in part])
    assert merged.num_rows == 1
    probe = BloomStep(kind="probe", num_words=words, keys=tuple(keys), source=1)
    turned = rows.take(pa.array(range(rows.num_rows)[::-1], pa.int64()))
    assert list(probe.apply([turned], [merged])) == [turned]


def false_positive_rate(num_keys: float, num_words: int) -> float:
    """The share of keys that a filter lets pass though it does not have them.

    A word has `i` keys with the chance `Poisson(i; num_keys / num_words)`; then a bit is set with
    `1 - (1 - 1/64) ** (HASHES * i)`, and all `HASHES` bits of a foreign key are with that to the
    power of `HASHES` (Putze et al., section 3).

    Args:
        num_keys: Different keys in the filter.
        num_words: Its words.
    """
    mean = num_keys / num_words
    total, chance = 0.0, math.exp(-mean)
    for keys in range(1, int(mean + 12 * math.sqrt(mean) + 20)):
        chance *= mean / keys
        total += chance * (1 - (1 - 1 / 64) ** (HASHES * keys)) ** HASHES
    return total


@pytest.mark.parametrize("per_word", [2, 64 / BITS_PER_KEY, 10, 20])
def test_the_rate_of_foreign_keys_is_that_of_the_formula(per_word: float) -> None:
    num_keys = 50_000
    num_words = int(num_keys / per_word)
    rng = np.random.default_rng(7)
    words = np.zeros(num_words, dtype=np.uint64)
    add_keys(words, pa.record_batch({"k": rng.choice(1 << 30, num_keys, replace=False)}), [0])
    foreign = pa.record_batch({"k": rng.integers(1 << 30, 1 << 40, 200_000)})
    rate = may_hold(words, foreign, [0]).mean()
    expected = false_positive_rate(num_keys, num_words)
    assert expected / 2 < rate < expected * 2
    texts = pa.record_batch({"k": pa.array([f"ß{i}" for i in range(50_000)])})
    assert may_hold(words, texts, [0]).mean() < expected * 2


def test_a_filter_of_the_planned_size_lets_one_percent_pass() -> None:
    for count in (1, 1000, 10**6):
        assert false_positive_rate(count, bloom_words(count)) < 0.012
    assert bloom_words(0) == 1
    assert false_positive_rate(0, 1) == 0.0


def test_equal_values_are_equal_keys() -> None:
    """Integers and decimals of any width, zeros of both signs, all NaN."""
    nan = np.array([0x7FF8_0000_0000_0001, 0xFFF8_0000_0000_0000], dtype=np.uint64).view("f8")
    same: list[tuple[pa.Array, pa.Array]] = [
        (pa.array([1, -5, None], pa.int8()), pa.array([1, -5, None], pa.int64())),
        (pa.array([Decimal("1.50")]), pa.array([Decimal("1.5000")], pa.decimal128(38, 4))),
        (pa.array([7], pa.int32()), pa.array([Decimal(7)], pa.decimal128(20, 0))),
        (pa.array([0.0]), pa.array([-0.0])),
        (pa.array(nan[:1]), pa.array(nan[1:])),
        (pa.array(["a", None]), pa.array(["a", None]).dictionary_encode()),
        (pa.array(["é"]), pa.array(["é"], pa.large_string())),
    ]
    for left, right in same:
        words = np.zeros(8, dtype=np.uint64)
        add_keys(words, pa.record_batch([left], ["k"]), [0])
        assert may_hold(words, pa.record_batch([right], ["k"]), [0]).all(), left.type


def test_no_key_is_no_row_and_no_filter_is_every_row() -> None:
    rows = pa.record_batch({"k": [1, None]})
    (empty,) = BloomStep(kind="build", num_words=3, keys=(0,)).apply([])
    probe = BloomStep(kind="probe", num_words=3, keys=(0,), source=0)
    assert [b.num_rows for b in probe.apply([rows], [empty])] == [0]
    assert list(probe.apply([rows], [])) == [rows]
    with pytest.raises(QueryError, match="3 words, the plan says 4"):
        merge_filters([empty], 4)


def test_a_step_travels_as_plain_data() -> None:
    rng = random.Random(1)
    for kind in ("build", "merge", "probe"):
        step = BloomStep(
            kind=kind,
            num_words=rng.randint(1, 9),
            keys=(0, 2),
            types=(BIGINT, STRING, decimal(9, 2)),
            source=1,
        )
        assert BloomStep.from_dict(json.loads(json.dumps(step.to_dict()))) == step
