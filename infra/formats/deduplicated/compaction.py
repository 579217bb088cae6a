"""Compaction: puts the rows of a table into fewer chunks that overlap less.

    chunks of the newest version ─▶ groups ─▶ for each: merged chunks ─▶ one commit

A commit replaces the chunks of a group if all of them are still live. Appends go on meanwhile;
their chunks are newer than the result. The files that were read stay for readers of older versions
until gc removes them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import partial

from stagecoach.infra.formats.capabilities import TARGET_ROWS, CompactionReport, TableShape
from stagecoach.infra.formats.deduplicated import changes
from stagecoach.infra.formats.deduplicated.errors import CompactionError
from stagecoach.infra.formats.deduplicated.expiry import trim_versions
from stagecoach.infra.formats.deduplicated.grouping import (
    Group,
    compactions,
    overlap_groups,
    overlap_share,
)
from stagecoach.infra.formats.deduplicated.merge import Merger
from stagecoach.infra.formats.deduplicated.table import ChunkTable
from stagecoach.infra.formats.deduplicated.version import ChunkTableVersion
from stagecoach.infra.formats.deduplicated.view import dedup_table, table_chunks
from stagecoach.infra.formats.deduplicated.writer import ChunkWriter, interval_units
from stagecoach.infra.storage.object_store import ObjectMissingError
from stagecoach.planner.types import arrow_schema

log = logging.getLogger(__name__)


def compact(table: ChunkTable, *, target_rows: int = TARGET_ROWS) -> CompactionReport:
    """Merge chunks that overlap, hold a key twice, or are fresh, and small neighbours.

    Args:
        table: The table.
        target_rows: Rows up to which chunks are made.

    Raises:
        CatalogError: The table has no data yet.
        StorageError: The store failed; what is committed by then stays.
    """
    started = time.perf_counter()
    version = table.read()
    before = shape(table, version)
    merged = skipped = 0
    for group in groups_to_merge(table, version, target_rows):
        try:
            merge_group(table, version, group, target_rows)
            merged += 1
        except (CompactionError, ObjectMissingError) as error:
            # Its files may be gone as well, if it was long ago that we read the version.
            if not _is_replaced(table, group):
                raise
            log.info("table %s: a group is left: %s", table.name, error)
            skipped += 1
    newest = table.read()
    trim_versions(table)
    return CompactionReport(
        table=table.name,
        version=newest.number,
        before=before,
        after=shape(table, newest),
        merged=merged,
        skipped=skipped,
        seconds=time.perf_counter() - started,
    )


def shape(table: ChunkTable, version: ChunkTableVersion) -> TableShape:
    """Return how a version's rows lie in chunks."""
    groups = overlap_groups(dedup_table(version), table_chunks(table.store, version))
    return TableShape(
        num_files=len(version.chunks),
        rows=version.num_rows,
        num_bytes=version.num_bytes,
        overlap_share=overlap_share(groups),
    )


def groups_to_merge(
    table: ChunkTable, version: ChunkTableVersion, target_rows: int
) -> Sequence[Group]:
    """Return the chunks that a compaction of this version merges with each other."""
    interval = interval_units(arrow_schema(version.columns), table.declaration)
    return compactions(
        dedup_table(version),
        table_chunks(table.store, version),
        target_rows=target_rows,
        interval=interval,
    )


def merge_group(
    table: ChunkTable, version: ChunkTableVersion, group: Group, target_rows: int
) -> ChunkTableVersion:
    """Merge the chunks of a group and commit the result.

    Args:
        table: The table.
        version: The version whose chunks they are.
        group: All chunks that may have rows of the same keys.
        target_rows: Rows up to which chunks are made.

    Raises:
        CompactionError: Another compaction was first; nothing was changed.
        StorageError: The store failed.
    """
    ids = {chunk.chunk_id for chunk in group}
    old = sorted(
        (c for c in version.chunks if c.name.rpartition(".")[0] in ids),
        key=lambda chunk: chunk.sequence,
    )
    commit = table.new_commit()
    writer = ChunkWriter(table.store, table.declaration, commit.token)
    try:
        Merger(table.store, table.declaration, version.columns, old, target_rows).write(writer)
    except BaseException:
        writer.discard()
        raise
    step = partial(
        changes.replace_chunks,
        commit=commit,
        old=[chunk.name for chunk in old],
        new=writer.chunks,
    )
    try:
        made, _ = table.log.commit(commit.token, step)
    except CompactionError:
        writer.discard()  # refused, so it is in no version
        raise
    log.info(
        "table %s: version %d, %d chunks instead of %d",
        table.name,
        made.number,
        len(writer.chunks),
        len(old),
    )
    return made


def _is_replaced(table: ChunkTable, group: Group) -> bool:
    """Whether a chunk of the group is live no more."""
    live = {chunk.name.rpartition(".")[0] for chunk in table.read().chunks}
    return any(chunk.chunk_id not in live for chunk in group)
