"""One fault of one run, and how the run ended.

Every trial has a storage root of its own. It ends with the right result, at once or after a clear
error and a second run; then all that was committed is read, and garbage collection must leave
nothing behind.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from benchmarks.faults.leftovers import left_behind, lost_commits
from benchmarks.faults.local_runs import LocalRuns, tasks_here
from stagecoach.infra.runtime.stages.run import Run
from stagecoach.infra.runtime.stages.run_stage import read_result, run_stage
from stagecoach.infra.shuffle.commit import load_manifest
from stagecoach.infra.shuffle.manifest import ManifestError
from stagecoach.planner.errors import StagecoachError
from stagecoach.planner.plan.stages import StageGraph

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

COLUMNS = (
    "not met",
    "right",
    "recovered",
    "error, then right",
    "wrong",
    "unclear",
    "lost",
    "orphans",
)
"""How faults end. Of the last four there must be none: a wrong result, an error that is not ours or
a second run that fails, a commit that is gone, an object that gc leaves."""
BAD = COLUMNS[4:]

_BESIDE = ("not met", "lost", "orphans", "computed again")
"""What is counted beside the ending of a fault that was met."""

_MOST_RUNS = 3
"""How often a fault that finds nobody is tried, on average."""


@dataclass
class Tally:
    """Counts of endings by kind of fault.

    Args:
        columns: How faults end.
        bad: Those of them that there must be none of.
    """

    columns: Sequence[str] = COLUMNS
    bad: Sequence[str] = BAD
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def add(self, kind: str, ending: str, note: str = "") -> None:
        """Count an ending."""
        self.counts.setdefault(kind, Counter())[ending] += 1
        if ending in self.bad:
            self.notes.append(f"{kind}: {ending}: {note}")
            log.error("%s: %s: %s", kind, ending, note)

    def leave_out(self, count: int, why: str) -> None:
        """Note faults that cannot happen on this machine."""
        self.left_out.append(f"{count} faults are left out: {why}")

    def total(self, *endings: str) -> int:
        """How many faults ended so; all that were met where none is named."""
        wanted = endings or tuple(c for c in self.columns if c not in _BESIDE)
        return sum(counter[e] for counter in self.counts.values() for e in wanted)

    def table(self) -> str:
        """The counts as text."""
        width = max([len("kind of fault"), *(len(kind) for kind in self.counts)])
        heads = [f"{'kind of fault':<{width}}", "faults", *self.columns]
        lines = ["  ".join(heads)]
        for kind, counter in [*self.counts.items(), ("all", sum(self.counts.values(), Counter()))]:
            met = sum(v for k, v in counter.items() if k not in _BESIDE)
            cells = [f"{met:>6}", *(f"{counter[c]:>{len(c)}}" for c in self.columns)]
            lines.append("  ".join([f"{kind:<{width}}", *cells]))
        return "\n".join(lines)


def until_met(play: Callable[[int], None], count: int, tally: Tally) -> tuple[int, int]:
    """Play until so many faults were met; return how many were, and of how many runs.

    Some faults find nobody: a driver may have ended before it is killed.
    """
    before, left_out, runs = tally.total(), len(tally.left_out), 0
    while (missing := count - (tally.total() - before)) > 0 and runs < _MOST_RUNS * count:
        play(missing)
        if len(tally.left_out) > left_out:
            break
        runs += missing
    return tally.total() - before, runs


@dataclass
class Trial:
    """A run of a query with a fault somewhere in it.

    Args:
        kind: Of the fault, for the table.
        runs: Over a storage root of its own.
        graph: The query.
        expected: Its result.
        tally: Where the ending is counted.
        changes: Of the run's context.
    """

    kind: str
    runs: LocalRuns
    graph: StageGraph
    expected: pa.Table
    tally: Tally
    changes: Mapping[str, Any] = field(default_factory=dict)
    tasks: Callable[[], AbstractContextManager[None]] = tasks_here
    """Where tasks run: in this process, or (with `nullcontext`) in Spark."""
    damaged: set[str] = field(default_factory=set)
    """Fingerprints of what the fault itself has damaged: no commit that we have lost."""

    def play(
        self,
        between: Callable[[Run, int], None] | None = None,
        *,
        repair: Callable[[], bool] | None = None,
        first: Callable[[Run], None] | None = None,
    ) -> None:
        """Run the query, with the fault; then once more if it failed; then look at what is left.

        Args:
            between: Called before each stage and before the result is read.
            repair: Ends the fault before a second run; returns whether it was met.
            first: Runs the query the first time, in place of this process.
        """
        context = self.runs.context(self.graph, **self.changes)
        again = replace(self.runs.patient(context), run_id=f"{context.run_id}-again")
        ending = "right"
        try:
            try:
                if first is not None:
                    first(context)
                table, recovered = self._run(context, between)
                ending = "recovered" if recovered else ending
            except StagecoachError as error:
                log.info("%s: %s", self.kind, error)
                ending = "error, then right"
            finally:
                # Whatever came of the run, the fault must not go on into the next trial.
                met = repair() if repair is not None else True
            if ending == "error, then right":
                table, _ = self._run(again)
        except Exception as error:  # errors that are no StagecoachError are what is looked for
            log.exception("%s", self.kind)
            run = "second run: " if ending == "error, then right" else ""
            self.tally.add(self.kind, "unclear", f"{run}{type(error).__name__}: {error}")
            return
        if not table.equals(self.expected):
            ending = "wrong"
        self.tally.add(self.kind, ending if met or ending != "right" else "not met")
        self._look(context, again)

    def _run(
        self,
        context: Run,
        between: Callable[[Run, int], None] | None = None,
    ) -> tuple[pa.Table, bool]:
        """The result, and whether a stage was computed again because its output was lost."""
        with self.tasks():
            results = []
            for stage in context.graph.stages:
                if between is not None:
                    between(context, stage.stage_id)
                results.append(run_stage(stage.stage_id, context))
            if between is not None:
                between(context, len(context.graph.stages))
            return read_result(context), any(result.recovered for result in results)

    def _look(self, context: Run, again: Run) -> None:
        """What is committed is whole, and garbage collection leaves nothing of all of it."""
        store = self.runs.store
        commits = {
            context.stage_name(stage_id): fingerprint
            for stage_id, fingerprint in dict(context.fingerprints).items()
            if fingerprint not in self.damaged
        }
        for problem in lost_commits(store, commits):
            self.tally.add(self.kind, "lost", problem)
        self.runs.end(context)
        self.runs.end(again)
        left = left_behind(store, self.runs.settings.spill_folder)
        if left:
            self.tally.add(self.kind, "orphans", f"{len(left)} objects, such as {left[0]}")


def load_manifest_of(context: Run, stage_id: int) -> Any:
    """The commit of a stage, or None where there is none that can be read."""
    try:
        return load_manifest(context.store, context.fingerprints[stage_id])
    except ManifestError:
        return None
