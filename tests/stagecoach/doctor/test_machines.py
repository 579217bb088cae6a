"""Looking at the executors of a cluster: which there are, and when all have come."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest

from stagecoach.doctor.machines import await_executors


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """A clock that sleeping advances."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.append(now.pop() + seconds))
    yield now


def test_executors_that_come_late_are_waited_for(clock: list[float]) -> None:
    await_executors(lambda: 1 + (clock[0] > 3) + (clock[0] > 7))
    assert 11.5 < clock[0] < 13


def test_a_cluster_that_always_grows_is_not_waited_for_any_longer(clock: list[float]) -> None:
    numbers = itertools.count()
    await_executors(lambda: next(numbers), most_seconds=8)
    assert 8 <= clock[0] < 9
