"""Checks of a deduplicated table: its versions, newest first, and the chunks that these name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from stagecoach.infra.formats.deduplicated.table import ChunkTable
from stagecoach.infra.formats.deduplicated.version import ChunkTableVersion, StoredChunk
from stagecoach.infra.formats.version_checks import hint_check, stored_versions, version_check
from stagecoach.infra.integrity.findings import Check, StoredDamage
from stagecoach.infra.integrity.objects import check_arrow, check_parquet

FILES = "chunks of deduplicated tables"
VERSIONS = "versions of deduplicated tables"


def table_checks(table: ChunkTable) -> Iterator[Check]:
    """Yield the checks of a deduplicated table."""
    yield hint_check(table.log, VERSIONS)
    seen: set[str] = set()
    newest: int | None = None
    for number, version in stored_versions(table.log):
        newest = number if newest is None else newest
        yield version_check(table.log, number, VERSIONS, is_newest=number == newest)
        if version is None:
            continue
        for chunk in version.chunks:
            if chunk.name not in seen:
                seen.add(chunk.name)
                yield _chunk_check(table, version, chunk, is_live=number == newest)


def _chunk_check(
    table: ChunkTable, version: ChunkTableVersion, chunk: StoredChunk, is_live: bool
) -> Check:
    known = StoredDamage(
        uri=table.store.uri(chunk.key),
        problem="",
        remedy="restore the file from a copy; nothing else has its rows"
        if is_live
        else "only older versions of the table need it: restore the file from a copy, or leave it "
        "to `stagecoach gc`",
        table=version.table,
        version=version.number,
    )

    def is_needed(is_missing: bool) -> bool:
        if not is_missing:
            return table.store.exists(chunk.key)
        # gc removes chunks that a compaction has replaced, whichever older versions name them.
        current = table.log.current()
        return current is not None and any(live.name == chunk.name for live in current.chunks)

    check = check_parquet if chunk.is_parquet else check_arrow
    return Check(
        kind=FILES,
        known=known,
        run=partial(
            check, table.store, chunk.key, known, chunk.num_bytes, chunk.checksum, chunk.checksums
        ),
        is_needed=is_needed,
        num_bytes=chunk.num_bytes,
    )
