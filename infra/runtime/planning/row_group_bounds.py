"""Bounds of columns in the row groups of a scan's files, read from their footers."""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.file_bounds import StoredBounds
from stagecoach.infra.reading.footers import read_group_bounds
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.infra.storage.table_files import FileEntry
from stagecoach.planner.errors import CatalogError

log = logging.getLogger(__name__)

MOST_FOOTERS = 512
"""Files of a scan whose footers are worth reading at most."""
_THREADS = 8

GroupBounds = tuple[tuple[StoredBounds, ...], ...]
"""Of each row group, the bounds of each column that was asked for."""


def bounds_of_groups(
    files: Sequence[DataFile], names: Sequence[str], options: StorageOptions
) -> Mapping[str, GroupBounds | None]:
    """Return the bounds of columns in each row group of files, by the URI of the file.

    None for a file that is another one by now, or that stores one of the columns with another type.

    Args:
        files: The files.
        names: The columns, as the files spell them.
        options: How the files are reached.
    """
    if not files:
        return {}
    read = functools.partial(_of_file, names=tuple(names), options=options)
    with ThreadPoolExecutor(min(_THREADS, len(files))) as threads:
        return dict(zip((file.uri for file in files), threads.map(read, files), strict=True))


def _of_file(file: DataFile, names: tuple[str, ...], options: StorageOptions) -> GroupBounds | None:
    unlike = {name for name, _ in file.stored_types}
    if any(name.lower() in unlike for name in names):
        return None
    entry = FileEntry(uri=file.uri, num_bytes=file.num_bytes, version=file.version)
    try:
        checksum, bounds = read_group_bounds(entry, names, options)
    except CatalogError as error:  # the task that reads it will say so
        log.debug("row groups are not looked at: %s", error)
        return None
    same = checksum == file.footer_checksum and len(bounds) == len(file.row_groups)
    return bounds if same else None
