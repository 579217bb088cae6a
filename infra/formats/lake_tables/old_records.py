"""Old versions of the log of what is staged of a table: nobody needs any but the newest."""

from __future__ import annotations

import datetime
from collections.abc import Collection
from dataclasses import dataclass
from typing import Self

from stagecoach.infra.formats.expiry import oldest_kept
from stagecoach.infra.formats.lake_tables.committed_table import CommittedTable, ExpiredObjects
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.listing import list_objects


@dataclass(frozen=True, kw_only=True)
class OldRecords(ExpiredObjects):
    """Records that were followed by another one, oldest first; an `Expired`."""

    what = "old records of what is staged"

    def without(self, pinned_uris: Collection[str]) -> Self:
        """Return it: no run reads a record."""
        return self

    def remove(self) -> None:
        """Remove the records."""
        # One by one and the oldest first, so that the numbers that stay never have a gap.
        for record in self.objects:
            self.table.store.delete([record.key])


def find_old_records(table: CommittedTable, limit: datetime.datetime) -> OldRecords | None:
    """Return the records that were followed by another one before a moment; None for none."""
    found = list_objects(table.store, layout.log_versions(table.staged_log.versions.folder))
    by_number = {layout.parse_table_version(item.key): item for item in found}
    written = {n: item.modified for n, item in by_number.items() if n is not None}
    oldest = oldest_kept(written, 1, limit)
    gone = tuple(by_number[n] for n in sorted(written) if n < oldest)
    return OldRecords(table=table, objects=gone) if gone else None
