"""A short fault campaign: some of each kind, always the same ones; `make faults` has the long one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.faults.__main__ import QUICK
from benchmarks.faults.campaign import run_campaign
from benchmarks.faults.trial import BAD, COLUMNS, Tally

pytestmark = [pytest.mark.slow, pytest.mark.s3, pytest.mark.timeout(600)]


def test_every_fault_ends_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tally = run_campaign(tmp_path, QUICK, seed=5, say=lambda _: None)
    with capsys.disabled():
        sys.stdout.write(f"\n{tally.table()}\n")
    assert not tally.notes
    assert not tally.total(*BAD)
    assert tally.total() >= 20


def test_the_table_counts() -> None:
    tally = Tally()
    tally.add("a", "right")
    tally.add("a", "not met")
    tally.add("b", "wrong", "2 rows instead of 3")
    tally.add("b", "orphans")
    assert tally.total() == 2
    assert tally.total(*BAD) == 2
    assert tally.notes[0] == "b: wrong: 2 rows instead of 3"
    lines = tally.table().splitlines()
    assert len(lines) == 4
    assert lines[-1].split() == ["all", "2", *("1" if c in ("not met", "right", "wrong", "orphans") else "0" for c in COLUMNS)]  # fmt: skip
