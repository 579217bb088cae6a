"""The manifests that a run has pinned, as its tasks need them.

Each task that reads a shuffle needs the names of its map files. That of 70,000 files is 30 MB, so a
process keeps manifests for its next tasks. A pinned one is named by its hash and cannot change;
whether its files are still there shows when they are read.

Worker code.
"""

from __future__ import annotations

from stagecoach.infra.host.recent_cache import RecentCache
from stagecoach.infra.shuffle.commit import load_manifest
from stagecoach.infra.shuffle.manifest import Manifest, ManifestError
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.worker.spec import ShuffleInput

# The cost of a manifest is its number of files, of about 1 KB each.
KEPT: RecentCache[Manifest] = RecentCache(max_entries=64, max_cost=100_000)


def pinned_manifest(store: ObjectStore, spec: ShuffleInput) -> Manifest:
    """The manifest that the run pinned for an input.

    Raises:
        ManifestError: It is gone, or another commit took its place.
    """
    # Two runs in this process may have one commit under two names.
    key = spec.manifest_hash, spec.stage
    return KEPT.get(key, lambda: _load(store, spec), lambda found: len(found.files))


def _load(store: ObjectStore, spec: ShuffleInput) -> Manifest:
    uri = store.uri(layout.manifest(spec.fingerprint))
    found = load_manifest(store, spec.fingerprint, stage=spec.stage, expected=True)
    if found is None:
        raise ManifestError(spec.stage, uri, "not found")
    if found.manifest_hash != spec.manifest_hash:
        raise ManifestError(spec.stage, uri, "replaced by another commit since this run read it")
    return found
