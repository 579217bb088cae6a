"""Processes that append, compact, collect and read at once, some of them killed.

`benchmarks.chunk_stress` runs it for two minutes, this for seconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from benchmarks.chunk_stress import HOT, check, rows_of, stress

SECONDS = float(os.environ.get("STAGECOACH_STRESS_SECONDS", "8"))


def good(writer: int, number: int) -> list[tuple[int, str, int, int]]:
    hot = [(writer, "hot", t, number) for t in range(HOT)]
    return hot + [(writer, "row", n, n) for n in range(max(1, number - 4), number + 1)]


def test_the_check_finds_what_is_wrong() -> None:
    seen: dict[int, int] = {}
    assert check(good(0, 7) + good(1, 3), seen) == []
    assert seen == {0: 7, 1: 3}
    assert check(good(0, 8) + good(1, 3), seen) == []
    assert "append 7 after 8" in check(good(0, 7) + good(1, 3), seen)[0]
    assert "hot rows with values [8, 9]" in check([*good(0, 9)[1:], (0, "hot", 0, 8)], {})[0]
    assert "rows [5, 6, 7, 8] after append 9" in check(good(0, 9)[:-1], {})[0]
    assert "a key is there twice" in check([*good(0, 9), good(0, 9)[0]], {})
    assert "0 hot rows" in check([], {1: 1})[0]
    assert [rows.num_rows for rows in rows_of(0, 9)] == [11, 11]


@pytest.mark.slow
def test_every_snapshot_is_consistent() -> None:
    report = stress(SECONDS, seed=6, writers=2, compactors=1, readers=1)
    assert report.problems == []
    assert report.counts["append"] > 0
    assert report.counts["read"] > 0
    assert report.counts["compact"] > 0


@pytest.mark.slow
def test_its_processes_say_nothing() -> None:
    command = [sys.executable, "-m", "benchmarks.chunk_stress", "--seconds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stderr == ""
    assert json.loads(done.stdout)["problems"] == []
    assert done.returncode == 0
