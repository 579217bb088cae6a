"""Checksums for files of a published table that an older Stagecoach wrote without."""

from __future__ import annotations

from dataclasses import replace

from stagecoach.infra.formats.adoption import StoredFile, read_whole_files
from stagecoach.infra.formats.capabilities import Adopted
from stagecoach.infra.formats.published import paths
from stagecoach.infra.formats.published.log import table_log
from stagecoach.infra.formats.published.version import TableVersion
from stagecoach.infra.formats.version_log import new_token, utc_now
from stagecoach.infra.integrity.findings import StoredDamage
from stagecoach.infra.storage.object_store import ObjectStore


def adopt_checksums(store: ObjectStore, table: str) -> Adopted | None:
    """Give checksums to files of the newest version that have none; None if all have some."""
    versions = table_log(store, table)
    version = versions.current()
    files = {} if version is None else {f.path: f for f in version.files if not f.checksums}
    if version is None or not files:
        return None
    found, damages = read_whole_files(
        store,
        {
            path: StoredFile(
                paths.table_file(table, path), file.num_rows, file.num_bytes, file.footer_checksum
            )
            for path, file in files.items()
        },
        StoredDamage(
            uri="",
            problem="",
            remedy="restore the file from a copy, or clear the table "
            f"(stagecoach tables clear {table}) and publish all of it again",
            table=table,
            version=version.number,
        ),
    )
    token = new_token()

    def step(base: TableVersion | None) -> TableVersion | None:
        if base is None or not any(not f.checksums and f.path in found for f in base.files):
            return None
        return replace(
            base,
            number=base.number + 1,
            token=token,
            committed_at=utc_now(),
            mode="adopt",
            run_id="",
            is_quiet=False,
            files=tuple(
                f if f.checksums else replace(f, checksums=found.get(f.path, ""))
                for f in base.files
            ),
        )

    made = versions.commit(token, step)[0] if found else None
    newest = made or versions.current()
    live = set() if newest is None else {file.path for file in newest.files}
    return Adopted(
        table=table,
        version=None if made is None else made.number,
        files=len(found),
        # What another version has replaced meanwhile, gc may have removed.
        damages=tuple(damage for name, damage in damages.items() if name in live),
    )
