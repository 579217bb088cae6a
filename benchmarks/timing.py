"""Where the time of a run goes: a `StageClock` measures it, a `Breakdown` adds it up.

    planning │ Dagster │ stage │ Dagster │ stage │ … │ reading the result
                          └ storage │ Spark job │ storage
                                       └ queue │ Spark │ read │ compute │ write

Only the critical path counts: from the head back to the input that ended last, again and again.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from stagecoach.assets import StageMetadata
from stagecoach.infra.runtime.stages import attempt as execution
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.planner.plan.stages import Stage, StageGraph
from stagecoach.terminal.progress import StageProgress


@dataclass(frozen=True, kw_only=True)
class Breakdown:
    """Seconds of a query by what they were spent on; they add up to its wall time.

    Args:
        plan: Parsing, statistics and planning in the driver.
        compute: Scans and operators, inside the tasks.
        read: Reading shuffle files, inside the tasks.
        write: Partitioning and writing shuffle files, inside the tasks.
        queue: Waiting for a core while tasks of the run's other stages had it; an upper bound.
        spark: The Spark jobs apart from that and from their tasks: start, transport, end.
        storage: Snapshot, fingerprints, task list, manifests, pointers, schema check.
        dagster: The run apart from its stages.
        result: Reading the result from storage.
    """

    plan: float = 0.0
    compute: float = 0.0
    read: float = 0.0
    write: float = 0.0
    queue: float = 0.0
    spark: float = 0.0
    storage: float = 0.0
    dagster: float = 0.0
    result: float = 0.0

    @property
    def total(self) -> float:
        """All of it."""
        return sum(dataclasses.astuple(self))

    def __add__(self, other: Breakdown) -> Breakdown:
        pairs = zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)
        return Breakdown(**dict(zip(PARTS, (a + b for a, b in pairs), strict=True)))

    def to_dict(self) -> dict[str, float]:
        """Seconds by name, rounded for people."""
        return {name: round(getattr(self, name), 3) for name in PARTS}


PARTS = tuple(f.name for f in dataclasses.fields(Breakdown))


class StageClock(StageProgress):
    """A listener that notes when each stage of one run starts and ends, and its Spark job."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: dict[int, float] = {}
        self.intervals: dict[int, tuple[float, float]] = {}
        self.job_seconds: dict[int, float] = {}

    def stage_started(self, stage: Stage) -> None:
        """Note the time."""
        with self._lock:
            self._started[stage.stage_id] = time.perf_counter()

    def stage_finished(self, stage: Stage, metadata: StageMetadata) -> None:
        """Note the time."""
        with self._lock:
            self.intervals[stage.stage_id] = (self._started[stage.stage_id], time.perf_counter())

    @contextmanager
    def watching_jobs(self) -> Iterator[None]:
        """Time the Spark jobs of all stages that run inside the block, in any thread."""
        names = ("run_tasks", "run_sql")
        before = {name: getattr(execution, name) for name in names}
        for name, function in before.items():
            setattr(execution, name, self._timed(function))
        try:
            yield
        finally:
            for name, function in before.items():
                setattr(execution, name, function)

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(spark: object, spec: Any, *rest: object, **options: object) -> Any:
            started = time.perf_counter()
            try:
                return function(spark, spec, *rest, **options)
            finally:
                stage_id = (spec[0] if isinstance(spec, Sequence) else spec).stage_id
                seconds = time.perf_counter() - started
                with self._lock:
                    self.job_seconds[stage_id] = self.job_seconds.get(stage_id, 0.0) + seconds

        return timed

    def critical_path(self, graph: StageGraph) -> tuple[int, ...]:
        """Stages whose times add up to the run's, first to last."""
        path = [graph.head.stage_id]
        while inputs := graph.stages[path[-1]].inputs:
            path.append(max(inputs, key=lambda i: self.intervals[i][1]))
        return tuple(reversed(path))

    def stage_breakdown(self, stage_id: int, manifests: Mapping[int, Manifest]) -> Breakdown:
        """The time of one stage; `plan`, `dagster` and `result` are 0.

        Args:
            stage_id: Which stage.
            manifests: Those of all stages of the run.
        """
        start, end = self.intervals[stage_id]
        job = self._job(stage_id)
        wall = self._wall(stage_id, manifests[stage_id])
        tasks = manifests[stage_id].metrics.get("tasks", [])
        total = sum(task["total_seconds"] for task in tasks)
        share = {
            name: sum(task[f"{name}_seconds"] for task in tasks) / total if total else 0.0
            for name in ("read", "write")
        }
        read, write = share["read"] * wall, share["write"] * wall
        queue = min(job - wall, self._others(stage_id, manifests))
        return Breakdown(
            compute=wall - read - write,
            read=read,
            write=write,
            queue=queue,
            spark=job - wall - queue,
            storage=end - start - job,
        )

    def _job(self, stage_id: int) -> float:
        start, end = self.intervals[stage_id]
        return min(self.job_seconds.get(stage_id, 0.0), end - start)

    def _wall(self, stage_id: int, manifest: Manifest) -> float:
        """How long the stage's tasks ran: the busiest worker process sets the pace."""
        if manifest.engine == "spark":
            # What Spark computes is upstream of the Python function that reports.
            return self._job(stage_id)
        busy: dict[Any, float] = {}
        for task in manifest.metrics.get("tasks", []):
            worker = (task["host"], task["pid"])
            busy[worker] = busy.get(worker, 0.0) + task["total_seconds"]
        return min(max(busy.values(), default=0.0), self._job(stage_id))

    def _others(self, stage_id: int, manifests: Mapping[int, Manifest]) -> float:
        """How long tasks of other stages ran beside this stage, at most."""
        start, end = self.intervals[stage_id]
        beside = 0.0
        for other, (began, ended) in self.intervals.items():
            overlap = min(end, ended) - max(start, began)
            if other != stage_id and overlap > 0:
                beside += min(overlap, self._wall(other, manifests[other]))
        return beside

    def run_breakdown(
        self, graph: StageGraph, manifests: Mapping[int, Manifest], run_seconds: float
    ) -> Breakdown:
        """The time of the run along the critical path; `plan` and `result` are 0."""
        path = self.critical_path(graph)
        stages = [self.stage_breakdown(i, manifests) for i in path]
        spent = sum(part.total for part in stages)
        return sum(stages, Breakdown(dagster=max(run_seconds - spent, 0.0)))
