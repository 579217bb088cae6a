"""Damaged table files, as a run reports them: which table and version, and what to do about it."""

from __future__ import annotations

import logging

from infra.catalog.snapshot import Snapshot, TableSnapshot
from infra.engines.inputs import local_path
from infra.integrity.errors import DamagedFileError
from infra.storage.object_store import ObjectStore
from infra.tables.log import read_version
from planner.errors import StagecoachError

log = logging.getLogger(__name__)


def located(error: DamagedFileError, snapshot: Snapshot, store: ObjectStore) -> DamagedFileError:
    """The error of a damaged file with its table, and the run that wrote it.

    Args:
        error: What was found.
        snapshot: The tables of the run.
        store: The storage root, where published tables are.
    """
    for table in snapshot.tables.values():
        for file in table.files:
            if error.uri in (file.uri, local_path(file.uri)):
                return _of_table(error, table, file.uri, store)
    return error


def _of_table(
    error: DamagedFileError, table: TableSnapshot, uri: str, store: ObjectStore
) -> DamagedFileError:
    if table.dedup is not None:
        return error.located(
            f"table '{table.table}'",
            "restore the file from a copy; nothing else has its rows",
        )
    if table.version is None:
        return error.located(
            f"table '{table.table}'", "restore the file from a copy, or write it again"
        )
    origin = f"table '{table.table}', version {table.version}"
    run_id = _run_of(table, uri, store)
    made = f"run {run_id} wrote it: " if run_id else ""
    return error.located(
        origin,
        f"{made}restore the file from a copy, or clear the table "
        f"(stagecoach tables clear {table.table}) and publish all of it again",
    )


def _run_of(table: TableSnapshot, uri: str, store: ObjectStore) -> str:
    """The run that published a file; empty if that is not known any more."""
    if table.version is None:
        return ""
    try:
        version = read_version(store, table.table, table.version)
    except StagecoachError as error:
        log.debug("the version of table %s cannot be read: %s", table.table, error)
        return ""
    for file in version.files:
        if uri.endswith(f"/{file.path}"):
            parts = (
                part.run_id
                for part in version.parts
                if (part.partition_key, part.fingerprint) == (file.partition_key, file.fingerprint)
            )
            return next(parts, "")
    return ""
