"""Decides what gc may remove of published tables.

Kept: the newest `keep_versions` versions of each table, what the snapshots of recent and live runs
name, and, for an hour, a version that has just been followed by another, because other tools may be
reading it. A file that no version names is an orphan of a commit that was lost.

Versions go from the oldest on, so that the numbers that stay have no gaps (see `log`).
A run reads files, not versions, so a file that it reads stays while the version that named it goes.
"""

from __future__ import annotations

import datetime
import itertools
import logging
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.published.log import read_version
from stagecoach.infra.formats.published.version import TableVersion, TableVersionError
from stagecoach.infra.storage import checked_json, layout
from stagecoach.infra.storage.listing import StoredObject
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore

log = logging.getLogger(__name__)

READER_GRACE = datetime.timedelta(hours=1)
"""How long a version stays after another has followed it."""


@dataclass(frozen=True, kw_only=True)
class ExpiredVersions:
    """Versions of a table that nothing needs any more.

    Attributes:
        table: The table.
        numbers: Numbers of the versions whose records go.
        keys: The records, oldest first, then the data files that no other version needs.
        num_bytes: Their size.
    """

    table: str
    numbers: tuple[int, ...]
    keys: tuple[str, ...]
    num_bytes: int


@dataclass(frozen=True)
class TableExpiry:
    """What may go of all tables.

    Args:
        expired: By table.
        orphans: Files of commits that were lost, and left-over temporary files.
    """

    expired: tuple[ExpiredVersions, ...] = ()
    orphans: tuple[StoredObject, ...] = ()


def canonical_uri(store: ObjectStore, key: str) -> str:
    """The URI of an object as a run's snapshot has it."""
    uri = store.uri(key)
    if store.is_local:
        return os.path.realpath(uri)
    return f"s3://{uri.removeprefix('s3a://')}" if uri.startswith("s3a://") else uri


def snapshot_uris(store: ObjectStore, key: str) -> set[str]:
    """The URIs of all table files in a run's snapshot.

    Raises:
        StorageError: The snapshot is damaged, so what the run reads is not known.
    """
    try:
        body = checked_json.load(store.read_bytes(key))
        tables = body.get("tables", {}).values()
        return {file["uri"] for table in tables for file in table["files"]}
    except ObjectMissingError:
        return set()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StorageError(
            f"{store.uri(key)} is damaged ({error}), so what it needs is not known; "
            "nothing was removed. Remove that file if its run is over"
        ) from error


def find_expired(
    store: ObjectStore,
    objects: Iterable[StoredObject],
    *,
    pinned_uris: set[str],
    now: datetime.datetime,
    older_than: datetime.timedelta,
    orphan_limit: datetime.datetime,
) -> TableExpiry:
    """What may go of the published tables.

    Args:
        store: The storage root.
        objects: Everything below `results/`.
        pinned_uris: Files that runs read.
        now: The present moment.
        older_than: The age that the user gave.
        orphan_limit: Orphans that were written after this moment may be a commit under way.
    """
    tables: dict[str, list[StoredObject]] = defaultdict(list)
    for item in objects:
        tables[item.key.split("/")[1]].append(item)
    expired: list[ExpiredVersions] = []
    orphans: list[StoredObject] = []
    grace_limit = now - min(older_than, READER_GRACE)
    for table, items in sorted(tables.items()):
        try:
            found = _Table(store, table, items)
        except TableVersionError as error:
            log.warning("table %s stays as it is: %s", table, error)
            continue
        gone = found.expired(pinned_uris, grace_limit)
        if gone is not None:
            expired.append(gone)
        orphans += found.orphans(pinned_uris, orphan_limit)
    return TableExpiry(tuple(expired), tuple(orphans))


def oldest_kept(
    written: Mapping[int, datetime.datetime], keep: int, limit: datetime.datetime
) -> int:
    """The number of the oldest version that stays: all after it do, so that there is no gap.

    Args:
        written: When each version was written, by number.
        keep: How many of the newest stay whatever their age.
        limit: A version stays that was followed by another then or later.
    """
    numbers = sorted(written)
    followed = itertools.pairwise(numbers)
    kept = [*numbers[-keep:], *(n for n, after in followed if written[after] >= limit)]
    return min(kept, default=0)


class _Table:
    """One table of the listing, with all its versions read."""

    def __init__(self, store: ObjectStore, table: str, items: Sequence[StoredObject]) -> None:
        self._store = store
        self._table = table
        self._records: dict[int, StoredObject] = {}
        self._files: dict[str, StoredObject] = {}
        self._strays: list[StoredObject] = []
        versions, files = (f"{layout.table_versions(table)}/", f"{layout.table_files(table)}/")
        for item in items:
            number = layout.parse_table_version(item.key)
            if item.key.startswith(versions) and number is not None:
                self._records[number] = item
            elif item.key.startswith(files):
                self._files[item.key] = item
            elif item.key != layout.table_current(table):
                self._strays.append(item)
        self._versions: dict[int, TableVersion] = {}
        for number in sorted(self._records):
            try:
                self._versions[number] = read_version(store, table, number)
            except ObjectMissingError:
                continue  # another collection removed it just now

    def expired(
        self, pinned_uris: set[str], grace_limit: datetime.datetime
    ) -> ExpiredVersions | None:
        """Records and files that may go."""
        numbers = sorted(self._versions)
        if not numbers:
            return None
        keep = max(self._versions[numbers[-1]].keep_versions, 1)
        oldest = oldest_kept({n: self._records[n].modified for n in numbers}, keep, grace_limit)
        needed = {k for n in numbers if n >= oldest for k in self._versions[n].file_keys()}
        unneeded = {
            k for n in numbers if n < oldest for k in self._versions[n].file_keys()
        } - needed
        records = [self._records[n] for n in numbers if n < oldest]
        files = [
            self._files[key]
            for key in sorted(unneeded & self._files.keys())
            if canonical_uri(self._store, key) not in pinned_uris
        ]
        if not records and not files:
            return None
        return ExpiredVersions(
            table=self._table,
            numbers=tuple(n for n in numbers if n < oldest),
            keys=tuple(item.key for item in (*records, *files)),
            num_bytes=sum(item.num_bytes for item in (*records, *files)),
        )

    def orphans(self, pinned_uris: set[str], limit: datetime.datetime) -> list[StoredObject]:
        """Files that no version names."""
        named = {key for version in self._versions.values() for key in version.file_keys()}
        loose = [item for key, item in self._files.items() if key not in named]
        return [
            item
            for item in (*loose, *self._strays)
            if item.modified < limit and canonical_uri(self._store, item.key) not in pinned_uris
        ]


def without_pinned(
    store: ObjectStore, expired: Sequence[ExpiredVersions], pinned_uris: set[str]
) -> tuple[ExpiredVersions, ...]:
    """What still may go where runs have pinned more since: nothing of a table that they read."""
    kept: list[ExpiredVersions] = []
    for table in expired:
        folder = f"{canonical_uri(store, layout.table_prefix(table.table))}/"
        if not any(uri.startswith(folder) for uri in pinned_uris):
            kept.append(table)
    return tuple(kept)
