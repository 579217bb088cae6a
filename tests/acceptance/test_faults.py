"""A short fault campaign: some of each kind, always the same ones; `make faults` has the long one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.faults.__main__ import QUICK
from benchmarks.faults.campaign import Campaign, run_campaign, small_disk
from benchmarks.faults.trial import BAD, COLUMNS, Tally, until_met
from benchmarks.rclone import RcloneServer
from stagecoach.infra.host.process_folders import ProcessFolder

pytestmark = [pytest.mark.slow, pytest.mark.s3, pytest.mark.timeout(600)]


def test_every_fault_ends_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tally = run_campaign(tmp_path, QUICK, seed=5, say=lambda _: None)
    with capsys.disabled():
        sys.stdout.write(f"\n{tally.table()}\n")
    assert not tally.notes
    assert not tally.total(*BAD)
    assert tally.total() >= 15


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


def test_what_is_left_behind_is_told(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, seed=1)
    trial = campaign.trial("nothing")
    trial.play()
    assert campaign.tally.counts["nothing"] == {"right": 1}
    # An object that no run knows, and what a process has spilled that cannot be told dead.
    trial.runs.store.write_bytes("elsewhere/stray", b"x")
    (tmp_path / "spill").mkdir(exist_ok=True)
    (tmp_path / "spill" / "stray").write_text("x")
    trial = campaign.trial("stray", str(trial.runs.settings.storage_root))
    trial.play()
    assert campaign.tally.counts["stray"] == {"right": 1, "orphans": 1}
    assert "2 objects, such as elsewhere/stray" in campaign.tally.notes[0]


def test_runs_of_the_campaign_spill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: set[str] = set()
    make = ProcessFolder.__init__

    def noted(folder: ProcessFolder, parent: str, kind: str) -> None:
        kinds.add(kind)
        make(folder, parent, kind)

    monkeypatch.setattr(ProcessFolder, "__init__", noted)
    campaign = Campaign(tmp_path, seed=1)
    for _ in range(4):
        campaign.trial("nothing").play()
    assert kinds == {"duckdb", "spill"}
    assert not campaign.tally.notes


def test_a_small_disk_fills_and_is_gone_afterwards() -> None:
    with small_disk(1) as place:
        if place is None:
            pytest.skip("no tmpfs can be mounted here")
        with pytest.raises(OSError, match=r"No space left on device"):
            (place / "filler").write_bytes(bytes(2 << 20))
    assert not place.exists()


def test_faults_that_cannot_happen_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))  # no unshare
    monkeypatch.setattr(RcloneServer, "command", lambda: None)
    said: list[str] = []
    tally = run_campaign(tmp_path, {"full_disk": 7, "network": 9}, seed=1, say=said.append)
    assert tally.total() == 0
    assert tally.left_out == [
        "9 faults are left out: network: rclone is not installed",
        "7 faults are left out: no space on the device: no tmpfs can be mounted here",
    ]
    assert [line.split(",")[0] for line in said] == ["full_disk: 0 faults in 0 runs"]


def test_a_group_goes_on_until_enough_faults_are_met() -> None:
    tally = Tally()
    asked: list[int] = []

    def play(count: int) -> None:
        """Every third fault finds nobody."""
        for number in range(sum(asked), sum(asked) + count):
            tally.add("kind", "right" if number % 3 else "not met")
        asked.append(count)

    assert until_met(play, 8, tally) == (8, 12)
    assert asked == [8, 3, 1]
    unmet: list[int] = []
    nobody = Tally()

    def play_for_nobody(count: int) -> None:
        unmet.append(count)
        for _ in range(count):
            nobody.add("kind", "not met")

    assert until_met(play_for_nobody, 2, nobody) == (0, 6)
    assert unmet == [2, 2, 2]
