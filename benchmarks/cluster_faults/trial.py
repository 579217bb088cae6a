"""One fault of one run on the cluster, and how the run ended."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random
from typing import Any

from benchmarks.cluster_faults.driver_process import DriverEndedError, DriverProcess
from benchmarks.cluster_faults.scene import Kind, Scene
from benchmarks.cluster_faults.testbed import Testbed
from benchmarks.faults.leftovers import left_behind, lost_commits
from stagecoach.infra.runtime.records.run_marks import mark_ended
from stagecoach.infra.storage.object_store import ObjectStore

DEADLINE_SECONDS = 180.0
"""In which a run has to end, and so has the run that goes on from it."""
_ORPHAN_SECONDS = 20.0
_MOST_STARTS = 3
_BAD_RUNS = ("wrong", "unclear", "hang")
_LONGEST_DELAY = 0.8
_PLAN = {"force_distribution": True, "broadcast_bytes": 0, "inline_bytes": 0, "num_partitions": 3}
_MANIFEST = re.compile(r"shuffle/.*/([0-9a-f]{16,})/manifest\.json")
_NOT_CLEAR = re.compile(r"Traceback|py4j|Py4J|java\.lang\.|grpc|^\w+: *$|\n\s+at ")


@dataclass(frozen=True)
class Ended:
    """How a run ended.

    Args:
        how: `right`, `wrong`, `error`, `unclear`, `hang`, `killed` or `not met`.
        seconds: How long it took.
        stages: Fingerprint of each finished stage, and whether it was reused.
        error: What it failed with.
        retries: Stages that failed and were tried again, or for good.
    """

    how: str
    seconds: float
    stages: Mapping[str, tuple[str, bool]] = field(default_factory=dict)
    error: str = ""
    retries: int = 0


@dataclass(frozen=True)
class Verdict:
    """What came of a fault, as an entry of the log.

    Args:
        endings: One of `right`, `error, then right`, `wrong`, `unclear`, `hang` and `not met`, and
            what else is wrong: `lost`, `orphans`, `computed again`.
        query: What was run.
        stage: How many stages had started when the fault struck.
        seconds: Until the first run ended.
        more_seconds: Until the second one did.
        committed: Stages that the first run had committed when it failed.
        reused: Stages that the second run reused.
        retries: Stages that failed in the first run.
        error: Of the first run.
        notes: What is wrong.
    """

    endings: tuple[str, ...]
    query: str
    stage: int
    seconds: float
    more_seconds: float
    committed: int
    reused: int
    retries: int
    error: str
    notes: tuple[str, ...]


class Trial:
    """A run of a query with a fault in it, over a storage root of its own.

    Args:
        bed: The cluster, whole.
        kind: Of the fault.
        dice: Say which query, which moment, which process.
    """

    def __init__(self, bed: Testbed, kind: Kind, dice: Random) -> None:
        self.bed = bed
        self.kind = kind
        self.dice = dice
        self.query = dice.choice(sorted(bed.queries))
        self.root = bed.new_root()
        self._share, self._delay = dice.random(), dice.uniform(0, _LONGEST_DELAY)
        self._strikes_at = 0
        self._runs: list[tuple[str, str]] = []

    def play(self) -> Verdict:
        """Run the query with the fault, go on if it failed, and look at what is left."""
        bed, mode = self.bed, self.kind.mode
        with ExitStack() as around:
            app = self._warm()
            around.enter_context(self.kind.prepared(Scene(bed, self.dice, mode, app)))
            app = bed.app(mode) or app
            scene = Scene(bed, self.dice, mode, app)
            with ExitStack() as fault:
                first = self._run(bed.driver(mode), fault, scene)
        bed.settle()
        return self._ended_at_last(first)

    def _ended_at_last(self, first: Ended) -> Verdict:
        """Go on after a run that failed, and look at what is left."""
        store = self.bed.open(self.root)
        notes = [f"{first.how}: {first.error}"] if first.how in _BAD_RUNS else []
        endings, last, more = [first.how], first, 0.0
        committed: set[str] = set()
        if first.how in ("error", "killed", "unclear", "hang"):
            committed = _committed(store)
            last = self._run(self.bed.driver(self.kind.mode))
            more = last.seconds
            if first.how in ("error", "killed"):
                endings = ["error, then right"]
            if last.how != "right":
                endings.append("unclear" if last.how == "error" else last.how)
                notes.append(f"second run: {last.how}: {last.error}")
            computed = [
                stage
                for stage, (fingerprint, reused) in last.stages.items()
                if fingerprint in committed and not reused
            ]
            if computed:
                endings.append("computed again")
                notes.append(f"stages {', '.join(computed)} were committed")
        found = self._look(store, last) if last.how == "right" else {}
        if self.kind.lasts and first.how == "right":
            self.root, self._runs = self.bed.new_root(), []
            after = self._run(self.bed.driver(self.kind.mode))
            more = after.seconds
            if after.how != "right":
                found["unclear" if after.how == "error" else after.how] = f"next run: {after.error}"
            self.bed.settle()
        shown = dict.fromkeys([*endings, *found])
        if len(shown) > 1 and any(ending in _BAD_RUNS for ending in shown):
            shown.pop("right", None)
            shown.pop("error, then right", None)
        return Verdict(
            endings=tuple(shown),
            query=self.query,
            stage=self._strikes_at,
            seconds=round(first.seconds, 2),
            more_seconds=round(more, 2),
            committed=len(committed),
            reused=sum(reused for _, reused in last.stages.values()),
            retries=first.retries,
            error=first.error,
            notes=(*notes, *found.values()),
        )

    def _warm(self) -> str:
        """Have the driver run a query if it has no application yet; return the application."""
        bed, mode = self.bed, self.kind.mode
        for _ in range(_MOST_STARTS):
            bed.settle()
            if (found := bed.app(mode)) is not None:
                return found
            root, self.root = self.root, bed.new_root()
            calm = self._run(bed.driver(mode))
            self.root, self._runs = root, []
            if calm.how != "right":
                bed.end_driver(mode)
        raise RuntimeError(f"without a fault, a run of {self.query} ends so: {calm}")

    def _run(
        self, driver: DriverProcess, fault: ExitStack | None = None, scene: Scene | None = None
    ) -> Ended:
        """One run; with the fault, if there is one, which the stack heals."""
        run_id = str(uuid.uuid4())
        earlier = self._runs[0][0] if self._runs and self.dice.random() < 0.5 else run_id
        self._runs.append((earlier, run_id))
        request = {
            "query": self.query,
            "sql": self.bed.queries[self.query],
            "settings": self.bed.settings(self.root, self.kind.mode),
            "catalog": str(self.bed.catalog),
            "options": _PLAN,
            "run_id": run_id,
            "root_run_id": earlier,
        }
        started = time.monotonic()
        driver.ask(request)
        watch = _Watch(driver, started + DEADLINE_SECONDS)
        try:
            if fault is not None and scene is not None:
                planned = watch.until("planned")
                stages = 0 if planned is None else int(planned["stages"])
                self._strikes_at = 1 + int(self._share * stages)
                while watch.started < self._strikes_at and watch.last is None:
                    watch.step()
                watch.step(self._delay)
                if watch.last is not None:
                    return Ended("not met", time.monotonic() - started)
                fault.enter_context(self.kind.strike(scene))
                if self.kind.ends_driver:
                    return Ended("killed", time.monotonic() - started)
            while watch.last is None and not watch.is_late:
                watch.step()
            if watch.last is None:
                watch.driver.show_threads()
                self.bed.end_driver(self.kind.mode)
        except DriverEndedError:
            return Ended("unclear", time.monotonic() - started, error="the driver has ended")
        return self._judged(watch, time.monotonic() - started)

    def _judged(self, watch: _Watch, seconds: float) -> Ended:
        last, failed = watch.last, watch.failed
        if last is None:
            return Ended("hang", seconds, error=watch.said, retries=failed)
        stages = {number: (f, r) for number, (f, r) in last.get("stages", {}).items()}
        if last["ok"]:
            right = last["rows"] == self.bed.expected[self.query]
            return Ended("right" if right else "wrong", seconds, stages, watch.said, failed)
        error = str(last["error"])
        is_clear = last["ours"] and not _NOT_CLEAR.search(error)
        return Ended("error" if is_clear else "unclear", seconds, stages, error, failed)

    def _look(self, store: ObjectStore, ended: Ended) -> dict[str, str]:
        """What is lost or left in storage, by the ending that it is."""
        found = {}
        commits = {f"stage {number}": f for number, (f, _) in ended.stages.items()}
        if lost := list(lost_commits(store, commits)):
            found["lost"] = "; ".join(lost)
        for root_run_id, run_id in self._runs:
            mark_ended(store, root_run_id, run_id)
        # A task that was given up, or frozen, may write its last file only now.
        deadline = time.monotonic() + _ORPHAN_SECONDS
        while (left := left_behind(store, str(self.bed.spill))) and time.monotonic() < deadline:
            time.sleep(1)
        if left:
            found["orphans"] = f"{len(left)} objects, such as {left[0]}"
        return found


class _Watch:
    """What a driver tells of one run."""

    def __init__(self, driver: DriverProcess, deadline: float) -> None:
        self.driver = driver
        self.started = 0
        self.failed = 0
        self.said = ""
        self.last: Mapping[str, Any] | None = None
        self._deadline = deadline

    @property
    def is_late(self) -> bool:
        return time.monotonic() > self._deadline

    def until(self, name: str) -> Mapping[str, Any] | None:
        """Wait for an event; None if the run ends before, or is late."""
        while self.last is None and not self.is_late:
            event = self.step()
            if event is not None and event["event"] == name:
                return event
        return None

    def step(self, seconds: float = 1.0) -> Mapping[str, Any] | None:
        """Take the next event, if there is one in time."""
        event = self.driver.next_event(seconds)
        if event is not None:
            self.started += event["event"] == "started"
            if event["event"] == "failed":
                self.failed += 1
                self.said = str(event["error"])
            if event["event"] == "ended":
                self.last = event
        return event


def _committed(store: ObjectStore) -> set[str]:
    return {found[1] for key in store.list("shuffle") if (found := _MANIFEST.fullmatch(key))}
