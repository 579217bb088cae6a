"""What Stagecoach has published in an Iceberg table, as the summaries of its snapshots tell.

    snapshot 7   append    by Spark
    snapshot 6   overwrite stagecoach.fingerprint = 3fa4…, stagecoach.mode = replace_partition, …
    snapshot 5   replace   a compaction: the same rows
    snapshot 4   append    stagecoach.fingerprint = 91be…, …

A commit writes its properties and its files at once, so a retry that finds them adds nothing twice.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stagecoach.infra.formats.publishing import PublishMode
from stagecoach.planner.types import Field

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

CLEAR = "clear"
_PREFIX = "stagecoach."
_FINGERPRINT, _MODE, _TOKEN, _RUN, _ROWS = (
    f"{_PREFIX}{name}" for name in ("fingerprint", "mode", "token", "run-id", "rows")
)


@dataclass(frozen=True, kw_only=True)
class Publication:
    """What one of our commits says of itself.

    Attributes:
        fingerprint: Identity of the rows; empty for one that only removed rows.
        mode: What became of the rows that were there.
        token: Identity of the commit.
        run_id: The run.
        rows: Rows by partition key; the one key is None without partitions.
    """

    fingerprint: str
    mode: str
    token: str
    run_id: str = ""
    rows: Mapping[str | None, int] = field(default_factory=dict)

    def properties(self) -> dict[str, str]:
        """Return the properties of the snapshot."""
        return {
            _FINGERPRINT: self.fingerprint,
            _MODE: self.mode,
            _TOKEN: self.token,
            _RUN: self.run_id,
            _ROWS: json.dumps([[key, rows] for key, rows in self.rows.items()]),
        }


@dataclass(frozen=True, kw_only=True)
class IcebergVersion:
    """A snapshot as catalogs, commands and Dagster show it; a `StoredVersion`.

    Attributes:
        table: Name of the table.
        number: Id of the snapshot.
        committed_at: When it was made, ISO 8601 in UTC.
        mode: How it changed the table: our mode, or the operation of another writer.
        run_id: The run that made it; empty for another writer.
        columns: Columns as readers see them.
        has_data: Whether there is something to read; not after `clear`.
        num_rows: Rows of the data files.
        num_bytes: Size of all files in bytes.
        num_files: Number of data files.
        partition_keys: Partitions that this commit has published.
    """

    table: str
    number: int
    committed_at: str
    mode: str
    run_id: str
    columns: tuple[Field, ...]
    has_data: bool
    num_rows: int
    num_bytes: int
    num_files: int
    partition_keys: tuple[str, ...] = ()


def publication_of(snapshot: Snapshot) -> Publication | None:
    """Return what one of our commits says of itself; None for a snapshot of another writer."""
    found = _summary(snapshot)
    if _FINGERPRINT not in found:
        return None
    return Publication(
        fingerprint=found[_FINGERPRINT],
        mode=found.get(_MODE, ""),
        token=found.get(_TOKEN, ""),
        run_id=found.get(_RUN, ""),
        rows=dict(json.loads(found.get(_ROWS, "[]"))),
    )


def version_of(table: str, snapshot: Snapshot, columns: tuple[Field, ...]) -> IcebergVersion:
    """Return a snapshot as commands show it."""
    found, ours = _summary(snapshot), publication_of(snapshot)
    moment = datetime.datetime.fromtimestamp(snapshot.timestamp_ms / 1000, datetime.UTC)
    operation = "" if snapshot.summary is None else snapshot.summary.operation.value
    return IcebergVersion(
        table=table,
        number=snapshot.snapshot_id,
        committed_at=moment.isoformat(timespec="milliseconds"),
        mode=operation if ours is None else ours.mode,
        run_id="" if ours is None else ours.run_id,
        columns=columns,
        has_data=ours is None or ours.mode != CLEAR,
        num_rows=int(found.get("total-records", 0)),
        num_bytes=int(found.get("total-files-size", 0)),
        num_files=int(found.get("total-data-files", 0)),
        partition_keys=tuple(sorted(key for key in (ours.rows if ours else ()) if key is not None)),
    )


def ancestors(table: Table) -> Iterator[Snapshot]:
    """Yield the current snapshot and those before it, as far as they are kept."""
    snapshot = table.current_snapshot()
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.snapshot_by_id(parent)


def find_publication(
    table: Table, mode: PublishMode, fingerprint: str, keys: tuple[str | None, ...], token: str
) -> Snapshot | None:
    """Return the snapshot that makes the table what a commit would make of it, if there is one.

    A commit that replaces rows may be repeated, so it only counts as done if no other writer has
    changed rows since. One that appends must not be: it counts unless all rows are gone since.

    Args:
        table: The table as it is now.
        mode: Of the commit.
        fingerprint: Identity of its rows.
        keys: Its partition keys; None without.
        token: Its identity: its own snapshot counts whatever has followed.
    """
    done = _last_of(table, mode, fingerprint, keys)
    if done is not None:
        return done
    return next(
        (s for s in ancestors(table) if (p := publication_of(s)) and p.token == token), None
    )


def _last_of(
    table: Table, mode: PublishMode, fingerprint: str, keys: tuple[str | None, ...]
) -> Snapshot | None:
    for snapshot in ancestors(table):
        ours = publication_of(snapshot)
        if ours is not None and _is_same(ours, mode, fingerprint, keys):
            return snapshot
        if ours is None and _operation(snapshot) == "replace":
            continue  # a compaction
        if mode == "append":
            if _summary(snapshot).get("total-records") == "0" or (
                ours is not None and ours.mode in ("replace", CLEAR)
            ):
                return None
        elif (
            ours is None
            or ours.mode != "replace_partition"
            or mode != "replace_partition"
            or set(keys) & set(ours.rows)
        ):
            return None
    return None


def _is_same(
    ours: Publication, mode: PublishMode, fingerprint: str, keys: tuple[str | None, ...]
) -> bool:
    if ours.fingerprint != fingerprint or not (mode == "append" or ours.mode == mode):
        return False
    return mode == "replace" or set(keys) <= set(ours.rows)


def _operation(snapshot: Snapshot) -> str:
    return "" if snapshot.summary is None else snapshot.summary.operation.value


def _summary(snapshot: Snapshot) -> Mapping[str, Any]:
    return {} if snapshot.summary is None else snapshot.summary.additional_properties
