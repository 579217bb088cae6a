"""A share of the campaign of random histories; `make incremental-histories` runs 2,000 of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.incremental_histories import history
from benchmarks.incremental_histories.__main__ import logged
from benchmarks.incremental_histories.history import History
from stagecoach.infra.runtime.planning import task_fingerprints
from tests.share import EVERYTHING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.slow
@pytest.mark.spark
def test_histories_equal_spark(tmp_path: Path, spark: SparkSession) -> None:
    taken_over = 0
    for seed in range(12 if EVERYTHING else 6):
        place = tmp_path / str(seed)
        place.mkdir()
        verdict = History(seed, place, spark).verdict()
        assert verdict.outcome == "equal", f"seed {seed}: {verdict.query}\n{verdict.detail}"
        taken_over += verdict.taken_over
    assert taken_over > (50 if EVERYTHING else 20)


@pytest.fixture
def only_joined(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(history, "QUERIES", {"joined": history.QUERIES["joined"]})
    yield


@pytest.mark.slow
def test_a_fingerprint_that_forgets_something_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, only_joined: None
) -> None:
    """Without the inputs' own versions, a file that was replaced is taken for the one it was."""
    monkeypatch.setattr(task_fingerprints, "_file", lambda file: [file[0]])
    outcomes = set()
    for seed in range(8):
        place = tmp_path / str(seed)
        place.mkdir()
        outcomes.add(History(seed, place).verdict().outcome)
    assert "differs" in outcomes


def test_a_log_that_was_cut_off_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text('{"seed": 3, "outcome": "equal"}\n{"seed": 4, "out', encoding="utf-8")
    assert list(logged(path)) == [3]
    assert path.read_text(encoding="utf-8").count("\n") == 1
