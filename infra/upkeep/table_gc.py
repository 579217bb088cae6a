"""Garbage collection of tables that are outside of the storage root."""

from __future__ import annotations

import datetime
from collections.abc import Iterable

from stagecoach.infra.formats.capabilities import Expired, Expires, ExpiryRule
from stagecoach.infra.formats.expiry import snapshot_uris
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.listing import list_objects
from stagecoach.infra.storage.object_store import ObjectStore


def collect_table_garbage(
    store: ObjectStore,
    tables: Iterable[Expires],
    *,
    older_than: datetime.timedelta,
    dry_run: bool = False,
    now: datetime.datetime | None = None,
) -> list[Expired]:
    """Remove what is no longer needed of tables, and return what it was, one item for each table.

    To be called after `infra.upkeep.gc.collect_garbage`, which removes the folders of runs that
    are over: whatever a run reads that still has one stays.

    Args:
        store: The storage root, where runs are.
        tables: The tables.
        older_than: Only what has not been needed for this long is removed.
        dry_run: Whether to remove nothing.
        now: The present moment, with a zone; by the clocks of the tables' stores if left out.

    Raises:
        TableVersionError: The newest version of a table is damaged: what is live is not known.
        StorageError: A store failed.
    """
    rule = ExpiryRule(pinned_uris=pinned_by_runs(store), older_than=older_than, now=now)
    found = [table.find_expired(rule) for table in tables]
    if not dry_run and not all(expired.is_empty for expired in found):
        # A run may have pinned something since we looked.
        later = pinned_by_runs(store)
        found = [expired.without(later) for expired in found]
        for expired in found:
            if not expired.is_empty:
                expired.remove()
    return found


def pinned_by_runs(store: ObjectStore) -> set[str]:
    """Return the URIs of all table files in the snapshots of runs.

    Raises:
        StorageError: A snapshot is damaged, so what its run reads is not known.
    """
    keys = (item.key for item in list_objects(store, layout.RUNS_ROOT))
    snapshots = [key for key in keys if key == layout.run_snapshot(key.split("/")[1])]
    return set().union(*(snapshot_uris(store, key) for key in snapshots))
