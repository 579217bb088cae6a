"""What a process has seen or made of a run, so that it does not read back what it knows.

The stages of a run that share a process share this: pointers, manifests, and the indexes of what
was committed here. A pointer names one commit by its hash, and a commit never changes, so what is
kept stays true; whether its files are still there shows when they are read. As soon as anything
turns out to be lost, all is forgotten and storage counts again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stagecoach.infra.runtime.records.pointers import StagePointer
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.storage import layout

MOST_FILES = 4096
"""Manifests of more map files, of which each takes about 1 KB, are read again when needed."""

MOST_INDEX_BYTES = 1 << 20
"""The same for indexes."""

MOST_CARRIED_BYTES = 1 << 20
"""What the tasks of a stage carry at most."""


@dataclass(frozen=True)
class KnownOutput:
    """The output of a stage, as the process knows it that ran the stage.

    Args:
        pointer: How the stage ended.
        manifest: The commit.
        contents: Its manifest and its index by key, as far as they are known.
    """

    pointer: StagePointer
    manifest: Manifest
    contents: Mapping[str, bytes]


class OwnCommits:
    """Pointers and commits of a run's stages; any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pointers: dict[int, StagePointer] = {}
        self._manifests: dict[str, Manifest] = {}
        self._indexes: dict[str, bytes] = {}
        self._absent: frozenset[str] = frozenset()

    def pointer(self, stage_id: int) -> StagePointer | None:
        """How a stage ended, if it is known here."""
        with self._lock:
            return self._pointers.get(stage_id)

    def manifest(self, manifest_hash: str) -> Manifest | None:
        """A commit, if it is known here."""
        with self._lock:
            return self._manifests.get(manifest_hash)

    def output(self, stage_id: int) -> KnownOutput | None:
        """The output of a stage, if its pointer and its commit are known here."""
        pointer = self.pointer(stage_id)
        manifest = self.manifest(pointer.manifest_hash) if pointer else None
        if pointer is None or manifest is None:
            return None
        return KnownOutput(pointer, manifest, self.contents([manifest]))

    def note_pointer(self, stage_id: int, pointer: StagePointer) -> None:
        """Keep how a stage ended; the last word counts."""
        with self._lock:
            self._pointers[stage_id] = pointer
            self._absent -= {pointer.fingerprint}

    def note_manifest(self, manifest_hash: str, manifest: Manifest) -> None:
        """Keep a commit that is in storage."""
        if len(manifest.files) <= MOST_FILES:
            with self._lock:
                self._manifests[manifest_hash] = manifest

    def note_index(self, key: str, content: bytes) -> None:
        """Keep the index of a commit, whose key no other index ever has."""
        if len(content) <= MOST_INDEX_BYTES:
            with self._lock:
                self._indexes[key] = content

    def note_absent(self, fingerprints: Iterable[str]) -> None:
        """Keep that these outputs, which no other run computes, were not there."""
        with self._lock:
            self._absent = frozenset(fingerprints)

    def is_absent(self, fingerprint: str) -> bool:
        """Whether an output is known not to be there."""
        with self._lock:
            return fingerprint in self._absent

    def contents(self, manifests: Iterable[Manifest]) -> dict[str, bytes]:
        """What reading these commits needs besides their map files, by key, as far as it is known.

        Tasks carry it, so it is left out of commits that would make it large.
        """
        found: dict[str, bytes] = {}
        size = 0
        for manifest in manifests:
            with self._lock:
                index = self._indexes.get(manifest.index_key)
            if len(manifest.files) > MOST_FILES:
                continue
            parts = {layout.manifest(manifest.fingerprint): manifest.to_json()}
            if index is not None:
                parts[manifest.index_key] = index
            size += sum(map(len, parts.values()))
            if size > MOST_CARRIED_BYTES:
                break
            found |= parts
        return found

    def forget(self) -> None:
        """Let storage count again."""
        with self._lock:
            self._pointers.clear()
            self._manifests.clear()
            self._indexes.clear()
            self._absent = frozenset()
