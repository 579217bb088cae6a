"""Broadcast inputs are kept within a bound, and only whole."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pytest

from stagecoach.infra.shuffle.broadcast_cache import BroadcastCache

BATCH = pa.record_batch([pa.array(range(1000))], names=["c0"])


class Source:
    """Counts how often it is read."""

    def __init__(self) -> None:
        self.reads = 0

    def __call__(self) -> Iterator[pa.RecordBatch]:
        self.reads += 1
        yield BATCH
        yield BATCH


def test_what_was_read_once_is_kept() -> None:
    cache, source = BroadcastCache(), Source()
    for _ in range(3):
        assert list(cache.batches("a", source, 1 << 20)) == [BATCH, BATCH]
    assert source.reads == 1
    assert cache.num_bytes == 2 * BATCH.nbytes


def test_the_oldest_goes_first() -> None:
    cache, source = BroadcastCache(), Source()
    room = 4 * BATCH.nbytes
    for key in ("a", "b", "a", "c"):
        list(cache.batches(key, source, room))
        assert cache.num_bytes <= room
    assert source.reads == 3
    list(cache.batches("a", source, room))
    assert source.reads == 3
    list(cache.batches("b", source, room))
    assert source.reads == 4


@pytest.mark.parametrize("room", [0, BATCH.nbytes])
def test_what_is_too_large_is_not_kept(room: int) -> None:
    cache, source = BroadcastCache(), Source()
    for _ in range(2):
        assert list(cache.batches("a", source, room)) == [BATCH, BATCH]
    assert source.reads == 2
    assert cache.num_bytes == 0


def test_what_is_left_half_read_is_not_kept() -> None:
    cache, source = BroadcastCache(), Source()
    batches = cache.batches("a", source, 1 << 20)
    next(batches)
    batches.close()
    assert cache.num_bytes == 0
    assert list(cache.batches("a", source, 1 << 20)) == [BATCH, BATCH]


def test_inputs_without_rows_are_bounded_too() -> None:
    cache, reads = BroadcastCache(), []

    def nothing(key: int) -> Iterator[pa.RecordBatch]:
        reads.append(key)
        yield from ()

    for key in [*range(1001), 1000, 0]:
        assert list(cache.batches(key, partial(nothing, key), 1 << 20)) == []
    assert reads == [*range(1001), 0]
