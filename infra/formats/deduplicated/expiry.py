"""Decides what gc may remove of deduplicated tables.

Kept: live chunks, whatever their age; chunks that a compaction has replaced, until that is longer
ago than the age given to gc, and as long as a run reads them; the newest versions, and for an hour
those that have just been followed by another. A file that no version names is what a writer left
that died, or one that has yet to commit: it stays for a day at least.

Uploads to such files that were begun and never ended are aborted after the same time.

Versions go from the oldest on, so that the numbers that stay have no gaps.

Files and versions are as old as the clock says that dated them, that of the table's store. When a
chunk was replaced, the clock of the compaction said: neither that clock nor ours may be so wrong
that a chunk which was replaced just now looks as old as the age given to gc.
"""

from __future__ import annotations

import datetime
import logging
import re
import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import partial

from stagecoach.infra.formats.deduplicated import changes
from stagecoach.infra.formats.deduplicated.table import ChunkTable
from stagecoach.infra.formats.deduplicated.version import ChunkTableVersion
from stagecoach.infra.formats.published.expiry import (
    READER_GRACE,
    canonical_uri,
    oldest_kept,
    snapshot_uris,
)
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.listing import StoredObject, list_objects, store_now
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.storage.uploads import Upload, abort_uploads, find_uploads

log = logging.getLogger(__name__)

_OUR_NAME = re.compile(r"\.tmp-[0-9a-f]+|\d{8}T\d{6}-[0-9a-f]{12}-\d{5,}\.(arrow|parquet)")
KEEP_VERSIONS = 10
UNCOMMITTED = datetime.timedelta(hours=24)
"""How long a file that no version names may belong to a write under way."""


