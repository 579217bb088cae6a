"""Damaged table files, as a run reports them: which table, and what to do about it."""

from __future__ import annotations

from stagecoach.infra.formats.registry import table_format
from stagecoach.infra.formats.snapshot import Snapshot
from stagecoach.infra.integrity.errors import DamagedFileError
from stagecoach.infra.reading.data_file import local_path
from stagecoach.infra.storage.object_store import ObjectStore


def located(error: DamagedFileError, snapshot: Snapshot, store: ObjectStore) -> DamagedFileError:
    """The error of a damaged file with its table, and what its format knows of the file.

    Args:
        error: What was found.
        snapshot: The tables of the run.
        store: The storage root, where published tables are.
    """
    for table in snapshot.tables.values():
        for file in table.files:
            if error.uri in (file.uri, local_path(file.uri)):
                return table_format(table.format).locate_damage(error, table, file.uri, store)
    return error
