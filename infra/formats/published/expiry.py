"""Decides what gc may remove of published tables.

Kept: the newest `keep_versions` versions of each table, what the snapshots of recent and live runs
name, and, for an hour, a version that has just been followed by another, because other tools may be
reading it. A version also names the files of what is staged. A file that no version names is an
orphan of a commit that was lost.

Versions go from the oldest on, so that the numbers that stay have no gaps (see `log`).
A run reads files, not versions, so a file that it reads stays while the version that named it goes.
"""

from __future__ import annotations

import datetime
import logging
import uuid
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from stagecoach.infra.formats.capabilities import ExpiryRule
from stagecoach.infra.formats.expiry import READER_GRACE, oldest_kept
from stagecoach.infra.formats.published import paths
from stagecoach.infra.formats.published.log import read_version
from stagecoach.infra.formats.published.version import TableVersion, TableVersionError
from stagecoach.infra.formats.stored import RootExpiry
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.listing import StoredObject, list_objects, store_now
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore
from stagecoach.infra.storage.table_files import canonical_uri

log = logging.getLogger(__name__)

_BATCH = 500


@dataclass(frozen=True, kw_only=True)
class ExpiredVersions:
    """Versions of a table that nothing needs any more; implements `Expired`.

    Attributes:
        store: The storage root.
        table: The table.
        numbers: Numbers of the versions whose records go.
        keys: The records, oldest first, then the data files that no other version needs.
        num_bytes: Their size.
    """

    store: ObjectStore
    table: str
    numbers: tuple[int, ...] = ()
    keys: tuple[str, ...] = ()
    num_bytes: int = 0

    @property
    def table_name(self) -> str:
        """Name of the table."""
        return self.table

    @property
    def num_versions(self) -> int:
        """Versions whose records go."""
        return len(self.numbers)

    @property
    def num_objects(self) -> int:
        """Records and files."""
        return len(self.keys)

    @property
    def counts(self) -> Mapping[str, int]:
        """Versions."""
        return {"versions": len(self.numbers)}

    @property
    def metadata(self) -> Mapping[str, int]:
        """Nothing that is not told of tables of every format."""
        return {}

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to remove."""
        return not self.keys

    def without(self, pinned_uris: Collection[str]) -> ExpiredVersions:
        """Return it, or nothing of a table of which runs read files by now."""
        folder = f"{canonical_uri(self.store, paths.table_prefix(self.table))}/"
        if any(uri.startswith(folder) for uri in pinned_uris):
            return ExpiredVersions(store=self.store, table=self.table)
        return self

    def remove(self) -> None:
        """Remove the records and then the files."""
        # One by one and the oldest first, so that the numbers that stay never have a gap.
        for key in self.keys[: len(self.numbers)]:
            self.store.delete([key])
        files = self.keys[len(self.numbers) :]
        for start in range(0, len(files), _BATCH):
            self.store.delete(files[start : start + _BATCH])


def find_expired(
    store: ObjectStore, rule: ExpiryRule, orphan_limit: datetime.datetime
) -> RootExpiry:
    """Return what may go of the published tables of a storage root.

    Args:
        store: The storage root.
        rule: What must stay.
        orphan_limit: Orphans that were written after this moment may be a commit under way.
    """
    now = rule.now or store_now(store, layout.run_prefix(f"clock-{uuid.uuid4()}"))
    tables: dict[str, list[StoredObject]] = defaultdict(list)
    for item in list_objects(store, paths.RESULTS_ROOT):
        tables[item.key.split("/")[1]].append(item)
    expired: list[ExpiredVersions] = []
    orphans: list[StoredObject] = []
    grace_limit = now - min(rule.older_than, READER_GRACE)
    for table, items in sorted(tables.items()):
        try:
            found = _Table(store, table, items)
        except TableVersionError as error:
            log.warning("table %s stays as it is: %s", table, error)
            continue
        gone = found.expired(rule.pinned_uris, grace_limit)
        if gone is not None:
            expired.append(gone)
        orphans += found.orphans(rule.pinned_uris, orphan_limit)
    return RootExpiry(tuple(expired), tuple(orphans))


class _Table:
    """One table of the listing, with all its versions read."""

    def __init__(self, store: ObjectStore, table: str, items: Sequence[StoredObject]) -> None:
        self._store = store
        self._table = table
        self._records: dict[int, StoredObject] = {}
        self._files: dict[str, StoredObject] = {}
        self._strays: list[StoredObject] = []
        versions, files = (f"{paths.table_versions(table)}/", f"{paths.table_files(table)}/")
        for item in items:
            number = layout.parse_table_version(item.key)
            if item.key.startswith(versions) and number is not None:
                self._records[number] = item
            elif item.key.startswith(files):
                self._files[item.key] = item
            elif item.key != paths.table_current(table):
                self._strays.append(item)
        self._versions: dict[int, TableVersion] = {}
        for number in sorted(self._records):
            try:
                self._versions[number] = read_version(store, table, number)
            except ObjectMissingError:
                continue  # another collection removed it just now

    def expired(
        self, pinned_uris: Collection[str], grace_limit: datetime.datetime
    ) -> ExpiredVersions | None:
        """Records and files that may go."""
        numbers = sorted(self._versions)
        if not numbers:
            return None
        keep = max(self._versions[numbers[-1]].keep_versions, 1)
        # Quiet versions do not count: they have the rows of the version before.
        telling = [n for n in numbers if not self._versions[n].is_quiet]
        first = telling[-keep] if len(telling) >= keep else numbers[0]
        keep = sum(n >= first for n in numbers)
        oldest = oldest_kept({n: self._records[n].modified for n in numbers}, keep, grace_limit)
        needed = {k for n in numbers if n >= oldest for k in self._versions[n].file_keys()}
        # What the newest version does not stage can never be published.
        needed |= set(self._versions[numbers[-1]].needed_keys())
        unneeded = {k for n in numbers for k in self._versions[n].needed_keys()} - needed
        records = [self._records[n] for n in numbers if n < oldest]
        files = [
            self._files[key]
            for key in sorted(unneeded & self._files.keys())
            if canonical_uri(self._store, key) not in pinned_uris
        ]
        if not records and not files:
            return None
        return ExpiredVersions(
            store=self._store,
            table=self._table,
            numbers=tuple(n for n in numbers if n < oldest),
            keys=tuple(item.key for item in (*records, *files)),
            num_bytes=sum(item.num_bytes for item in (*records, *files)),
        )

    def orphans(self, pinned_uris: Collection[str], limit: datetime.datetime) -> list[StoredObject]:
        """Files that no version names."""
        named = {key for version in self._versions.values() for key in version.needed_keys()}
        loose = [item for key, item in self._files.items() if key not in named]
        return [
            item
            for item in (*loose, *self._strays)
            if item.modified < limit and canonical_uri(self._store, item.key) not in pinned_uris
        ]
