"""Checks of a published table: its versions, newest first, and the files that these name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from stagecoach.infra.formats.published import paths
from stagecoach.infra.formats.published.log import table_log
from stagecoach.infra.formats.published.version import TableFile, TableVersion
from stagecoach.infra.formats.version_checks import hint_check, stored_versions, version_check
from stagecoach.infra.integrity.findings import Check, StoredDamage
from stagecoach.infra.integrity.objects import check_parquet
from stagecoach.infra.storage.object_store import ObjectStore

FILES = "files of published tables"
VERSIONS = "versions of published tables"


def table_checks(store: ObjectStore, table: str) -> Iterator[Check]:
    """Yield the checks of a published table."""
    log = table_log(store, table)
    yield hint_check(log, VERSIONS)
    seen: set[str] = set()
    newest: int | None = None
    for number, version in stored_versions(log):
        newest = number if newest is None else newest
        yield version_check(log, number, VERSIONS, is_newest=number == newest)
        if version is None:
            continue
        for file in (*version.files, *(version.staged_files() if number == newest else ())):
            if file.path not in seen:
                seen.add(file.path)
                yield _file_check(store, version, file, is_live=number == newest)


def _file_check(store: ObjectStore, version: TableVersion, file: TableFile, is_live: bool) -> Check:
    key = paths.table_file(version.table, file.path)
    known = StoredDamage(
        uri=store.uri(key),
        problem="",
        remedy=_remedy(version, file, is_live),
        table=version.table,
        version=version.number,
    )
    record = paths.table_version(version.table, version.number)

    def is_needed(is_missing: bool) -> bool:
        # gc removes a version before the files that only it names.
        return store.exists(record) if is_missing else store.exists(key)

    return Check(
        kind=FILES,
        known=known,
        run=partial(
            check_parquet, store, key, known, file.num_bytes, file.footer_checksum, file.checksums
        ),
        is_needed=is_needed,
        num_bytes=file.num_bytes,
    )


def _remedy(version: TableVersion, file: TableFile, is_live: bool) -> str:
    if not is_live:
        return (
            "only older versions of the table need it: restore the file from a copy, or leave it "
            "to `stagecoach gc`"
        )
    parts = (
        part.run_id
        for part in version.parts
        if (part.partition_key, part.fingerprint) == (file.partition_key, file.fingerprint)
    )
    run_id = next(parts, "")
    made = f"run {run_id} wrote it: " if run_id else ""
    return (
        f"{made}restore the file from a copy, or clear the table "
        f"(stagecoach tables clear {version.table}) and publish all of it again"
    )
