"""What ORC files say of themselves: columns, rows, stripes."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import orc

from stagecoach.infra.errors import InputLostError
from stagecoach.infra.formats.orc.stored_columns import StoredColumn, stored_columns
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.input_files import opened_unchanged
from stagecoach.infra.reading.schema_merge import check_names
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.infra.storage.table_files import FileEntry
from stagecoach.planner.errors import CatalogError

_NUM_THREADS = 16


@dataclass(frozen=True, kw_only=True)
class OrcFooter:
    """What a file says of itself.

    Args:
        entry: The file.
        num_rows: Rows of the file.
        num_stripes: Its parts, which can be read by themselves.
        columns: Its columns in their order.
    """

    entry: FileEntry
    num_rows: int
    num_stripes: int
    columns: tuple[StoredColumn, ...]


def read_footers(
    entries: Sequence[FileEntry],
    options: StorageOptions,
    known: MutableMapping[FileEntry, OrcFooter],
) -> tuple[OrcFooter, ...]:
    """Return the footers of files in their order.

    Args:
        entries: The files.
        options: How to reach them.
        known: Those that have been read; gets the others.

    Raises:
        CatalogError: A file cannot be used; the message names it.
        StorageError: The storage refused.
    """
    missing = [entry for entry in entries if entry not in known]
    if missing:
        with ThreadPoolExecutor(min(_NUM_THREADS, len(missing))) as pool:
            read = pool.map(lambda entry: _read(entry, options), missing)
            known.update(zip(missing, read, strict=True))
    return tuple(known[entry] for entry in entries)


def _read(entry: FileEntry, options: StorageOptions) -> OrcFooter:
    try:
        with opened_unchanged(as_data_file(entry), options) as source:
            file = orc.ORCFile(source)
            columns = stored_columns(file.schema, str(file.writer))
            check_names([column.field for column in columns], with_members=False)
            return OrcFooter(
                entry=entry, num_rows=file.nrows, num_stripes=file.nstripes, columns=columns
            )
    except (pa.ArrowException, InputLostError) as error:
        raise CatalogError(
            f"{entry.uri}: its ORC footer cannot be read ({error}); write the file again"
        ) from error
    except CatalogError as error:
        raise CatalogError(f"{entry.uri}: {error}") from error


def as_data_file(entry: FileEntry) -> DataFile:
    """Return a file of which nothing is known but what a listing shows."""
    return DataFile(entry.uri, 0, num_bytes=entry.num_bytes, version=entry.version)
