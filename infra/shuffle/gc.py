"""Garbage collection: in, a store and an age; out, what was removed and what was kept.

Removed: files that no manifest names (orphans of failed attempts), committed shuffles that have
expired, and versions of published tables beyond those that are kept (`infra.tables.expiry`). Kept,
whatever its age: what a run of the last `older_than` or a run in progress has pinned.

The only code that lists the store. It decides by modification times, so the clocks of this machine
and of the store must agree to well below `older_than`. Of a shuffle the manifest goes first: a
collection that is killed leaves orphans, never a manifest without its files.
"""

from __future__ import annotations

import datetime
import json
import logging
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from infra.errors import StorageError
from infra.shuffle.manifest import Manifest, ManifestError, ManifestVersionError
from infra.storage import layout
from infra.storage.fsspec_store import FsspecStore
from infra.storage.object_store import ObjectMissingError, ObjectStore, explain_os_error
from infra.tables.expiry import (
    ExpiredVersions,
    StoredObject,
    find_expired,
    snapshot_uris,
    without_pinned,
)

log = logging.getLogger(__name__)

LIVE_RUN = datetime.timedelta(hours=24)
"""How long a run that has not ended may be silent before it counts as dead."""

_MANIFEST = "manifest.json"
_RUN_EVENTS = "events.jsonl"
_RUN_SNAPSHOT = "snapshot.json"
_HASH = re.compile(r"[0-9a-f]{32,128}")
_BATCH = 500


@dataclass(frozen=True, kw_only=True)
class ExpiredShuffle:
    """A committed shuffle that nothing needs any more.

    Attributes:
        fingerprint: Which one.
        stage: Name of the stage that made it.
        keys: All objects below its prefix, the manifest first.
        num_bytes: Their size.
    """

    fingerprint: str
    stage: str
    keys: tuple[str, ...]
    num_bytes: int


@dataclass(frozen=True, kw_only=True)
class GcReport:
    """What a collection removed, or would remove.

    Attributes:
        expired: Committed shuffles.
        orphans: Keys of files that no manifest and no version of a table names.
        orphan_bytes: Their size.
        num_kept: Committed shuffles that stay.
        versions: Versions of published tables, by table.
    """

    expired: tuple[ExpiredShuffle, ...] = ()
    orphans: tuple[str, ...] = ()
    orphan_bytes: int = 0
    num_kept: int = 0
    versions: tuple[ExpiredVersions, ...] = ()

    @property
    def num_objects(self) -> int:
        """Objects in all."""
        expired = sum(len(shuffle.keys) for shuffle in self.expired)
        return len(self.orphans) + expired + sum(len(table.keys) for table in self.versions)

    @property
    def num_bytes(self) -> int:
        """Bytes in all."""
        expired = sum(shuffle.num_bytes for shuffle in self.expired)
        return self.orphan_bytes + expired + sum(table.num_bytes for table in self.versions)


@dataclass
class _Needs:
    """What runs need.

    Args:
        pinned: Fingerprints.
        uris: Files of tables.
        since: Start of the oldest run in progress; files after it may be an attempt of that run.
    """

    pinned: set[str] = field(default_factory=set)
    uris: set[str] = field(default_factory=set)
    since: datetime.datetime | None = None


def collect_garbage(
    store: ObjectStore,
    *,
    older_than: datetime.timedelta,
    dry_run: bool = False,
    now: datetime.datetime | None = None,
) -> GcReport:
    """Remove orphans and expired shuffles, and return what they were.

    Args:
        store: The storage root.
        older_than: Only objects that were last written before this age are removed.
        dry_run: Whether to remove nothing.
        now: The present moment, with a zone.

    Raises:
        StorageError: The store failed.
    """
    now = now or datetime.datetime.now(datetime.UTC)
    limit = now - older_than
    needs = _find_needs(store, now, limit)
    report = _decide(store, needs, now, older_than)
    if not dry_run:
        # A run may have pinned something since we looked.
        later = _find_needs(store, now, limit)
        late = later.pinned - needs.pinned
        expired = tuple(s for s in report.expired if s.fingerprint not in late)
        kept = report.num_kept + len(report.expired) - len(expired)
        versions = without_pinned(store, report.versions, later.uris - needs.uris)
        report = replace(report, expired=expired, num_kept=kept, versions=versions)
        _remove(store, report)
    return report


def _find_needs(store: ObjectStore, now: datetime.datetime, limit: datetime.datetime) -> _Needs:
    needs = _Needs()
    runs: dict[str, list[StoredObject]] = defaultdict(list)
    for item in _objects(store, layout.RUNS_ROOT):
        runs[item.key.split("/")[1]].append(item)
    for items in runs.values():
        last = max(item.modified for item in items)
        ended = any(item.key.endswith(f"/{_RUN_EVENTS}") for item in items)
        alive = not ended and last >= now - LIVE_RUN
        if alive:
            start = min(item.modified for item in items)
            needs.since = start if needs.since is None else min(needs.since, start)
        if alive or last >= limit:
            pointers = [item.key for item in items if "/stages/" in item.key]
            needs.pinned |= _fingerprints_in(store, pointers)
            snapshots = [item.key for item in items if item.key.endswith(f"/{_RUN_SNAPSHOT}")]
            needs.uris.update(*(snapshot_uris(store, key) for key in snapshots))
    return needs


