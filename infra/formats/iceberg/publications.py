"""What Stagecoach has published in an Iceberg table, as the summaries of its snapshots tell."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from stagecoach.infra.formats.lake_tables.publications import (
    CLEAR,
    LakeVersion,
    PastCommit,
    Publication,
)
from stagecoach.planner.types import Field

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot


def publication_of(snapshot: Snapshot) -> Publication | None:
    """Return what one of our commits says of itself; None for a snapshot of another writer."""
    return Publication.of(_summary(snapshot))


def version_of(table: str, snapshot: Snapshot, columns: tuple[Field, ...]) -> LakeVersion:
    """Return a snapshot as commands show it."""
    found, ours = _summary(snapshot), publication_of(snapshot)
    moment = datetime.datetime.fromtimestamp(snapshot.timestamp_ms / 1000, datetime.UTC)
    return LakeVersion(
        table=table,
        number=snapshot.snapshot_id,
        committed_at=moment.isoformat(timespec="milliseconds"),
        mode=_operation(snapshot) if ours is None else ours.mode,
        run_id="" if ours is None else ours.run_id,
        columns=columns,
        has_data=ours is None or ours.mode != CLEAR,
        num_rows=int(found.get("total-records", 0)),
        num_bytes=int(found.get("total-files-size", 0)),
        num_files=int(found.get("total-data-files", 0)),
        partition_keys=() if ours is None else ours.partition_keys,
    )


def ancestors(table: Table) -> Iterator[Snapshot]:
    """Yield the current snapshot and those before it, as far as they are kept."""
    snapshot = table.current_snapshot()
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.snapshot_by_id(parent)


def past_commits(table: Table) -> Iterator[PastCommit[Snapshot]]:
    """Yield the current snapshot and those before it, with what each has published."""
    for snapshot in ancestors(table):
        yield PastCommit(
            commit=snapshot,
            ours=publication_of(snapshot),
            keeps_rows=_operation(snapshot) == "replace",
            leaves_nothing=_summary(snapshot).get("total-records") == "0",
        )


def _operation(snapshot: Snapshot) -> str:
    return "" if snapshot.summary is None else snapshot.summary.operation.value


def _summary(snapshot: Snapshot) -> Mapping[str, Any]:
    return {} if snapshot.summary is None else snapshot.summary.additional_properties