@dataclass(frozen=True, kw_only=True)
class ExpiredChunks:
    """What may go of a deduplicated table.

    Attributes:
        table: The table.
        records: Keys of versions, the oldest first.
        replaced: Names of chunks that a compaction has replaced, and their sizes in bytes.
        orphans: Files that no version names.
        record_bytes: Size of the records.
        uploads: Uploads that were begun and never ended; what they hold is not known.
    """

    table: ChunkTable
    records: tuple[str, ...] = ()
    replaced: tuple[tuple[str, int], ...] = ()
    orphans: tuple[StoredObject, ...] = ()
    record_bytes: int = 0
    uploads: tuple[Upload, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing may go."""
        return not self.num_objects and not self.uploads

    @property
    def num_objects(self) -> int:
        """Objects in all, without uploads, which are none yet."""
        return len(self.records) + len(self.replaced) + len(self.orphans)

    @property
    def num_bytes(self) -> int:
        """Bytes in all."""
        orphans = sum(item.num_bytes for item in self.orphans)
        return self.record_bytes + orphans + sum(size for _, size in self.replaced)

    def without(self, pinned_uris: Collection[str]) -> ExpiredChunks:
        """What still may go where runs have pinned more since."""
        store = self.table.store
        replaced = tuple(
            item
            for item in self.replaced
            if canonical_uri(store, layout.chunk_file(item[0])) not in pinned_uris
        )
        orphans = tuple(
            item for item in self.orphans if canonical_uri(store, item.key) not in pinned_uris
        )
        return replace(self, replaced=replaced, orphans=orphans)


def collect_chunk_garbage(
    store: ObjectStore,
    tables: Iterable[ChunkTable],
    *,
    older_than: datetime.timedelta,
    dry_run: bool = False,
    now: datetime.datetime | None = None,
) -> list[ExpiredChunks]:
    """Remove what is no longer needed of deduplicated tables, and return what it was.

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
    pinned = pinned_by_runs(store)
    found = [
        find_expired_chunks(table, pinned_uris=pinned, now=now, older_than=older_than)
        for table in tables
    ]
    found = [expired for expired in found if not expired.is_empty]
    if not dry_run and found:
        # A run may have pinned something since we looked.
        later = pinned_by_runs(store)
        found = [expired.without(later) for expired in found]
        for expired in found:
            remove_expired_chunks(expired)
    return found


def pinned_by_runs(store: ObjectStore) -> set[str]:
    """Return the URIs of all table files in the snapshots of runs.

    Raises:
        StorageError: A snapshot is damaged, so what its run reads is not known.
    """
    keys = (item.key for item in list_objects(store, layout.RUNS_ROOT))
    snapshots = [key for key in keys if key == layout.run_snapshot(key.split("/")[1])]
    return set().union(*(snapshot_uris(store, key) for key in snapshots))


def find_expired_chunks(
    table: ChunkTable,
    *,
    pinned_uris: Collection[str],
    now: datetime.datetime | None,
    older_than: datetime.timedelta,
) -> ExpiredChunks:
    """What may go of a table.

    Args:
        table: The table.
        pinned_uris: Files that runs read.
        now: The present moment; None: what the store's clock says.
        older_than: The age that the user gave.

    Raises:
        TableVersionError: The newest version is damaged: what is live is not known.
        StorageError: The store failed.
    """
    # Listed before the version is read: what is committed since is not in the list.
    files = list(list_objects(table.store, layout.CHUNKS_ROOT))
    records = list(list_objects(table.store, layout.log_versions("")))
    version = table.log.current()
    if version is None:
        return ExpiredChunks(table=table)  # whoever's files these are
    stored = now or store_now(table.store, f"{layout.CHUNKS_ROOT}/clock-{uuid.uuid4()}")
    ours = now or datetime.datetime.now(datetime.UTC)
    gone = _old_records(records, stored - min(older_than, READER_GRACE))
    uncommitted = stored - max(older_than, UNCOMMITTED)
    found = ExpiredChunks(
        table=table,
        records=tuple(item.key for item in gone),
        record_bytes=sum(item.num_bytes for item in gone),
        # Whichever clock keeps them longer.
        replaced=_old_replaced(version, min(stored, ours) - older_than),
        orphans=_orphans(files, version, uncommitted),
        uploads=tuple(u for u in find_uploads(table.store, before=uncommitted) if _is_ours(u.key)),
    )
    return found.without(pinned_uris)


def remove_expired_chunks(expired: ExpiredChunks) -> None:
    """Remove it; what is killed on the way goes on next time.

    Raises:
        StorageError: The store failed.
    """
    table = expired.table
    names = [name for name, _ in expired.replaced]
    if names:
        table.store.delete([layout.chunk_file(name) for name in names])
        current = table.log.current()
        declared = table if current is None else replace(table, declaration=current.declaration)
        commit = declared.new_commit()
        step = partial(changes.forget_replaced, commit=commit, removed=set(names))
        table.log.commit(commit.token, step)
    _remove_records(table, expired.records)
    table.store.delete([item.key for item in expired.orphans])
    abort_uploads(table.store, expired.uploads)


def trim_versions(table: ChunkTable, *, now: datetime.datetime | None = None) -> int:
    """Remove the records of versions that no reader can be at any more; return how many.

    Args:
        table: The table.
        now: The present moment; that of the newest record if left out, which is no later and by the
            same clock.
    """
    records = list(list_objects(table.store, layout.log_versions("")))
    if not records:
        return 0
    now = now or max(item.modified for item in records)
    gone = _old_records(records, now - READER_GRACE)
    _remove_records(table, [item.key for item in gone])
    return len(gone)


def _remove_records(table: ChunkTable, keys: Iterable[str]) -> None:
    # One by one and the oldest first, so that the numbers that stay never have a gap.
    for key in keys:
        table.store.delete([key])


def _old_records(records: Collection[StoredObject], limit: datetime.datetime) -> list[StoredObject]:
    """Records that were followed by another before the limit, the oldest first."""
    by_number = {layout.parse_table_version(item.key): item for item in records}
    written = {n: item.modified for n, item in by_number.items() if n is not None}
    oldest = oldest_kept(written, KEEP_VERSIONS, limit)
    return [by_number[n] for n in sorted(written) if n < oldest]


def _old_replaced(
    version: ChunkTableVersion, limit: datetime.datetime
) -> tuple[tuple[str, int], ...]:
    return tuple(
        (chunk.name, chunk.num_bytes)
        for chunk in version.replaced
        if datetime.datetime.fromisoformat(chunk.replaced_at) <= limit
    )


def _orphans(
    files: Iterable[StoredObject], version: ChunkTableVersion, limit: datetime.datetime
) -> tuple[StoredObject, ...]:
    """Files that are named as ours are and that no version needs."""
    named = {chunk.key for chunk in version.replaced} | {chunk.key for chunk in version.chunks}
    return tuple(
        item
        for item in files
        if item.modified < limit and item.key not in named and _is_ours(item.key)
    )


def _is_ours(key: str) -> bool:
    """Whether a file is named as a writer of chunks names it."""
    folder, *_, name = key.split("/")
    return folder == layout.CHUNKS_ROOT and _OUR_NAME.fullmatch(name) is not None