def _fingerprints_in(store: ObjectStore, keys: Iterable[str]) -> set[str]:
    """Every hash in these pointers: too many keep too much, too few would lose data."""
    found: set[str] = set()
    for key in keys:
        try:
            text = store.read_bytes(key)
        except ObjectMissingError:
            continue
        try:
            found |= set(_hashes(json.loads(text)))
        except ValueError as error:
            raise StorageError(
                f"{store.uri(key)} is damaged ({error}), so what it needs is not known; "
                "nothing was removed. Remove that file if its run is over"
            ) from error
    return found


def _hashes(value: Any) -> Iterator[str]:
    if isinstance(value, str) and _HASH.fullmatch(value):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _hashes(item)
    elif isinstance(value, list):
        for item in value:
            yield from _hashes(item)


def _decide(
    store: ObjectStore, needs: _Needs, now: datetime.datetime, older_than: datetime.timedelta
) -> GcReport:
    limit = now - older_than
    shuffles: dict[str, list[StoredObject]] = defaultdict(list)
    for item in _objects(store, layout.SHUFFLE_ROOT):
        parts = item.key.split("/")
        if len(parts) == 4:
            shuffles[parts[2]].append(item)
        else:
            log.warning("%s is not ours and stays", store.uri(item.key))
    # An orphan of a run in progress is an attempt that has yet to be committed.
    orphan_limit = limit if needs.since is None else min(limit, needs.since)
    expired: list[ExpiredShuffle] = []
    orphans: list[StoredObject] = []
    num_kept = 0
    for fingerprint, items in sorted(shuffles.items()):
        commit = next((i for i in items if i.key.endswith(f"/{_MANIFEST}")), None)
        manifest = _load(store, commit) if commit else None
        if commit is None:
            orphans += [i for i in items if i.modified < orphan_limit]
        elif fingerprint not in needs.pinned and all(i.modified < limit for i in items):
            expired.append(_expired(fingerprint, manifest, commit, items))
        else:
            num_kept += 1
            if manifest is not None:
                named = set(manifest.file_keys())
                orphans += [i for i in items if i.key not in named and i.modified < orphan_limit]
    tables = find_expired(
        store,
        _objects(store, layout.RESULTS_ROOT),
        pinned_uris=needs.uris,
        now=now,
        older_than=older_than,
        orphan_limit=orphan_limit,
    )
    orphans += tables.orphans
    return GcReport(
        versions=tables.expired,
        expired=tuple(expired),
        orphans=tuple(item.key for item in orphans),
        orphan_bytes=sum(item.num_bytes for item in orphans),
        num_kept=num_kept,
    )


def _load(store: ObjectStore, commit: StoredObject) -> Manifest | None:
    """The manifest; None where it cannot be read, so that nothing beside it is called an orphan."""
    try:
        text = store.read_bytes(commit.key)
        return Manifest.from_json(text, stage=commit.key, uri=store.uri(commit.key))
    except (ObjectMissingError, ManifestError, ManifestVersionError):
        return None


def _expired(
    fingerprint: str, manifest: Manifest | None, commit: StoredObject, items: Sequence[StoredObject]
) -> ExpiredShuffle:
    rest = [item.key for item in items if item is not commit]
    return ExpiredShuffle(
        fingerprint=fingerprint,
        stage=manifest.stage_name if manifest else "unreadable manifest",
        keys=(commit.key, *rest),
        num_bytes=sum(item.num_bytes for item in items),
    )


def _remove(store: ObjectStore, report: GcReport) -> None:
    _delete(store, [shuffle.keys[0] for shuffle in report.expired])
    _delete(store, [key for shuffle in report.expired for key in shuffle.keys[1:]])
    for versions in report.versions:
        # One by one and the oldest first, so that the numbers that stay never have a gap.
        for key in versions.keys[: len(versions.numbers)]:
            store.delete([key])
        _delete(store, versions.keys[len(versions.numbers) :])
    _delete(store, report.orphans)


def _delete(store: ObjectStore, keys: Sequence[str]) -> None:
    for start in range(0, len(keys), _BATCH):
        store.delete(keys[start : start + _BATCH])


def _objects(store: ObjectStore, prefix: str) -> Iterator[StoredObject]:
    """Every object below a prefix, with its size and time."""
    if isinstance(store, FsspecStore):
        for key, details in store.list_details(prefix):
            yield StoredObject(key, int(details["size"]), _remote_time(store, key, details))
        return
    for key in store.list(prefix):
        try:
            status = os.stat(store.uri(key))
        except FileNotFoundError:
            continue  # another process removed it just now
        except OSError as error:
            raise explain_os_error("look at", store.uri(key), error) from error
        moment = datetime.datetime.fromtimestamp(status.st_mtime, tz=datetime.UTC)
        yield StoredObject(key, status.st_size, moment)


def _remote_time(store: ObjectStore, key: str, details: Mapping[str, Any]) -> datetime.datetime:
    for name in ("LastModified", "last_modified", "mtime", "created", "updated"):
        value = details.get(name)
        if isinstance(value, int | float):
            return datetime.datetime.fromtimestamp(value, tz=datetime.UTC)
        if isinstance(value, str):
            value = datetime.datetime.fromisoformat(value)
        if isinstance(value, datetime.datetime):
            return value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
    raise StorageError(
        f"the store does not say when {store.uri(key)} was written, so its age is not known; "
        "use the lifecycle rules of the store instead"
    )
