"""Which objects under `shuffle/` go and which stay, once it is known which outputs have expired.

A commit may name map files in the folders of other outputs: those that it took over from an
earlier commit. So a file stays as long as any commit names it that stays, whatever has become of
the output in whose folder it lies:

    outputs, those that expired ─▶ names of the commits that stay ─▶ expired objects, orphans

Pure but for `find_outputs`, which lists the store and reads every manifest.
"""

from __future__ import annotations

import datetime
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.listing import StoredObject, list_objects
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.upkeep.manifests import manifest_at
from stagecoach.planner.cached_property import cached_property

log = logging.getLogger(__name__)

_MANIFEST = "manifest.json"


@dataclass(frozen=True, kw_only=True)
class StoredOutput:
    """What lies in the folder of an output.

    Attributes:
        fingerprint: Which output.
        items: All objects in the folder.
        commit: The manifest among them; None where nothing is committed.
        manifest: What the manifest says; None where it cannot be read.
    """

    fingerprint: str
    items: tuple[StoredObject, ...]
    commit: StoredObject | None = None
    manifest: Manifest | None = None

    @property
    def is_lost(self) -> bool:
        """Whether the commit is marked as one that has lost files."""
        return self._mark is not None and any(item.key == self._mark for item in self.items)

    @cached_property
    def named(self) -> frozenset[str]:
        """Keys of all that the commit needs, in other folders, too, and of its mark."""
        if self.manifest is None or self._mark is None:
            return frozenset()
        return frozenset((*self.manifest.file_keys(), self._mark))

    @cached_property
    def _mark(self) -> str | None:
        if self.manifest is None:
            return None
        return layout.lost_mark(self.fingerprint, self.manifest.manifest_hash)


@dataclass(frozen=True, kw_only=True)
class ExpiredShuffle:
    """A committed shuffle that nothing needs any more.

    Attributes:
        fingerprint: Which one.
        stage: Name of the stage that made it.
        manifest_hash: Its commit; empty where the manifest cannot be read.
        is_lost: Whether it is marked as one that has lost files, so that no run will use it.
        objects: What goes with it, the manifest first: all of its folder but what other commits
            have taken over, and what it took over itself if no other commit needs it.
        named: Keys of all that its commit needs.
    """

    fingerprint: str
    stage: str
    manifest_hash: str
    is_lost: bool
    objects: tuple[StoredObject, ...]
    named: frozenset[str] = frozenset()

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the objects, the manifest first."""
        return tuple(item.key for item in self.objects)

    @property
    def num_bytes(self) -> int:
        """Size of the objects."""
        return sum(item.num_bytes for item in self.objects)

    def without(self, keys: Collection[str]) -> ExpiredShuffle:
        """Return the same, which leaves these objects where they are."""
        if not any(item.key in keys for item in self.objects):
            return self
        return replace(self, objects=tuple(i for i in self.objects if i.key not in keys))


@dataclass(frozen=True, kw_only=True)
class JudgedOutputs:
    """What is to become of outputs.

    Attributes:
        expired: Commits that go.
        orphans: Objects that no commit names.
        kept: Fingerprints of the commits that stay.
        kept_bytes: Size of all that stays of them.
    """

    expired: tuple[ExpiredShuffle, ...]
    orphans: tuple[StoredObject, ...]
    kept: frozenset[str]
    kept_bytes: int


def find_outputs(store: ObjectStore) -> list[StoredOutput]:
    """Return all outputs of a storage root, sorted by fingerprint, with their manifests.

    Raises:
        StorageError: The store failed.
    """
    folders: dict[str, list[StoredObject]] = defaultdict(list)
    for item in list_objects(store, layout.SHUFFLE_ROOT):
        parts = item.key.split("/")
        if len(parts) == 4:
            folders[parts[2]].append(item)
        else:
            log.warning("%s is not ours and stays", store.uri(item.key))
    found: list[StoredOutput] = []
    for fingerprint, items in sorted(folders.items()):
        commit = next((i for i in items if i.key.endswith(f"/{_MANIFEST}")), None)
        manifest = None if commit is None else manifest_at(store, commit.key)
        found.append(
            StoredOutput(
                fingerprint=fingerprint, items=tuple(items), commit=commit, manifest=manifest
            )
        )
    return found


def judge(
    outputs: Sequence[StoredOutput], expired: Collection[str], limit: datetime.datetime
) -> JudgedOutputs:
    """Say what is to become of all outputs.

    Args:
        outputs: All of them.
        expired: Fingerprints of the commits that go.
        limit: What was written from this moment on is no orphan.
    """
    going = [output for output in outputs if output.fingerprint in expired and output.commit]
    staying = [output for output in outputs if output.commit and output.fingerprint not in expired]
    kept_names = frozenset[str]().union(*(output.named for output in staying))
    known = kept_names.union(*(output.named for output in going))
    folders = {output.fingerprint for output in going}
    at = {item.key: item for output in outputs for item in output.items}
    taken: set[str] = set()
    judged: list[ExpiredShuffle] = []
    for output in going:
        borrowed = [
            at[key]
            for key in sorted(output.named - kept_names - taken)
            # What lies in a folder that goes as well goes with that.
            if key in at and _folder(key) not in folders
        ]
        taken |= {item.key for item in borrowed}
        judged.append(_expired(output, kept_names, borrowed))
    orphans = [
        item
        for output in outputs
        # Beside a manifest that cannot be read nothing is called an orphan.
        if output.fingerprint not in folders and (output.commit is None or output.manifest)
        for item in output.items
        if item.modified < limit and item.key not in known
    ]
    return JudgedOutputs(
        expired=tuple(judged),
        orphans=tuple(orphans),
        kept=frozenset(output.fingerprint for output in staying),
        kept_bytes=_size(item for output in staying for item in output.items)
        + _size(
            item
            for output in outputs
            if output.commit is None or output.fingerprint in folders
            for item in output.items
            if item.key in kept_names
        ),
    )


def _expired(
    output: StoredOutput, kept_names: Collection[str], borrowed: Sequence[StoredObject]
) -> ExpiredShuffle:
    manifest = output.manifest
    rest = [i for i in output.items if i is not output.commit and i.key not in kept_names]
    first = [] if output.commit is None else [output.commit]
    return ExpiredShuffle(
        fingerprint=output.fingerprint,
        stage=manifest.stage_name if manifest else "unreadable manifest",
        manifest_hash=manifest.manifest_hash if manifest else "",
        is_lost=output.is_lost,
        objects=(*first, *rest, *borrowed),
        named=output.named,
    )


def _folder(key: str) -> str:
    """The output in whose folder an object lies."""
    return key.split("/")[2]


def _size(items: Iterable[StoredObject]) -> int:
    return sum(item.num_bytes for item in items)
