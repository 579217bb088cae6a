"""A share of the campaign of stored faults: `make stored-faults` runs all of it, with Spark."""

from __future__ import annotations

from pathlib import Path

from benchmarks.stored_faults.campaign import run_campaign, summary
from benchmarks.stored_faults.trial import BAD, KINDS


def test_damage_gives_the_right_rows_or_a_clear_error(tmp_path: Path) -> None:
    count = 2 * len(KINDS) + 2
    endings = run_campaign(tmp_path, count, seed=3)
    assert [e for e in endings if e.ending in BAD] == []
    found = summary(endings, 3)
    assert found["faults"] == count
    assert set(found["by_kind"]) == set(KINDS)
    # From its log a campaign goes on where it was stopped.
    assert run_campaign(tmp_path, count, seed=3) == endings
