"""A share of the campaign of random queries over all functions; `make random-queries` runs 10,000."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.random_queries import shrink, trial
from benchmarks.random_queries.__main__ import logged
from benchmarks.random_queries.campaign import Campaign
from benchmarks.random_queries.trial import BAD, Way
from stagecoach.planner.options import PlannerOptions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

COUNT = 16


@pytest.fixture(scope="module")
def campaign(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """A campaign over its own tables."""
    return Campaign(spark, tmp_path_factory.mktemp("random"))


@pytest.mark.timeout(1200)
def test_random_queries_equal_spark(campaign: Campaign) -> None:
    entries = [campaign.run(seed, shrinks=False) for seed in range(COUNT)]
    wrong = [entry for entry in entries if entry["outcome"] in BAD]
    assert not wrong, "\n".join(map(str, wrong))
    compared = [entry for entry in entries if entry["outcome"] in ("equal", "late")]
    assert len(compared) > COUNT / 2, "most queries must have an answer, or this proves little"


def test_what_spark_s_own_pushdown_loses_is_not_ours(campaign: Campaign) -> None:
    """Pushed into Parquet files, `IN (0.0)` loses -0.0, which equals it."""
    ours = Way(PlannerOptions(), mix=None)
    verdict = campaign.verdict("SELECT id, gd FROM g WHERE gd IN (0.0D)", ours)
    assert verdict.outcome == "broken_spark", verdict
    verdict = campaign.verdict("SELECT id, gd FROM g WHERE gd + 0.0D IN (0.0D)", ours)
    assert verdict.outcome == "equal", verdict


def test_a_query_that_differs_is_shrunk(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_twos(*args: Any) -> str:
        """A fault: rows with a 2 are lost."""
        found: pa.Table = args[2]
        return "2 is lost" if any(2 in row for row in found.to_pydict().values()) else ""

    monkeypatch.setattr(trial, "difference", without_twos)
    monkeypatch.setattr(shrink, "_SECONDS", 600.0)
    sql = "SELECT t.id, t.k + 1 AS c, t.v FROM x t LEFT JOIN z u ON t.k = u.k WHERE t.v > 0 OR t.s IS NULL ORDER BY t.id"
    shrunk = campaign.shrunk(sql, Way.of(1))
    assert shrunk.sql in (
        "SELECT t.v FROM x AS t",
        "SELECT t.id FROM x AS t",
        "SELECT 1 FROM x AS t",
    )
    assert shrunk.rows.count("'id'") == 1


def test_a_campaign_resumes(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    whole = '{"seed": 7, "outcome": "equal"}\n{"seed": 8, "outcome": "wrong", "detail": "\u2028"}\n'
    log.write_text(whole + '{"seed": 9, "outc')  # killed while it wrote
    assert logged(log) == {7: "equal", 8: "wrong"}
    assert log.read_text() == whole
    assert logged(tmp_path / "none") == {}
