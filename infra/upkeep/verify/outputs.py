"""Checks of committed outputs of stages: manifests, and the map files and indexes they name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from stagecoach.infra.errors import ShuffleReadError
from stagecoach.infra.integrity.findings import Check, Outcome, StoredDamage
from stagecoach.infra.shuffle.commit import is_lost, load_blocks, load_index, load_manifest
from stagecoach.infra.shuffle.manifest import Manifest, ManifestError, ManifestVersionError
from stagecoach.infra.shuffle.reader import verify_file
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.storage.rereads import reread

MANIFESTS = "manifests of outputs"
INDEXES = "indexes of outputs"
FILES = "files of outputs"

_MANIFEST = "/manifest.json"
_REMEDY = "the stage that wrote it runs again when its output is needed"


def output_checks(store: ObjectStore) -> Iterator[Check]:
    """Yield a check of each manifest of a storage root; it leads to those of its files."""
    for key in store.list(layout.SHUFFLE_ROOT):
        if key.endswith(_MANIFEST):
            yield _manifest_check(store, key)


def _manifest_check(store: ObjectStore, key: str) -> Check:
    uri = store.uri(key)
    known = StoredDamage(uri=uri, problem="", remedy=_REMEDY)

    def run() -> Outcome:
        text = b""

        def read() -> Manifest:
            nonlocal text
            text = store.read_bytes(key)
            return Manifest.from_json(text, stage="a stage", uri=uri)

        try:
            manifest = reread(store, key, read, (ManifestError,))
        except ManifestVersionError:
            return Outcome(num_bytes=len(text), has_checksums=False, is_foreign=True)
        except ManifestError as error:
            return Outcome(damages=[replace(known, problem=f"it is a {error.problem}")])
        if layout.manifest(manifest.fingerprint) != key:
            problem = f"it is the manifest of another output ({manifest.fingerprint})"
            return Outcome(damages=[replace(known, problem=problem)])
        # Marked as lost, so no run uses it: what is wrong with it is known already.
        more = [] if is_lost(store, manifest) else list(_content_checks(store, manifest))
        return Outcome(num_bytes=len(text), more=more)

    return Check(
        kind=MANIFESTS,
        known=known,
        run=run,
        is_needed=lambda missing: not missing and store.exists(key),
    )


def _content_checks(store: ObjectStore, manifest: Manifest) -> Iterator[Check]:
    def is_needed(is_missing: bool) -> bool:
        # gc removes the manifest first; a run that finds the output lost puts another in its place.
        try:
            found = load_manifest(store, manifest.fingerprint, stage=manifest.stage_name)
        except (ManifestError, ManifestVersionError):
            return False
        is_same = found is not None and found.manifest_hash == manifest.manifest_hash
        return is_same and not is_lost(store, manifest)

    known = StoredDamage(
        uri=store.uri(manifest.index_key),
        problem="",
        remedy=f"{manifest.stage_name} runs again when its output is needed",
        owner=f"output of {manifest.stage_name}",
    )
    yield Check(
        kind=INDEXES,
        known=known,
        run=partial(_check_index, store, manifest, known),
        is_needed=is_needed,
        num_bytes=manifest.index_bytes,
    )
    for position, file in enumerate(manifest.files):
        uri = store.uri(manifest.file_key(file))
        of_file = replace(known, uri=uri)
        yield Check(
            kind=FILES,
            known=of_file,
            run=partial(_check_file, store, manifest, position, of_file),
            is_needed=is_needed,
            num_bytes=file.num_bytes,
        )


def _check_index(store: ObjectStore, manifest: Manifest, known: StoredDamage) -> Outcome:
    try:
        for part in manifest.index_slices:  # one at a time: all of a large index is much
            load_index(store, manifest, part.lo, part.hi)
        load_blocks(store, manifest)
    except ManifestError as error:
        return Outcome(damages=[replace(known, problem=error.problem)])
    return Outcome(num_bytes=manifest.index_bytes)


def _check_file(
    store: ObjectStore, manifest: Manifest, position: int, known: StoredDamage
) -> Outcome:
    try:
        verify_file(store, manifest, position)
    except ShuffleReadError as error:
        return Outcome(damages=[replace(known, problem=error.problem)])
    return Outcome(num_bytes=manifest.files[position].num_bytes)
