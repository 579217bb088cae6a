"""Garbage collection: in, a store and an age; out, what was removed and what was kept.

Removed: files that no manifest names (orphans of failed attempts), committed shuffles that have
expired, folders of runs that are over, and versions of published tables beyond those that are kept
(`infra.tables.expiry`). Kept, whatever its age: what a run of the last `older_than` or a run in
progress has pinned, and what was written since the oldest run in progress began.

It decides by the times that the store gives its objects, and takes the present moment from the same
clock, so the clock of this machine may be wrong. Of a shuffle the manifest goes first: a collection
that is killed leaves orphans, never a manifest without its files.

A run may find an old shuffle at the same moment. It pins what it found and the collection looks for
pins once more after it has removed the manifests and before it removes their files, and puts those
back that have been pinned meanwhile. So a run that sees the manifest after it has pinned it can
count on the files.
"""

from __future__ import annotations

import datetime
import json
import logging
import re
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from infra.errors import ConfigError, StorageError
from infra.runtime.run_marks import BEGUN, ENDED
from infra.shuffle.manifest import Manifest
from infra.storage import layout
from infra.storage.object_store import ObjectMissingError, ObjectStore
from infra.tables.expiry import (
    ExpiredVersions,
    StoredObject,
    find_expired,
    snapshot_uris,
    without_pinned,
)
from infra.upkeep.listing import list_objects, manifest_at, store_now

log = logging.getLogger(__name__)

_AGE = re.compile(r"(\d+)\s*([smhdw])")
_AGE_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
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
class ExpiredRun:
    """The folder of a run that is over: its snapshot, pointers, events and page.

    Attributes:
        run_id: The run, to which its re-executions belong.
        keys: All objects in it; the marks that it has ended come last.
        num_bytes: Their size.
    """

    run_id: str
    keys: tuple[str, ...]
    num_bytes: int


@dataclass(frozen=True, kw_only=True)
class GcReport:
    """What a collection removed, or would remove.

    Attributes:
        expired: Committed shuffles.
        runs: Folders of runs.
        orphans: Keys of files that no manifest and no version of a table names.
        orphan_bytes: Their size.
        num_kept: Committed shuffles that stay.
        kept_bytes: Their size.
        num_kept_runs: Folders of runs that stay.
        versions: Versions of published tables, by table.
    """

    expired: tuple[ExpiredShuffle, ...] = ()
    runs: tuple[ExpiredRun, ...] = ()
    orphans: tuple[str, ...] = ()
    orphan_bytes: int = 0
    num_kept: int = 0
    kept_bytes: int = 0
    num_kept_runs: int = 0
    versions: tuple[ExpiredVersions, ...] = ()

    @property
    def num_objects(self) -> int:
        """Objects in all."""
        return len(self.orphans) + sum(len(item.keys) for item in self._items)

    @property
    def num_bytes(self) -> int:
        """Bytes in all."""
        return self.orphan_bytes + sum(item.num_bytes for item in self._items)

    @property
    def _items(self) -> tuple[ExpiredShuffle | ExpiredRun | ExpiredVersions, ...]:
        return (*self.expired, *self.runs, *self.versions)


@dataclass
class _Needs:
    """What runs need.

    Args:
        pinned: Fingerprints.
        uris: Files of tables.
        since: Start of the oldest run in progress; files after it may be an attempt of that run.
        expired: Runs that are over and need nothing.
        num_runs: Runs that are not.
    """

    pinned: set[str] = field(default_factory=set)
    uris: set[str] = field(default_factory=set)
    since: datetime.datetime | None = None
    expired: dict[str, ExpiredRun] = field(default_factory=dict)
    num_runs: int = 0


def parse_age(text: str) -> datetime.timedelta:
    """Return the age that a text such as `12h` or `7d` says.

    Raises:
        ConfigError: It is none.
    """
    match = _AGE.fullmatch(text.strip().lower())
    if match is None:
        raise ConfigError(f"'{text}' is no age; give a number and s, m, h, d or w, such as 7d")
    try:
        return datetime.timedelta(**{_AGE_UNITS[match[2]]: int(match[1])})
    except OverflowError:
        raise ConfigError(f"the age '{text}' is too long") from None


