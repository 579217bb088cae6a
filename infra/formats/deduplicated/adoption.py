"""Checksums for chunks that an older Stagecoach wrote without."""

from __future__ import annotations

from dataclasses import replace

from stagecoach.infra.formats.adoption import StoredFile, read_whole_files
from stagecoach.infra.formats.capabilities import Adopted
from stagecoach.infra.formats.deduplicated.table import ChunkTable
from stagecoach.infra.formats.deduplicated.version import ChunkTableVersion
from stagecoach.infra.integrity.findings import StoredDamage


def adopt_checksums(table: ChunkTable) -> Adopted | None:
    """Give checksums to chunks of the newest version that have none; None if all have some."""
    version = table.log.current()
    chunks = {} if version is None else {c.name: c for c in version.chunks if not c.any_checksums}
    if version is None or not chunks:
        return None
    found, damages = read_whole_files(
        table.store,
        {
            name: StoredFile(chunk.key, chunk.num_rows, chunk.num_bytes, chunk.checksum)
            for name, chunk in chunks.items()
        },
        StoredDamage(
            uri="",
            problem="",
            remedy="restore the file from a copy; nothing else has its rows",
            table=table.name,
            version=version.number,
        ),
    )
    commit = table.new_commit()

    def step(base: ChunkTableVersion | None) -> ChunkTableVersion | None:
        if base is None or not any(not c.any_checksums and c.name in found for c in base.chunks):
            return None
        made = tuple(
            c if c.any_checksums else replace(c, checksums=found.get(c.name, ""))
            for c in base.chunks
        )
        return commit.after(base, "adopt", chunks=made)

    made = table.log.commit(commit.token, step)[0] if found else None
    newest = made or table.log.current()
    live = set() if newest is None else {chunk.name for chunk in newest.chunks}
    return Adopted(
        table=table.name,
        version=None if made is None else made.number,
        files=len(found),
        # What another version has replaced meanwhile, gc may have removed.
        damages=tuple(damage for name, damage in damages.items() if name in live),
    )
