"""Two runs and one output: one computes, the other waits; who is dead, slow or cut off holds up none."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest

from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.errors import StageCanceledError, StorageError
from stagecoach.infra.runtime.stages import claims
from stagecoach.infra.runtime.stages.claims import Claim, sole_computation
from stagecoach.infra.runtime.stages.run import Run
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.spark.jobs import cancel_stage
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.planner import plan_query
from stagecoach.planner.catalog import MappingCatalog, TableInfo
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.types import INT, Field
from tests.waiting import wait_for

FINGERPRINT = "ab" * 32


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path))


def make_claim(
    store: LocalStore, holder: str, clock: Callable[[], float] = time.monotonic
) -> Claim:
    return Claim(store, FINGERPRINT, holder, 10.0, clock=clock)


def written(store: LocalStore) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(store.read_bytes(layout.claim(FINGERPRINT)))
    return values


def elsewhere(store: LocalStore, **changes: object) -> None:
    """Let the claim be that of a process on another machine."""
    values = {**written(store), "host": "far-away", **changes}
    store.write_bytes(layout.claim(FINGERPRINT), json.dumps(values).encode())


def test_one_of_two_gets_it_and_the_next_when_it_is_released(store: LocalStore) -> None:
    first, second = make_claim(store, "first"), make_claim(store, "second")
    assert first.take()
    assert not second.take()
    assert second.other == "first"
    first.release()
    assert second.take()
    assert written(store)["holder"] == "second"
    first.release()  # not its own any more
    assert written(store)["holder"] == "second"


def test_a_holder_that_is_renewed_is_waited_for_whatever_its_clock_says(store: LocalStore) -> None:
    clock = Clock()
    first, second = make_claim(store, "first"), make_claim(store, "second", clock)
    assert first.take()
    elsewhere(store)
    assert not second.take()
    for renewals in range(1, 5):
        clock.now += 9.9
        # The file's time is of no account: long ago, or in the future.
        elsewhere(store, renewals=renewals)
        os.utime(store.uri(layout.claim(FINGERPRINT)), (renewals * 4e9 % 5e9,) * 2)
        assert not second.take()
    clock.now += 9.9
    assert not second.take()
    clock.now += 0.2
    assert second.take()
    assert written(store)["holder"] == "second"


def test_a_process_of_this_machine_that_is_gone_is_not_waited_for(store: LocalStore) -> None:
    first, second = make_claim(store, "first"), make_claim(store, "second", Clock())
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert first.take()
    assert not second.take()
    elsewhere(store, host=socket.gethostname(), pid=process.pid)
    assert second.take()


def test_a_holder_renews_its_claim_until_it_is_taken_over(store: LocalStore) -> None:
    claim = Claim(store, FINGERPRINT, "first", 0.2)
    assert claim.take()
    with claim.kept():
        (renewing,) = (t for t in threading.enumerate() if t.name == "claim")
        wait_for(lambda: written(store)["renewals"] >= 2)

        def has_ended_of_another() -> bool:
            elsewhere(store, token="another", renewals=0)
            return not renewing.is_alive()

        # Again and again: a renewal that has looked just before may write just after.
        wait_for(has_ended_of_another)
        assert written(store)["token"] == "another"
    assert written(store)["token"] == "another"


@pytest.mark.parametrize("content", [b"", b"not json", b"[1]", b'{"pid": "x", "host": 7}'])
def test_a_claim_that_cannot_be_read_is_abandoned_in_time(
    store: LocalStore, content: bytes
) -> None:
    clock = Clock()
    claim = make_claim(store, "first", clock)
    store.write_bytes(layout.claim(FINGERPRINT), content)
    assert not claim.take()
    clock.now += 10.1
    assert claim.take()


def test_a_store_that_fails_is_no_reason_to_wait(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> bool:
        raise StorageError("no permission")

    monkeypatch.setattr(LocalStore, "put_if_absent", fail)
    claim = make_claim(store, "first")
    assert claim.take()
    with claim.kept():
        pass


# ---------------------------------------------------------------- stages


@pytest.fixture(scope="module")
def graph() -> StageGraph:
    table = TableInfo("t", (Field("a", INT),))
    options = PlannerOptions(force_distribution=True)
    return plan_query("SELECT a, count(*) AS n FROM t GROUP BY a", MappingCatalog([table]), options)


class Runs:
    """Runs that come to one stage; `committed` is what would be in its manifest."""

    def __init__(self, graph: StageGraph, store: LocalStore) -> None:
        self.graph = graph
        self.store = store
        self.committed: Manifest | None = None
        self.computed: list[str] = []
        self.computes = threading.Event()
        self.reused: list[str] = []

    def context(self, run_id: str, *, fresh: bool = False, claim_seconds: float = 10) -> Run:
        return Run(
            graph=self.graph,
            run_id=run_id,
            root_run_id=run_id,
            settings=EngineSettings(claim_seconds=claim_seconds),
            store=self.store,
            catalog=cast("Any", None),
            fresh=fresh,
        )

    def go(self, context: Run, *, fail: bool = False, seconds: float = 0.2) -> None:
        stage = self.graph.stages[0]
        with sole_computation(context, stage, FINGERPRINT, lambda: self.committed) as found:
            if found is not None:
                self.reused.append(context.run_id)
                return
            self.computed.append(context.run_id)
            self.computes.set()
            time.sleep(seconds)
            if fail:
                raise StorageError("no space")
            self.committed = cast("Manifest", object())


@pytest.fixture
def runs(graph: StageGraph, store: LocalStore) -> Runs:
    return Runs(graph, store)


def together(*calls: Callable[[], None]) -> None:
    threads = [threading.Thread(target=call) for call in calls]
    with ExitStack() as stack:
        for thread in threads:
            thread.start()
            stack.callback(thread.join)


def test_runs_that_come_together_compute_once(runs: Runs) -> None:
    contexts = [runs.context(f"run{number}") for number in range(6)]
    together(*(lambda c=c: runs.go(c) for c in contexts))
    assert len(runs.computed) == 1
    assert len(runs.reused) == 5
    assert not runs.store.exists(layout.claim(FINGERPRINT))


def test_one_that_fails_lets_the_next_try(runs: Runs) -> None:
    def failing() -> None:
        with pytest.raises(StorageError):
            runs.go(runs.context("failing"), fail=True)

    def other() -> None:
        assert runs.computes.wait(120)
        runs.go(runs.context("other"))

    together(failing, other)
    assert runs.computed == ["failing", "other"]
    assert not runs.store.exists(layout.claim(FINGERPRINT))


@pytest.mark.parametrize("how", [{"fresh": True}, {"claim_seconds": 0}])
def test_some_wait_for_nobody(runs: Runs, how: dict[str, Any]) -> None:
    claim = make_claim(runs.store, "another")
    assert claim.take()
    started = time.monotonic()
    runs.go(runs.context("mine", **how), seconds=0)
    assert time.monotonic() - started < 5  # another's claim is abandoned after 10 s
    assert runs.computed == ["mine"]
    assert written(runs.store)["holder"] == "another"


def test_a_stage_that_waits_can_be_cancelled(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "_FIRST_POLL_SECONDS", 60.0)
    monkeypatch.setattr(claims, "_MAX_POLL_SECONDS", 60.0)
    assert make_claim(runs.store, "another").take()
    context = runs.context("mine")

    def cancel() -> None:
        wait_for(lambda: cancel_stage("mine", 0), 30)

    def wait() -> None:
        with pytest.raises(StageCanceledError, match="stage_0 was canceled"):
            runs.go(context)

    started = time.monotonic()
    together(cancel, wait)
    assert time.monotonic() - started < 40
    assert not runs.computed
    assert not cancel_stage("mine", 0)