def collect_garbage(
    store: ObjectStore,
    *,
    older_than: datetime.timedelta,
    dry_run: bool = False,
    now: datetime.datetime | None = None,
) -> GcReport:
    """Remove orphans, expired shuffles and runs that are over, and return what they were.

    Args:
        store: The storage root.
        older_than: Only objects that were last written before this age are removed.
        dry_run: Whether to remove nothing.
        now: The present moment, with a zone; by the store's own clock if left out.

    Raises:
        StorageError: The store failed.
    """
    # Whoever comes in between takes its folder for one of a run that has just begun.
    now = now or store_now(store, layout.run_prefix(f"clock-{uuid.uuid4()}"))
    runs = _Runs(store, now, now - older_than)
    needs = runs.needs()
    report = _decide(store, needs, now, older_than)
    return report if dry_run else _remove(store, report, runs, needs)


class _Runs:
    """The runs of a store, at which one looks several times."""

    def __init__(
        self, store: ObjectStore, now: datetime.datetime, limit: datetime.datetime
    ) -> None:
        self._store = store
        self._now = now
        self._limit = limit
        self._hashes: dict[StoredObject, frozenset[str]] = {}

    def needs(self) -> _Needs:
        """What they need at this moment."""
        needs = _Needs()
        runs: dict[str, list[StoredObject]] = defaultdict(list)
        for item in list_objects(self._store, layout.RUNS_ROOT):
            runs[item.key.split("/")[1]].append(item)
        for run_id, items in runs.items():
            last = max(item.modified for item in items)
            alive = not _has_ended(items) and last >= self._now - LIVE_RUN
            if alive:
                start = min(item.modified for item in items)
                needs.since = start if needs.since is None else min(needs.since, start)
            if alive or last >= self._limit:
                needs.num_runs += 1
                self._add_needs(needs, items)
            else:
                needs.expired[run_id] = _expired_run(run_id, items)
        return needs

    def is_over(self, run: ExpiredRun) -> bool:
        """Whether nothing has been written to the run's folder since it was found to be over."""
        items = list_objects(self._store, layout.run_prefix(run.run_id))
        return all(item.modified < self._limit for item in items)

    def _add_needs(self, needs: _Needs, items: Sequence[StoredObject]) -> None:
        for item in items:
            # Not what is about to become a pointer, under a temporary name.
            if "/stages/" in item.key and item.key.endswith(".json"):
                # A pointer may be written again, then with another time or size.
                if item not in self._hashes:
                    self._hashes[item] = frozenset(_fingerprints_in(self._store, [item.key]))
                needs.pinned |= self._hashes[item]
            elif item.key.endswith(f"/{_RUN_SNAPSHOT}"):
                needs.uris |= snapshot_uris(self._store, item.key)


def _expired_run(run_id: str, items: Sequence[StoredObject]) -> ExpiredRun:
    # Whoever sees half a folder must still see that the run has ended.
    keys = sorted((f"/{ENDED}/" in i.key, i.key.endswith(f"/{_RUN_EVENTS}"), i.key) for i in items)
    return ExpiredRun(
        run_id=run_id,
        keys=tuple(key for _, _, key in keys),
        num_bytes=sum(item.num_bytes for item in items),
    )


