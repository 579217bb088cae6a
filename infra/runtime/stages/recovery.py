"""Recomputes lost outputs of upstream stages while a stage runs.

    stage ─▶ an input is lost? ─ no ─▶ result, or any other error
      ▲           │ yes
      │      mark its commit as lost ─▶ run that stage again (which may find its own inputs lost)
      └───────────┘

Each step of a Dagster run is a process of its own in some executors, so the step that finds the
loss computes what is lost itself, under the claim on that output: two steps that find the same loss
compute it once. The rounds are bounded, for the whole tree of recoveries that one step starts.

What was never computed for the run is not lost: a step of a run of part of a query says so.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from stagecoach.infra.errors import ShuffleReadError
from stagecoach.infra.runtime.records.pointers import read_pointer
from stagecoach.infra.runtime.stages.commits import check_sizes, forget_if_damaged
from stagecoach.infra.runtime.stages.run import Run, StageResult
from stagecoach.infra.shuffle.commit import is_lost, load_manifest, mark_lost
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.spark.jobs import job_alias, job_tag
from stagecoach.infra.storage import layout
from stagecoach.planner.plan.stages import Stage

log = logging.getLogger(__name__)

MAX_ROUNDS = 3
"""How often a stage is tried again because of lost inputs, in all that one step recovers."""

_NEVER = ""  # in the place of a problem: there is nothing to recover


@dataclass
class _Recovery:
    """What one step has recovered so far."""

    rounds: Counter[int] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


_current: ContextVar[_Recovery | None] = ContextVar("recovery", default=None)


def is_recovering() -> bool:
    """Whether this thread computes a stage again that another has found lost."""
    return _current.get() is not None


def recovering(
    run: Run,
    stage: Stage,
    attempt: Callable[[], StageResult],
    run_again: Callable[[int], object],
) -> StageResult:
    """Run a stage; where an input turns out to be lost, run that stage again and try once more.

    Args:
        run: The run.
        stage: Its stage.
        attempt: Runs it.
        run_again: Runs another stage of the run, by number.

    Returns:
        The result; `recovered` tells what was lost.

    Raises:
        ShuffleReadError: An input is lost and the run does not recover, or not any more. Its commit
            is marked, so that the next run computes it.
        StagecoachError: Whatever else the stage fails with.
    """
    outer = _current.get()
    state = _Recovery() if outer is None else outer
    name = run.stage_name(stage.stage_id)
    first_note = len(state.notes)
    while True:
        try:
            result = attempt()
        except ShuffleReadError as error:
            run.own.forget()
            lost = find_lost(run, stage, error)
            if not _may_go_on(run, stage, error, state, lost):
                raise
            for stage_id, problem in lost.items():
                upstream = run.stage_name(stage_id)
                log.warning("%s: %s is lost (%s) and runs again", name, upstream, problem)
                with _inside(state), _instead(run, stage, stage_id):
                    run_again(stage_id)
                state.notes.append(f"{upstream} was lost ({problem}) and was computed again")
            if not lost:
                log.warning("%s runs again: %s; but all of it is there", name, error)
                state.notes.append(f"{error.uri}: {error.problem}; that passed")
        else:
            notes = tuple(state.notes[first_note:])
            return replace(result, recovered=notes) if notes else result


def find_lost(run: Run, stage: Stage, error: ShuffleReadError) -> dict[int, str]:
    """The inputs of a stage that have to run again, and what is wrong with each.

    A commit that is there, but is not the one that the run has pinned, counts: running the stage
    again pins it. The input that the error names is read whole, others are looked at by size. What
    is found damaged is marked, so that no run uses it. An input without any output has no problem:
    an empty text.
    """
    lost: dict[int, str] = {}
    for i in stage.inputs:
        pointer = read_pointer(run.store, run.root_run_id, i)
        if pointer is not None and pointer.expected != run.fingerprints[i]:
            pointer = None
        if pointer is not None and pointer.deferred is not None:
            continue
        fingerprint = run.fingerprints[i] if pointer is None else pointer.fingerprint
        pinned = None if pointer is None else pointer.manifest_hash
        name = run.stage_name(i)
        problem = _problem(run, name, fingerprint, pinned, thorough=error.stage == name)
        if problem is not None:
            lost[i] = problem
    return lost


def _problem(
    run: Run, name: str, fingerprint: str, pinned: str | None, *, thorough: bool
) -> str | None:
    """What is wrong with a commit; None where it is whole, `_NEVER` where there was none."""
    store = run.store
    uri = store.uri(layout.manifest(fingerprint))
    manifest: Manifest | None = None
    try:
        manifest = load_manifest(store, fingerprint, stage=name)
        if manifest is None:
            return _NEVER if pinned is None else f"{uri}: not found"
        if is_lost(store, manifest):
            return f"{uri}: marked as lost"
        if pinned is not None and manifest.manifest_hash != pinned:
            return f"{uri}: replaced by another commit"
        check_sizes(store, manifest, name)
    except ShuffleReadError as error:
        if manifest is not None:
            mark_lost(store, fingerprint, manifest.manifest_hash)
        return f"{error.uri}: {error.problem}"
    damage = forget_if_damaged(store, manifest) if thorough else None
    return None if damage is None else f"{damage.uri}: {damage.problem}"


def _may_go_on(
    run: Run,
    stage: Stage,
    error: ShuffleReadError,
    state: _Recovery,
    lost: Mapping[int, str],
) -> bool:
    """Whether there is another round; what is read must be the stage's own inputs."""
    if not run.recovers or _NEVER in lost.values():
        return False
    if error.stage not in {run.stage_name(i) for i in stage.inputs}:
        return False
    state.rounds[stage.stage_id] += 1
    if state.rounds[stage.stage_id] > MAX_ROUNDS:
        name = run.stage_name(stage.stage_id)
        log.error("%s: given up after %d rounds of recovery", name, MAX_ROUNDS)
        return False
    return True


@contextmanager
def _inside(state: _Recovery) -> Iterator[None]:
    token = _current.set(state)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def _instead(run: Run, stage: Stage, stage_id: int) -> Iterator[None]:
    """Let whoever cancels the stage cancel the one that runs in its place."""
    own, other = (job_tag(run.run_id, i) for i in (stage.stage_id, stage_id))
    with job_alias(own, other):
        yield
