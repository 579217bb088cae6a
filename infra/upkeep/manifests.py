"""Reads manifests for upkeep, where a damaged one is a finding and not an error."""

from __future__ import annotations

from stagecoach.infra.shuffle.manifest import Manifest, ManifestError, ManifestVersionError
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore


def manifest_at(store: ObjectStore, key: str) -> Manifest | None:
    """Return the manifest at a key; None where it is damaged or was removed just now.

    Raises:
        StorageError: The store failed.
    """
    try:
        return parse_manifest(store.read_bytes(key), uri=store.uri(key))
    except ObjectMissingError:
        return None


def parse_manifest(text: bytes, *, uri: str) -> Manifest | None:
    """Return the manifest with this text; None where it is damaged or of another version."""
    try:
        return Manifest.from_json(text, stage=uri, uri=uri)
    except (ManifestError, ManifestVersionError):
        return None
