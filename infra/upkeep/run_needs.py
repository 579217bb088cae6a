"""Finds out what runs need of a storage root: what they have pinned, and which are over.

A run works in a folder, and so do its re-executions. It needs the shuffles that its pointers name
and the files of its snapshot; while it is in progress also whatever was written since it began.
"""

from __future__ import annotations

import datetime
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.expiry import snapshot_uris
from stagecoach.infra.runtime.records.run_marks import BEGUN, ENDED, is_known_dead
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.listing import StoredObject, list_objects
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore

LIVE_RUN = datetime.timedelta(hours=24)
"""How long a run may be silent before it counts as dead, where its lock does not tell."""

_EVENTS = "events.jsonl"
_SNAPSHOT = "snapshot.json"
_HASH = re.compile(r"[0-9a-f]{32,128}")


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


@dataclass
class RunNeeds:
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


class Runs:
    """The runs of a store, at which one looks several times.

    Args:
        store: The storage root.
        now: The present moment, by the clock of the store.
        limit: A run that has ended needs what it has pinned if it was active after this moment.
        without: A run whose needs do not count, or None.

    """

    def __init__(
        self,
        store: ObjectStore,
        now: datetime.datetime,
        limit: datetime.datetime,
        *,
        without: str | None = None,
    ) -> None:
        self._store = store
        self._without = without
        self._now = now
        self._limit = limit
        self._hashes: dict[StoredObject, frozenset[str]] = {}

    def needs(self) -> RunNeeds:
        """What they need at this moment."""
        needs = RunNeeds()
        runs: dict[str, list[StoredObject]] = defaultdict(list)
        for item in list_objects(self._store, layout.RUNS_ROOT):
            runs[item.key.split("/")[1]].append(item)
        for run_id, items in runs.items():
            last = max(item.modified for item in items)
            if run_id == self._without:
                continue
            alive = last >= self._now - LIVE_RUN and not _has_ended(self._store, items)
            if alive:
                start = min(item.modified for item in items)
                needs.since = start if needs.since is None else min(needs.since, start)
            if alive or last >= self._limit:
                needs.num_runs += 1
                self._add_needs(needs, items)
            else:
                needs.expired[run_id] = _expired_run(run_id, items)
        return needs

    def has_folder(self, run_id: str) -> bool:
        """Return whether there is anything of a run in storage."""
        return any(True for _ in self._store.list(layout.run_prefix(run_id)))

    def is_alive(self, run_id: str) -> bool:
        """Return whether a run is in progress, or whether that cannot be excluded."""
        items = list(list_objects(self._store, layout.run_prefix(run_id)))
        last = max(item.modified for item in items)
        return last >= self._now - LIVE_RUN and not _has_ended(self._store, items)

    def folder(self, run_id: str) -> ExpiredRun:
        """Return the folder of a run."""
        return _expired_run(run_id, list(list_objects(self._store, layout.run_prefix(run_id))))

    def pinned_by(self, run_id: str) -> set[str]:
        """Return the hashes of outputs and plans that a run has pinned."""
        needs = RunNeeds()
        self._add_needs(needs, list(list_objects(self._store, layout.run_prefix(run_id))))
        return needs.pinned

    def is_over(self, run: ExpiredRun) -> bool:
        """Whether nothing has been written to the run's folder since it was found to be over."""
        items = list_objects(self._store, layout.run_prefix(run.run_id))
        return all(item.modified < self._limit for item in items)

    def _add_needs(self, needs: RunNeeds, items: Sequence[StoredObject]) -> None:
        for item in items:
            # Not what is about to become a pointer, under a temporary name.
            if "/stages/" in item.key and item.key.endswith(".json"):
                # A pointer may be written again, then with another time or size.
                if item not in self._hashes:
                    self._hashes[item] = frozenset(_fingerprints_in(self._store, [item.key]))
                needs.pinned |= self._hashes[item]
            elif item.key.endswith(f"/{_SNAPSHOT}"):
                needs.uris |= snapshot_uris(self._store, item.key)


def _expired_run(run_id: str, items: Sequence[StoredObject]) -> ExpiredRun:
    # Whoever sees half a folder must still see that the run has ended.
    keys = sorted((f"/{ENDED}/" in i.key, i.key.endswith(f"/{_EVENTS}"), i.key) for i in items)
    return ExpiredRun(
        run_id=run_id,
        keys=tuple(key for _, _, key in keys),
        num_bytes=sum(item.num_bytes for item in items),
    )


def _has_ended(store: ObjectStore, items: Sequence[StoredObject]) -> bool:
    """Whether every run that works in the folder has ended, or died where that can be known."""
    begun = {item.key.rsplit("/", 1)[1]: item for item in items if f"/{BEGUN}/" in item.key}
    ended = {item.key.rsplit("/", 1)[1] for item in items if f"/{ENDED}/" in item.key}
    if begun:
        return all(run in ended or is_known_dead(store, mark.key) for run, mark in begun.items())
    return any(item.key.endswith(f"/{_EVENTS}") for item in items)


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
