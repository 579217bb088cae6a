"""Committed outputs as a run sees them: in, a stage; out, its manifest if it is whole."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from infra.errors import ShuffleReadError
from infra.runtime.context import StageContext, StageResult
from infra.runtime.pointers import StagePointer, pin, read_pointer
from infra.shuffle.manifest import Manifest, ManifestError, invalidate_manifest, load_manifest
from infra.shuffle.reader import verify_files
from infra.storage import layout
from infra.storage.object_store import ObjectMissingError
from planner.errors import StagecoachError
from planner.stages import Stage

log = logging.getLogger(__name__)


def input_pointer(context: StageContext, stage_id: int) -> StagePointer:
    """How an upstream stage ended in this run, or (if it was not run) in an earlier one.

    Raises:
        ManifestError: Its output is nowhere.
    """
    expected = context.fingerprints[stage_id]
    found = read_pointer(context.store, context.root_run_id, stage_id)
    if found is not None and found.expected == expected:
        return found
    name = context.stage_name(stage_id)
    manifest = load_manifest(context.store, expected, stage=name)
    if manifest is None:
        uri = context.store.uri(layout.manifest(expected))
        raise ManifestError(name, uri, "not found")
    pointer = StagePointer(
        expected=expected,
        fingerprint=expected,
        manifest_hash=manifest.manifest_hash,
        engine=manifest.engine,
    )
    return pin(context.store, context.root_run_id, stage_id, pointer)


def is_committed(context: StageContext, stage_id: int) -> bool:
    """Whether a stage's output is there for the run: from itself or from an earlier one."""
    try:
        pinned_manifest(context, stage_id, input_pointer(context, stage_id))
    except ManifestError:
        return False
    except StagecoachError as error:  # a table of an earlier run's snapshot that is gone
        log.debug("%s: %s", context.stage_name(stage_id), error)
        return False
    return True


def committed_result(context: StageContext) -> StageResult:
    """What the head stage of a run came to, from what is in storage.

    Raises:
        ManifestError: It has not run, or its output is gone.
    """
    stage_id = context.graph.head.stage_id
    pointer = input_pointer(context, stage_id)
    return StageResult(
        stage_id=stage_id,
        fingerprint=pointer.fingerprint,
        manifest=pinned_manifest(context, stage_id, pointer),
        engine=pointer.engine,
        columns=pointer.fields,
    )


def pinned_manifest(context: StageContext, stage_id: int, pointer: StagePointer) -> Manifest:
    """The manifest that a pointer of the run pins.

    Raises:
        ManifestError: It is gone, or another commit took its place.
    """
    name = context.stage_name(stage_id)
    manifest = load_manifest(context.store, pointer.fingerprint, stage=name)
    uri = context.store.uri(layout.manifest(pointer.fingerprint))
    if manifest is None:
        raise ManifestError(name, uri, "not found")
    if manifest.manifest_hash != pointer.manifest_hash:
        raise ManifestError(name, uri, "replaced by another commit since this run read it")
    return manifest


def usable_manifest(context: StageContext, stage: Stage, fingerprint: str) -> Manifest | None:
    """The committed manifest if its files are there with their sizes; a broken one is undone."""
    store, name = context.store, context.stage_name(stage.stage_id)
    manifest: Manifest | None = None
    try:
        manifest = load_manifest(store, fingerprint, stage=name)
        if manifest is None:
            return None
        for file in manifest.files:
            key = layout.shuffle_file(fingerprint, file.name)
            if (size := store.size(key)) != file.num_bytes:
                problem = f"{size} bytes, expected {file.num_bytes}"
                raise ShuffleReadError(name, file.task_index, None, store.uri(key), problem)
    except (ShuffleReadError, ObjectMissingError) as error:
        log.warning("%s was committed but is lost, so it runs again: %s", name, error)
        invalidate_manifest(store, fingerprint, manifest.manifest_hash if manifest else "")
        return None
    return manifest


def forget_lost_inputs(context: StageContext, manifests: Mapping[int, Manifest]) -> None:
    """Undo the commits of upstream stages whose files are damaged: run again, they recompute."""
    for manifest in manifests.values():
        try:
            verify_files(context.store, manifest)
        except ShuffleReadError:
            invalidate_manifest(context.store, manifest.fingerprint, manifest.manifest_hash)
        except StagecoachError as error:
            log.warning("cannot check %s: %s", manifest.stage_name, error)
