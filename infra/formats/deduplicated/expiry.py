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
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from stagecoach.infra.formats.capabilities import ExpiryRule
from stagecoach.infra.formats.deduplicated import changes, paths
from stagecoach.infra.formats.deduplicated.table import ChunkTable
from stagecoach.infra.formats.deduplicated.version import ChunkTableVersion
from stagecoach.infra.formats.expiry import READER_GRACE, oldest_kept
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.listing import StoredObject, list_objects, store_now
from stagecoach.infra.storage.table_files import canonical_uri
from stagecoach.infra.storage.uploads import Upload, abort_uploads, find_uploads

log = logging.getLogger(__name__)

_OUR_NAME = re.compile(r"\.tmp-[0-9a-f]+|\d{8}T\d{6}-[0-9a-f]{12}-\d{5,}\.(arrow|parquet)")
KEEP_VERSIONS = 10
UNCOMMITTED = datetime.timedelta(hours=24)
"""How long a file that no version names may belong to a write under way."""


@dataclass(frozen=True, kw_only=True)
class ExpiredChunks:
    """What may go of a deduplicated table; implements `Expired`.

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
    def table_name(self) -> str:
        """Name of the table."""
        return self.table.name

    @property
    def num_versions(self) -> int:
        """Versions whose records go."""
        return len(self.records)

    @property
    def counts(self) -> Mapping[str, int]:
        """How many of each sort."""
        return {
            "replaced chunks": len(self.replaced),
            "uncommitted files": len(self.orphans),
            "old versions": len(self.records),
            "unfinished uploads": len(self.uploads),
        }

    @property
    def metadata(self) -> Mapping[str, int]:
        """Replaced chunks, and the bytes of all."""
        return {"removed_chunks": len(self.replaced), "removed_chunk_bytes": self.num_bytes}

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
            if canonical_uri(store, paths.chunk_file(item[0])) not in pinned_uris
        )
        orphans = tuple(
            item for item in self.orphans if canonical_uri(store, item.key) not in pinned_uris
        )
        return replace(self, replaced=replaced, orphans=orphans)

    def remove(self) -> None:
        """Remove it; what is killed on the way goes on next time.

        Raises:
            StorageError: The store failed.
        """
        table = self.table
        names = [name for name, _ in self.replaced]
        if names:
            table.store.delete([paths.chunk_file(name) for name in names])
            current = table.log.current()
            declared = table if current is None else replace(table, declaration=current.declaration)
            commit = declared.new_commit()
            step = partial(changes.forget_replaced, commit=commit, removed=set(names))
            table.log.commit(commit.token, step)
        _remove_records(table, self.records)
        table.store.delete([item.key for item in self.orphans])
        abort_uploads(table.store, self.uploads)


def find_expired_chunks(table: ChunkTable, rule: ExpiryRule) -> ExpiredChunks:
    """What may go of a table.

    Args:
        table: The table.
        rule: What must stay.

    Raises:
        TableVersionError: The newest version is damaged: what is live is not known.
        StorageError: The store failed.
    """
    now, older_than = rule.now, rule.older_than
    # Listed before the version is read: what is committed since is not in the list.
    files = list(list_objects(table.store, paths.CHUNKS_ROOT))
    records = list(list_objects(table.store, layout.log_versions("")))
    version = table.log.current()
    if version is None:
        return ExpiredChunks(table=table)  # whoever's files these are
    stored = now or store_now(table.store, f"{paths.CHUNKS_ROOT}/clock-{uuid.uuid4()}")
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
    return found.without(rule.pinned_uris)


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
    return folder == paths.CHUNKS_ROOT and _OUR_NAME.fullmatch(name) is not None
