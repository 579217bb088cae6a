"""Takes outputs of tasks over from an earlier commit of an incremental stage.

    hint ─▶ the newest commit ─▶ pinned ─▶ still there, not lost ─▶ files of tasks that are alike
                                                                       │
       tasks of the run ─▶ fingerprints of tasks ──────────────────────┤
                                                                       ▼
                                       taken over: named by the new commit    computed: all others

The new commit names the files where they are, in the folder of another output; gc removes a file
with the last commit that names it (`infra.upkeep.stored_outputs`). The earlier commit is pinned
before it is looked at, as an output that is reused, so gc does not remove its files until the new
commit names them.

Every task may read an input that has changed since the earlier commit, such as a broadcast of rows
of a growing table. Nothing can be taken over then, and groups of files only add tasks that read the
broadcast, so the stage is divided like any other. The first run that finds the input unchanged
divides it into groups again.

What is computed again because it was lost is computed whole: a damaged file must not be taken over
once more.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from stagecoach.infra.errors import ShuffleReadError
from stagecoach.infra.runtime.adaptive.decision import Decision
from stagecoach.infra.runtime.planning.task_fingerprints import (
    shared_fingerprint,
    stage_key,
    task_fingerprint,
)
from stagecoach.infra.runtime.records.hints import Hint, read_hint, write_hint
from stagecoach.infra.runtime.records.pointers import StagePointer, pin_base
from stagecoach.infra.runtime.stages.recovery import is_recovering
from stagecoach.infra.runtime.stages.run import Run
from stagecoach.infra.shuffle.commit import has_lost, is_lost, load_files, load_manifest
from stagecoach.infra.shuffle.manifest import Manifest, ManifestVersionError
from stagecoach.infra.shuffle.map_file import ManifestFile, MapFile
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore
from stagecoach.infra.worker.spec import TaskSpec
from stagecoach.planner.errors import StagecoachError
from stagecoach.planner.plan.stages import Stage

log = logging.getLogger(__name__)

_REQUESTS = 16


@dataclass(frozen=True, kw_only=True)
class TakenOver:
    """What an incremental stage need not compute.

    Args:
        stage_key: Identity of the stage, whatever its files are.
        fingerprints: Those of all tasks, in order.
        files: Map files that are there, by number of the task.
        metrics: What the tasks reported that wrote them, likewise.
        base: The output from whose commit they come; empty where there is none.
        reason: Why nothing was taken over; empty where something was.
        shared: Identity of what every task reads.
        in_groups: Whether each task reads a group of files that stays as it is.
        has_other_inputs: Whether nothing was taken over because every task of the earlier commit
            read something else.
    """

    stage_key: str
    fingerprints: tuple[str, ...]
    files: Mapping[int, MapFile] = field(default_factory=dict)
    metrics: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    base: str = ""
    reason: str = ""
    shared: str = ""
    in_groups: bool = True
    has_other_inputs: bool = False

    def decision(self) -> Decision:
        """What to say of it."""
        count = len(self.fingerprints)
        if not self.in_groups:
            return Decision("incremental", f"not divided into groups of files: {self.reason}")
        groups = f"{count:,} group{'' if count == 1 else 's'} of files"
        if not self.files:
            return Decision("incremental", f"{groups}, all computed: {self.reason}")
        num_bytes = sum(file.num_bytes for file in self.files.values())
        return Decision(
            "incremental",
            f"{groups}, {len(self.files):,} taken over from the last commit ({num_bytes:,} bytes), "
            f"{count - len(self.files):,} computed",
        )

    def choices(self) -> dict[str, Any]:
        """What the manifest keeps of it."""
        found: dict[str, Any] = {
            "tasks": len(self.fingerprints),
            "taken_over": len(self.files),
            "taken_over_bytes": sum(file.num_bytes for file in self.files.values()),
            "taken_over_rows": sum(file.num_rows for file in self.files.values()),
            "shared": self.shared,
            "in_groups": self.in_groups,
        }
        if self.base:
            found["base"] = self.base
        if self.reason:
            found["reason"] = self.reason
        return {"incremental": found}

    def undivided(
        self, stage: Stage, specs: Sequence[TaskSpec], manifests: Mapping[int, Manifest]
    ) -> TakenOver:
        """The same of other tasks, which read no groups of files; nothing is taken over.

        Args:
            stage: The stage.
            specs: The tasks.
            manifests: The outputs that they read, by stage.
        """
        tasks = _fingerprints(stage, specs, _by_fingerprint(manifests))
        return replace(self, fingerprints=tasks, in_groups=False)

    def remaining(self, specs: Sequence[TaskSpec]) -> list[TaskSpec]:
        """The tasks that are to be computed."""
        return [spec for spec in specs if spec.task_index not in self.files]

    def with_files(self, written: Sequence[MapFile]) -> tuple[MapFile, ...]:
        """All files in task order, given those that tasks wrote, which later commits may take."""
        named = [replace(f, task_fingerprint=self.fingerprints[f.task_index]) for f in written]
        return tuple(sorted((*self.files.values(), *named), key=lambda file: file.task_index))


def take_over(
    run: Run,
    stage: Stage,
    fingerprint: str,
    specs: Sequence[TaskSpec],
    manifests: Mapping[int, Manifest],
) -> TakenOver:
    """Find what need not be computed of an incremental stage, and pin it for the run.

    Args:
        run: The run.
        stage: Its stage.
        fingerprint: Where the output goes.
        specs: All tasks, numbered from 0.
        manifests: The outputs that they read, by stage.

    Raises:
        StorageError: The store failed.
    """
    inputs = _by_fingerprint(manifests)
    tasks = _fingerprints(stage, specs, inputs)
    found = TakenOver(
        stage_key=stage_key(specs[0], stage.plan_hash, stage.tables),
        fingerprints=tasks,
        shared=shared_fingerprint(specs[0], stage, inputs),
    )
    if run.fresh:
        return replace(found, reason="the run is to compute everything")
    if is_recovering() or has_lost(run.store, fingerprint):
        return replace(found, reason="the output was lost")
    base = _pinned_base(run, stage, found.stage_key)
    if base is None:
        return replace(found, reason="there is no earlier commit")
    reported = base.metrics.get("tasks", ())
    alike = _alike(base, tasks) if len(reported) == len(base.files) else {}
    if not alike:
        earlier = base.metrics.get("incremental", {})
        if earlier.get("shared", found.shared) != found.shared:
            reason = "what every task reads has changed since the last commit"
            return replace(found, reason=reason, has_other_inputs=True)
        if not earlier.get("in_groups", True):
            return replace(found, reason="the earlier commit has no groups of files")
        return replace(found, reason="the earlier commit has none of them")
    try:
        whole = _whole(run.store, base, alike)
        files = load_files(run.store, base, set(whole.values()))
    except ShuffleReadError as error:
        log.warning("%s: nothing is taken over: %s", run.stage_name(stage.stage_id), error)
        return replace(found, reason="the earlier commit is lost")
    return replace(
        found,
        base=base.fingerprint,
        files={task: replace(files[place], task_index=task) for task, place in whole.items()},
        metrics={t: _taken(reported[place]) for t, place in whole.items()},
        reason="" if whole else "the files of the earlier commit are gone",
    )


def _by_fingerprint(manifests: Mapping[int, Manifest]) -> dict[str, Manifest]:
    return {manifest.fingerprint: manifest for manifest in manifests.values()}


def _fingerprints(
    stage: Stage, specs: Sequence[TaskSpec], inputs: Mapping[str, Manifest]
) -> tuple[str, ...]:
    """Identities of what the tasks of a stage put out, in order."""
    return tuple(task_fingerprint(spec, stage.plan_hash, inputs) for spec in specs)


def _taken(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """What a task reported in an earlier run, without the time that it took then."""
    timeless = {name: 0.0 for name in metrics if name.endswith("_seconds") or name == "started_at"}
    return {**metrics, **timeless, "taken_over": True}


def note_commit(run: Run, taken: TakenOver, manifest: Manifest) -> None:
    """Leave the hint at a new commit for the next run."""
    if run.fresh:
        return
    hint = Hint(fingerprint=manifest.fingerprint, manifest_hash=manifest.manifest_hash)
    try:
        write_hint(run.store, taken.stage_key, hint)
    except StagecoachError as error:
        log.warning("the next run computes %s whole: %s", manifest.stage_name, error)


def _pinned_base(run: Run, stage: Stage, key: str) -> Manifest | None:
    """The newest commit of a stage, pinned; None where it is gone, damaged or lost."""
    hint = read_hint(run.store, key)
    if hint is None:
        return None
    pointer = StagePointer(
        expected=hint.fingerprint,
        fingerprint=hint.fingerprint,
        manifest_hash=hint.manifest_hash,
        plan=run.graph.plan_hash,
    )
    # Before the commit is looked at: gc may be about to remove it.
    pin_base(run.store, run.root_run_id, stage.stage_id, pointer)
    try:
        name = run.stage_name(stage.stage_id)
        base = load_manifest(run.store, hint.fingerprint, stage=name)
    except (ShuffleReadError, ManifestVersionError) as error:
        log.warning("the last commit of %s is of no use: %s", name, error)
        return None
    return None if base is None or is_lost(run.store, base) else base


def _alike(base: Manifest, tasks: Sequence[str]) -> dict[int, int]:
    """Positions of the files in an earlier commit by the tasks that would write the same rows."""
    places = {file.task_fingerprint: i for i, file in enumerate(base.files)}
    return {task: places[key] for task, key in enumerate(tasks) if key in places}


def _whole(store: ObjectStore, base: Manifest, alike: Mapping[int, int]) -> dict[int, int]:
    """The same without files that are gone or have another size."""

    def is_there(file: ManifestFile) -> bool:
        try:
            return store.size(base.file_key(file)) == file.num_bytes
        except ObjectMissingError:
            return False

    places = list(alike.values())
    if store.is_local:
        there = [is_there(base.files[place]) for place in places]
    else:
        with ThreadPoolExecutor(_REQUESTS) as pool:
            there = list(pool.map(is_there, (base.files[place] for place in places)))
    return {task: place for (task, place), ok in zip(alike.items(), there, strict=True) if ok}
