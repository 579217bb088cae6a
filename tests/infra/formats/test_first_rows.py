"""Parts of a scan in steps of time: a reader of first rows stops after a step."""

from __future__ import annotations

import itertools
import random

import pytest

from stagecoach.infra.formats.first_rows import steps_of


def test_the_newest_parts_come_first() -> None:
    ranges = [(1, 5), (6, 9), (10, 12), (11, 14)]
    assert steps_of(ranges, descending=True) == [[2, 3], [1], [0]]
    assert steps_of(ranges, descending=False) == [[0], [1], [2, 3]]
    assert steps_of([], descending=True) == []


def test_ranges_that_share_a_bound_are_one_step() -> None:
    assert steps_of([(5, 9), (1, 5)], descending=False) == [[1, 0]]


@pytest.mark.parametrize("descending", [False, True])
def test_all_of_a_step_lies_before_the_next(descending: bool) -> None:
    rng = random.Random(7)
    several = 0
    for _ in range(300):
        lows = [rng.randrange(60) for _ in range(rng.randrange(9))]
        ranges = [(low, low + rng.randrange(12)) for low in lows]
        steps = steps_of(ranges, descending=descending)
        assert sorted(i for step in steps for i in step) == list(range(len(ranges)))
        in_time = steps[::-1] if descending else steps
        for earlier, later in itertools.pairwise(in_time):
            several += 1
            assert max(ranges[i][1] for i in earlier) < min(ranges[i][0] for i in later)
    assert several > 300
