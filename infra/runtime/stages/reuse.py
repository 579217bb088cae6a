"""Finds committed outputs that a run may use, and pins them for it.

`run_stage` asks before it computes a stage. `reused_stages` asks for all stages of a run at once: a
run that has nothing to compute needs neither Spark nor Dagster, and this module imports neither.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import replace

from stagecoach.infra.runtime.records.pointers import StagePointer, write_pointer
from stagecoach.infra.runtime.stages.ancestry import check_ancestry, comes_from
from stagecoach.infra.runtime.stages.commits import pinned_manifest, pointer_to, usable_manifest
from stagecoach.infra.runtime.stages.run import Run, StageResult
from stagecoach.infra.runtime.stages.schema_check import SchemaCheck, stored_check
from stagecoach.infra.runtime.stages.todays_times import TODAY, today
from stagecoach.infra.shuffle.commit import mark_lost
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.storage import layout
from stagecoach.planner.plan.stages import Stage

log = logging.getLogger(__name__)


def reused_stages(run: Run) -> tuple[StageResult, ...] | None:
    """All stages of a run, pinned for it, if each of them is committed; None if one is not.

    What is pinned before a stage turns out to be missing is what the run would pin, too.

    Raises:
        StagecoachError: A table, the storage or a commit is not as it should be.
    """
    graph, store = run.graph, run.store
    if run.fresh or not all(stage.deterministic for stage in graph.stages):
        return None
    # Most runs that have something to compute lack the output of the head stage.
    if not store.exists(layout.manifest(run.fingerprints[graph.head.stage_id])):
        return None
    check = stored_check(run)
    if check is None or check.mismatch is not None:
        return None
    results: list[StageResult] = []
    pointers: dict[int, StagePointer] = {}
    for stage in graph.stages:
        started = time.perf_counter()
        inputs = {i: pointers[i] for i in stage.inputs}
        check_ancestry(run, inputs)
        found = reusable(run, stage, run.fingerprints[stage.stage_id], inputs)
        if found is None:
            return None
        asked = check if stage is graph.head else None
        result = pinned_result(run, stage, found, reused=True, check=asked)
        if result is None:
            return None
        pointers[stage.stage_id] = pointer_to(run, stage.stage_id, found)
        results.append(replace(result, seconds=time.perf_counter() - started))
    return tuple(results)


def reusable(
    run: Run, stage: Stage, fingerprint: str, inputs: Mapping[int, StagePointer]
) -> Manifest | None:
    """The committed output, if it is whole and was computed from the inputs as they are now.

    Raises:
        ManifestError: It was not, and an input is not any more what the run has pinned.
    """
    found = usable_manifest(run, stage, fingerprint)
    day = today(run.graph.time_zone)
    if found is None or comes_from(found, inputs, day):
        return found
    for i, pointer in inputs.items():  # it may be this run that is out of date
        pinned_manifest(run, i, pointer)
    name = run.stage_name(stage.stage_id)
    log.warning("%s runs again: %s", name, _outdated(found, day))
    mark_lost(run.store, fingerprint, found.manifest_hash)
    return None


def _outdated(manifest: Manifest, day: str) -> str:
    if manifest.ancestry.get(TODAY, day) != day:
        return f"it has times of {manifest.ancestry[TODAY]}, which are times of today in Spark"
    return "an upstream stage was recomputed with a different result"


def pinned_result(
    run: Run,
    stage: Stage,
    manifest: Manifest,
    *,
    reused: bool,
    check: SchemaCheck | None = None,
    reason: str | None = None,
    pinned: StagePointer | None = None,
) -> StageResult | None:
    """Pin a commit as the output of a stage of the run; None where gc has just removed it.

    Args:
        run: The run.
        stage: The stage.
        manifest: The commit.
        reused: Whether it was there already.
        check: The columns of the result, for the head stage.
        reason: Why another engine made it than the plan says, if the commit does not tell.
        pinned: What was pinned for the stage just now.
    """
    pointer = result_pointer(run, stage, manifest, check, reason)
    if pointer != pinned:
        pin_result(run, stage, manifest, pointer)
    # Garbage collection keeps what is pinned; it may have been at work before this was.
    if reused and not run.store.exists(layout.manifest(manifest.fingerprint)):
        return None
    return StageResult(
        stage_id=stage.stage_id,
        fingerprint=manifest.fingerprint,
        manifest=manifest,
        reused=reused,
        engine=manifest.engine,
        fallback_reason=pointer.fallback_reason,
        columns=pointer.fields,
    )


def result_pointer(
    run: Run, stage: Stage, manifest: Manifest, check: SchemaCheck | None, reason: str | None
) -> StagePointer:
    """What pins a commit as the output of a stage; see `pinned_result`."""
    return replace(
        pointer_to(run, stage.stage_id, manifest),
        columns=() if check is None else check.columns,
        fallback_reason=reason or manifest.metrics.get("fallback_reason"),
    )


def pin_result(run: Run, stage: Stage, manifest: Manifest, pointer: StagePointer) -> None:
    """Write a pointer of the run to a commit."""
    write_pointer(run.store, run.root_run_id, stage.stage_id, pointer)
    run.own.note_manifest(pointer.manifest_hash, manifest)
    run.own.note_pointer(stage.stage_id, pointer)
