"""SIGKILL in the middle of a run: the next one reuses what was committed and computes the rest.

The killed run is the real command in processes of its own. Where exactly it dies is decided by
`stall/sitecustomize.py`: with a map file half written, or with all map files of a stage and no
manifest; one test has no such aid and kills at whatever moment it is.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import stagecoach
from stagecoach.api.session import Result
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.storage.layout import manifest, shuffle_prefix
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.planning import plan_query
from tests.acceptance.comparison import Oracle, assert_same
from tests.acceptance.processes import (
    COMMAND,
    FORCED,
    environment,
    kill_group,
    planner_arguments,
    started,
    wait_until,
)
from tests.share import EVERYTHING, in_test_all
from tests.tpch import Tpch, query_file, query_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]

STALLS = Path(__file__).parent / "stall"


@dataclass(frozen=True)
class Place:
    """Where the killed run and the next one keep their stages."""

    folder: Path
    tpch: Tpch

    @property
    def root(self) -> Path:
        return self.folder / "store"

    @property
    def log(self) -> Path:
        return self.folder / "killed.log"

    @property
    def marker(self) -> Path:
        return self.folder / "stalled"

    def command(self, name: str) -> Sequence[str]:
        """The command that will be killed."""
        where = ["--catalog", str(self.tpch.catalog_file), "--storage", str(self.root)]
        options = [*planner_arguments(FORCED), "--master", "local[2]"]
        return [*COMMAND, "query", str(query_file(name)), *where, *options]

    def stall(self, at: str, manifests: int) -> dict[str, str]:
        """Environment with which a run stops there."""
        setting = {
            "at": at,
            "manifests": manifests,
            "root": str(self.root),
            "marker": str(self.marker),
        }
        stall = json.dumps(setting)
        return environment(PYTHONPATH=str(STALLS)) | {"STAGECOACH_TEST_STALL": stall}

    def files(self, pattern: str) -> set[Path]:
        return set(self.root.glob(f"shuffle/*/*/{pattern}"))

    def committed(self) -> set[str]:
        """Fingerprints of the stages with a manifest."""
        return {path.parent.name for path in self.files("manifest.json")}

    def kill_when(
        self, name: str, condition: Callable[[], bool], env: dict[str, str] | None = None
    ) -> set[str]:
        """Start the query, kill it when the condition holds; return what it had committed."""
        with started(self.command(name), self.folder, self.log, env or environment()) as process:
            wait_until(condition, process, self.log, interval_seconds=0.002)
            kill_group(process)
        return self.committed()

    def run_again(self, name: str, settings: EngineSettings) -> Result:
        """The next run, of the same query on the same storage root, by the API."""
        # Not closed: the Spark session is that of all tests.
        session = stagecoach.connect(
            self.tpch.catalog_file,
            self.root,
            settings={"master": settings.master, "memory_bytes": settings.memory_bytes},
            options=FORCED,
        )
        return session.query(query_text(name), name=name)


@pytest.fixture
def place(tmp_path: Path, tpch: Tpch, spark: SparkSession) -> Place:
    return Place(tmp_path, tpch)


def num_stages(name: str, tpch: Tpch) -> int:
    options = PlannerOptions().updated(FORCED)
    return len(plan_query(query_text(name), tpch.catalog, options, name=name).stages)


def check_resumed(result: Result, committed: set[str], place: Place) -> None:
    """Exactly the committed stages were reused, and now all are committed."""
    reused = {s.fingerprint for s in result.stages if s.reused}
    assert reused == committed & {s.fingerprint for s in result.stages}
    assert reused == committed
    assert [s.engine for s in result.stages] == ["duckdb"] * len(result.stages)
    assert not any(s.fallback_reason or s.deferred for s in result.stages)
    assert {s.fingerprint for s in result.stages} <= place.committed()
    # The events of the run tell the same.
    text = open_store(str(place.root)).read_bytes(f"runs/{result.run_id}/events.jsonl").decode()
    events = [json.loads(line) for line in text.splitlines()]
    told = {
        e["metadata"]["stagecoach/fingerprint"]: e["metadata"]["stagecoach/reused"]
        for e in events
        if "metadata" in e
    }
    assert {fingerprint for fingerprint, again in told.items() if again} == committed
    assert len(told) == len(result.stages)


def check_no_trouble(log: pytest.LogCaptureFixture) -> None:
    """No reader met anything half written."""
    assert not [r.getMessage() for r in log.records if r.levelno >= logging.WARNING]


MOMENTS = [(at, manifests) for at in ("map_file", "commit") for manifests in (0, 2, -1)]


@pytest.mark.parametrize(
    ("at", "manifests"), MOMENTS if EVERYTHING else [("map_file", 2), ("commit", 0)]
)
def test_killed_at_a_chosen_moment(
    at: str,
    manifests: int,
    place: Place,
    oracle: Oracle,
    settings: EngineSettings,
    caplog: pytest.LogCaptureFixture,
) -> None:
    count = num_stages("q03", place.tpch)
    wanted = manifests % count
    env = place.stall(at, wanted)
    committed = place.kill_when("q03", place.marker.exists, env)
    assert wanted <= len(committed) < count
    temporary = place.files(".tmp-*")
    orphans = {p for p in place.files("*.arrow") if p.parent.name not in committed}
    if at == "map_file":
        assert temporary
        assert any(path.stat().st_size for path in temporary)
    else:
        assert orphans
    result = place.run_again("q03", settings)
    check_resumed(result, committed, place)
    check_no_trouble(caplog)
    assert_same(result.to_arrow(), oracle.answer(query_text("q03")))
    # What the killed attempt left behind is in no manifest.
    store = open_store(str(place.root))
    for stage in result.stages:
        assert stage.fingerprint is not None
        named = json.loads(store.read_bytes(manifest(stage.fingerprint)))["files"]
        keys = json.dumps(named)
        assert not [o for o in (*orphans, *temporary) if o.name in keys]
        assert store.uri(shuffle_prefix(stage.fingerprint)) == stage.uri
    again = place.run_again("q03", settings)
    assert all(s.reused for s in again.stages)
    assert again.to_arrow().equals(result.to_arrow())


@in_test_all
def test_killed_at_any_moment(
    place: Place, oracle: Oracle, settings: EngineSettings, caplog: pytest.LogCaptureFixture
) -> None:
    """No aid: query 9 is killed as soon as three of its stages are committed, then again later."""
    count = num_stages("q09", place.tpch)
    assert count > 6
    first = place.kill_when("q09", lambda: len(place.committed()) >= 3)
    assert 3 <= len(first) <= count
    later = min(len(first) + 2, count)
    second = place.kill_when("q09", lambda: len(place.committed()) >= later)
    assert first < second or len(first) == count
    result = place.run_again("q09", settings)
    check_resumed(result, second, place)
    check_no_trouble(caplog)
    assert_same(result.to_arrow(), oracle.answer(query_text("q09")))


def test_damage_after_the_commit_is_repaired(
    place: Place, oracle: Oracle, settings: EngineSettings
) -> None:
    """A machine that died with it: a committed file is short. Its stage alone runs again."""
    sql = query_text("q03")
    first = place.run_again("q03", settings)
    victim = first.stages[0].fingerprint
    assert victim is not None
    path = sorted(p for p in place.files("*-*.arrow") if p.parent.name == victim and "index" not in p.name)[0]  # fmt: skip
    path.write_bytes(path.read_bytes()[:-7])
    head = first.stages[-1].fingerprint
    assert head is not None
    Path(open_store(str(place.root)).uri(manifest(head))).unlink()
    result = place.run_again("q03", settings)
    assert [s.stage_id for s in result.graph.stages if not result.stages[s.stage_id].reused] == [
        0,
        len(result.stages) - 1,
    ]
    assert_same(result.to_arrow(), oracle.answer(sql))


def test_the_aid_is_off_without_its_setting() -> None:
    assert "sitecustomize" not in sys.modules or not str(
        getattr(sys.modules["sitecustomize"], "__file__", "")
    ).startswith(str(STALLS))
