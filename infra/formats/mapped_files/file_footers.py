"""Footers of data files and delete files, which never change: read once in a process.

Worker code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stagecoach.infra.errors import InputLostError
from stagecoach.infra.host.recent_cache import RecentCache
from stagecoach.infra.integrity.errors import DamagedFileError
from stagecoach.infra.integrity.parquet import FooterError, read_footer
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.input_files import opened_unchanged
from stagecoach.infra.reading.inputs import ParquetInput
from stagecoach.infra.storage.object_store import StorageOptions

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_FOOTERS: RecentCache[pq.FileMetaData] = RecentCache(max_entries=512, max_cost=64 << 20)


def footer_of(file: DataFile, leaf: ParquetInput) -> pq.FileMetaData:
    """Return the footer of a file.

    Args:
        file: The file.
        leaf: Says how files are read.

    Raises:
        DamagedFileError: It is not a Parquet file, or cut short.
        InputLostError: It is gone or of another size.
        StorageError: The storage refused.
    """

    def read() -> pq.FileMetaData:
        with opened_unchanged(file, StorageOptions.from_dict(leaf.storage_options)) as source:
            try:
                return read_footer(source, source.size(), "")
            except FooterError as error:
                raise DamagedFileError(file.uri, str(error)) from error

    found = _FOOTERS.get((file.uri, file.num_bytes), read, lambda m: int(m.serialized_size))
    if file.num_rows and found.num_rows != file.num_rows:
        raise InputLostError(
            file.uri, f"it has {found.num_rows} rows instead of {file.num_rows}", True
        )
    return found


def num_rows(uri: str, num_bytes: int, leaf: ParquetInput) -> int:
    """Return how many rows a file has."""
    return int(footer_of(DataFile(uri, 0, num_bytes=num_bytes), leaf).num_rows)
