"""The committed outputs that a run may use, checked for lost files."""

from __future__ import annotations

import logging
from functools import partial

from stagecoach.infra.errors import ShuffleReadError
from stagecoach.infra.runtime.records.pointers import StagePointer, pin, read_pointer
from stagecoach.infra.runtime.stages.run import Run, StageResult
from stagecoach.infra.shuffle.commit import is_lost, load_manifest, mark_lost
from stagecoach.infra.shuffle.manifest import Manifest, ManifestError
from stagecoach.infra.shuffle.reader import verify_files
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.at_once import at_once
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore
from stagecoach.planner.errors import StagecoachError
from stagecoach.planner.plan.stages import Stage

log = logging.getLogger(__name__)


def look_ahead(run: Run, *, is_hosted: bool) -> None:
    """Find out what every stage of a run needs to know, before the first of them.

    That is its snapshot and its fingerprints, and on a store that is far away, which outputs are
    there already of those that no other run has: its stages then need not look one by one.

    Args:
        run: The run.
        is_hosted: Whether all of its stages run in this process.

    Raises:
        StagecoachError: A table cannot be used, or the storage refused.
    """
    fingerprints = run.fingerprints.values()
    if run.store.is_local or not (is_hosted and run.fresh):
        return
    calls = [partial(run.store.exists, layout.manifest(one)) for one in fingerprints]
    found = zip(fingerprints, at_once(run.store, calls), strict=True)
    run.own.note_absent(fingerprint for fingerprint, is_there in found if not is_there)


def input_pointer(run: Run, stage_id: int) -> StagePointer:
    """How an upstream stage ended in this run, or (if it was not run) in an earlier one.

    Raises:
        ManifestError: Its output is nowhere.
    """
    expected = run.fingerprints[stage_id]
    found = run.own.pointer(stage_id) or read_pointer(run.store, run.root_run_id, stage_id)
    if found is None or found.expected != expected:
        found = _pinned_now(run, stage_id, expected)
    run.own.note_pointer(stage_id, found)
    return found


def _pinned_now(run: Run, stage_id: int, expected: str) -> StagePointer:
    """Pin what an earlier run has committed for a stage."""
    name = run.stage_name(stage_id)
    manifest = load_manifest(run.store, expected, stage=name)
    if manifest is None:
        uri = run.store.uri(layout.manifest(expected))
        raise ManifestError(name, uri, "not found")
    if is_lost(run.store, manifest):
        uri = run.store.uri(layout.manifest(expected))
        raise ManifestError(name, uri, "marked as lost")
    pointer = pointer_to(run, stage_id, manifest)
    return pin(run.store, run.root_run_id, stage_id, pointer)


def pointer_to(run: Run, stage_id: int, manifest: Manifest) -> StagePointer:
    """What pins a commit as the output of a stage of the run."""
    return StagePointer(
        expected=run.fingerprints[stage_id],
        fingerprint=manifest.fingerprint,
        manifest_hash=manifest.manifest_hash,
        engine=manifest.engine,
        content=manifest.content_hash,
        ancestry=manifest.ancestry,
        plan=run.graph.plan_hash,
    )


def is_committed(run: Run, stage_id: int) -> bool:
    """Whether a stage's output is there for the run: from itself or from an earlier one."""
    try:
        pinned_manifest(run, stage_id, input_pointer(run, stage_id))
    except ManifestError:
        return False
    except StagecoachError as error:  # a table of an earlier run's snapshot that is gone
        log.debug("%s: %s", run.stage_name(stage_id), error)
        return False
    return True


def committed_result(run: Run) -> StageResult:
    """What the head stage of a run came to, from what is in storage.

    Raises:
        ManifestError: It has not run, or its output is gone.
    """
    stage_id = run.graph.head.stage_id
    pointer = input_pointer(run, stage_id)
    return StageResult(
        stage_id=stage_id,
        fingerprint=pointer.fingerprint,
        manifest=pinned_manifest(run, stage_id, pointer),
        engine=pointer.engine,
        columns=pointer.fields,
    )


def pinned_manifest(run: Run, stage_id: int, pointer: StagePointer) -> Manifest:
    """The manifest that a pointer of the run pins.

    Raises:
        ManifestError: It is gone, or another commit took its place.
    """
    if (known := run.own.manifest(pointer.manifest_hash)) is not None:
        return known
    name = run.stage_name(stage_id)
    manifest = load_manifest(run.store, pointer.fingerprint, stage=name, expected=True)
    uri = run.store.uri(layout.manifest(pointer.fingerprint))
    if manifest is None:
        raise ManifestError(name, uri, "not found")
    if manifest.manifest_hash != pointer.manifest_hash:
        raise ManifestError(name, uri, "replaced by another commit since this run read it")
    run.own.note_manifest(pointer.manifest_hash, manifest)
    return manifest


def usable_manifest(run: Run, stage: Stage, fingerprint: str) -> Manifest | None:
    """The committed manifest if its files are there with their sizes; else it is marked as lost."""
    store, name = run.store, run.stage_name(stage.stage_id)
    manifest: Manifest | None = None
    try:
        manifest = load_manifest(store, fingerprint, stage=name)
        if manifest is None or is_lost(store, manifest):
            return None
        check_sizes(store, manifest, name)
    except ShuffleReadError as error:
        log.warning("%s was committed but is lost, so it runs again: %s", name, error)
        mark_lost(store, fingerprint, manifest.manifest_hash if manifest else "")
        return None
    return manifest


def check_sizes(store: ObjectStore, manifest: Manifest, name: str) -> None:
    """Look whether the files of a commit and its index are there, by their sizes only.

    Raises:
        ShuffleReadError: One is missing, or has another size.
    """

    def check(key: str, expected: int, task: int) -> None:
        try:
            size = store.size(key)
        except ObjectMissingError as error:
            raise ShuffleReadError(name, task, None, store.uri(key)) from error
        if size != expected:
            problem = f"{size} bytes, expected {expected}"
            raise ShuffleReadError(name, task, None, store.uri(key), problem)

    wanted = [(manifest.file_key(file), file.num_bytes, file.task_index) for file in manifest.files]
    wanted.append((manifest.index_key, manifest.index_bytes, -1))
    at_once(store, [partial(check, *one) for one in wanted])


def forget_if_damaged(store: ObjectStore, manifest: Manifest) -> ShuffleReadError | None:
    """Read a commit whole and mark it as lost if it is damaged; return what is wrong with it."""
    try:
        verify_files(store, manifest)
    except ShuffleReadError as error:
        mark_lost(store, manifest.fingerprint, manifest.manifest_hash)
        return error
    return None