def _has_ended(items: Sequence[StoredObject]) -> bool:
    """Whether every run that works in the folder says that it has ended."""
    begun = {item.key.rsplit("/", 1)[1] for item in items if f"/{BEGUN}/" in item.key}
    ended = {item.key.rsplit("/", 1)[1] for item in items if f"/{ENDED}/" in item.key}
    if begun:
        return begun <= ended
    return any(item.key.endswith(f"/{_RUN_EVENTS}") for item in items)


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
    for item in list_objects(store, layout.SHUFFLE_ROOT):
        parts = item.key.split("/")
        if len(parts) == 4:
            shuffles[parts[2]].append(item)
        else:
            log.warning("%s is not ours and stays", store.uri(item.key))
    # What was written since is an attempt of a run in progress that has yet to be committed, or a
    # commit that it has yet to pin.
    safe_limit = limit if needs.since is None else min(limit, needs.since)
    expired: list[ExpiredShuffle] = []
    orphans: list[StoredObject] = []
    num_kept = kept_bytes = 0
    for fingerprint, items in sorted(shuffles.items()):
        commit = next((i for i in items if i.key.endswith(f"/{_MANIFEST}")), None)
        # Beside a manifest that cannot be read nothing is called an orphan.
        manifest = manifest_at(store, commit.key) if commit else None
        if manifest is not None:
            mark = layout.lost_mark(manifest.fingerprint, manifest.manifest_hash)
            if any(i.key == mark for i in items):
                commit = None  # it has lost files, so nobody will use the others
        if commit is None:
            orphans += [i for i in items if i.modified < safe_limit]
        elif fingerprint not in needs.pinned and all(i.modified < safe_limit for i in items):
            expired.append(_expired(fingerprint, manifest, commit, items))
        else:
            num_kept += 1
            kept_bytes += sum(i.num_bytes for i in items)
            if manifest is not None:
                named = set(manifest.file_keys())
                orphans += [i for i in items if i.key not in named and i.modified < safe_limit]
    tables = find_expired(
        store,
        list_objects(store, layout.RESULTS_ROOT),
        pinned_uris=needs.uris,
        now=now,
        older_than=older_than,
        orphan_limit=safe_limit,
    )
    orphans += tables.orphans
    return GcReport(
        versions=tables.expired,
        expired=tuple(expired),
        runs=tuple(needs.expired.values()),
        orphans=tuple(item.key for item in orphans),
        orphan_bytes=sum(item.num_bytes for item in orphans),
        num_kept=num_kept,
        kept_bytes=kept_bytes,
        num_kept_runs=needs.num_runs,
    )


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


def _remove(store: ObjectStore, report: GcReport, runs: _Runs, needs: _Needs) -> GcReport:
    """Remove what is in the report, but for what has come to be needed; return what was."""
    later = runs.needs()
    versions = without_pinned(store, report.versions, later.uris - needs.uris)
    report = _without(report, later.pinned - needs.pinned)
    manifests = {s.fingerprint: _content(store, s.keys[0]) for s in report.expired}
    _delete(store, [shuffle.keys[0] for shuffle in report.expired])
    late = runs.needs().pinned & manifests.keys()
    for fingerprint in late:
        if (content := manifests[fingerprint]) is not None:
            # Unless it has been computed again meanwhile.
            store.put_if_absent(layout.manifest(fingerprint), content)
    report = _without(report, late)
    _delete(store, [key for shuffle in report.expired for key in shuffle.keys[1:]])
    for table in versions:
        # One by one and the oldest first, so that the numbers that stay never have a gap.
        for key in table.keys[: len(table.numbers)]:
            store.delete([key])
        _delete(store, table.keys[len(table.numbers) :])
    _delete(store, report.orphans)
    over = tuple(run for run in report.runs if runs.is_over(run))
    for run in over:
        _delete(store, run.keys)
    kept_runs = report.num_kept_runs + len(report.runs) - len(over)
    return replace(report, versions=versions, runs=over, num_kept_runs=kept_runs)


def _without(report: GcReport, fingerprints: set[str]) -> GcReport:
    """The report without shuffles that are needed after all."""
    kept = [s for s in report.expired if s.fingerprint in fingerprints]
    return replace(
        report,
        expired=tuple(s for s in report.expired if s.fingerprint not in fingerprints),
        num_kept=report.num_kept + len(kept),
        kept_bytes=report.kept_bytes + sum(s.num_bytes for s in kept),
    )


def _content(store: ObjectStore, key: str) -> bytes | None:
    try:
        return store.read_bytes(key)
    except ObjectMissingError:
        return None  # another collection is faster


def _delete(store: ObjectStore, keys: Sequence[str]) -> None:
    for start in range(0, len(keys), _BATCH):
        store.delete(keys[start : start + _BATCH])
