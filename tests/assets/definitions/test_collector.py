"""Loading a code location leaves the garbage collector as it was, but for what it loaded."""

import ast
import gc
import subprocess
import sys

import pytest

from stagecoach.assets.definitions.collector import MIN_STAGES, young_objects_only

FROZEN = """
import gc, sys
from stagecoach.assets.definitions import collector
counts, kept = [gc.get_freeze_count()], []
for stages in map(int, sys.argv[1:]):
    collector.leave_out(stages)
    counts.append(gc.get_freeze_count())
    kept += [[] for _ in range(10_000)]
print([later - before for before, later in zip(counts, counts[1:])])
"""


def test_thresholds_are_as_before() -> None:
    before = gc.get_threshold()
    with young_objects_only():
        assert gc.get_threshold()[0] >= 100_000
        assert gc.get_threshold()[2] > 1_000_000
    assert gc.get_threshold() == before
    with pytest.raises(ValueError, match="mistake"), young_objects_only():
        raise ValueError("mistake")
    assert gc.get_threshold() == before


def test_a_collector_that_is_off_stays_off() -> None:
    before = gc.get_threshold()
    gc.set_threshold(0)
    try:
        with young_objects_only():
            assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*before)


def test_what_is_loaded_is_left_out_once() -> None:
    stages = [str(n) for n in (1, MIN_STAGES - 1, MIN_STAGES, MIN_STAGES)]
    done = subprocess.run(
        [sys.executable, "-c", FROZEN, *stages], capture_output=True, text=True, check=True
    )
    small, almost, large, again = ast.literal_eval(done.stdout)
    assert (small, almost, again) == (0, 0, 0)
    assert large > 10_000
