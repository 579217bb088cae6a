"""Remote Parquet files that an engine opens by name, like files of its own.

Worker code. Files are opened a few ahead of the one that the engine asks for, with their first rows
if these are few, so that round trips of files, and of the inputs of a task, do not add up.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import NamedTuple

from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.input_files import opened_unchanged
from stagecoach.infra.reading.inputs import ParquetInput
from stagecoach.infra.reading.opened_ahead import FILES_AHEAD
from stagecoach.infra.reading.parquet import (
    AHEAD_SHARE,
    SMALL_BYTES,
    checked_footer,
    chosen_names,
    fetched_checks,
    groups_to_read,
    select_groups,
    stored_names,
)
from stagecoach.infra.reading.row_groups import windows_of
from stagecoach.infra.reading.tailed_file import TAIL_BYTES, TailedFile
from stagecoach.infra.reading.windowed_file import WindowCache, WindowedFile
from stagecoach.infra.storage.object_store import StorageOptions


class _Wanted(NamedTuple):
    """What is read of one file."""

    leaf: ParquetInput
    files: list[DataFile]


class RemoteFiles:
    """The remote files of one task.

    Args:
        memory_bytes: Bound of what is fetched of them and not yet decoded.
    """

    def __init__(self, memory_bytes: int) -> None:
        self._cache = WindowCache(memory_bytes)
        self._pool = ThreadPoolExecutor(FILES_AHEAD, "parquet-open")
        self._closing = ExitStack()
        self._lock = threading.Lock()
        self._wanted: list[_Wanted] = []
        self._opened: dict[int, Future[WindowedFile]] = {}

    def add(self, leaf: ParquetInput) -> Mapping[str, int]:
        """Begin to open the files of a scan; return the number of each, by its URI."""
        numbers: dict[str, int] = {}
        by_uri = sorted(leaf.files, key=lambda file: file.uri)
        of_file = {
            uri: list(parts) for uri, parts in itertools.groupby(by_uri, key=lambda f: f.uri)
        }
        for uri in dict.fromkeys(file.uri for file in leaf.files):
            numbers[uri] = len(self._wanted)
            self._wanted.append(_Wanted(leaf, of_file[uri]))
        for number in list(numbers.values())[:FILES_AHEAD]:
            self._begin(number)
        return numbers

    def open(self, number: int) -> WindowedFile:
        """Return a file, once it is open, and begin to open those after it.

        Raises:
            DamagedFileError: It is damaged.
            InputLostError: It is gone or has changed.
            StorageError: The store refuses or fails.
        """
        leaf = self._wanted[number].leaf
        for following in range(number, min(number + 1 + FILES_AHEAD, len(self._wanted))):
            if self._wanted[following].leaf is leaf:
                self._begin(following)
        return self._opened[number].result()

    def close(self) -> None:
        """Close all files."""
        self._pool.shutdown(cancel_futures=True)
        self._cache.close()
        self._closing.close()

    def _begin(self, number: int) -> None:
        with self._lock:
            if number not in self._opened:
                self._opened[number] = self._pool.submit(self._open, self._wanted[number])

    def _open(self, wanted: _Wanted) -> WindowedFile:
        leaf, files = wanted
        first = files[0]
        options = StorageOptions.from_dict(leaf.storage_options)
        with ExitStack() as stack:
            source = stack.enter_context(opened_unchanged(first, options))
            is_small = source.size() <= SMALL_BYTES
            tailed = TailedFile(source, SMALL_BYTES if is_small else TAIL_BYTES)
            metadata = checked_footer(tailed, first, leaf.checks)
            names = chosen_names(stored_names(metadata), leaf)
            groups, _ = select_groups(metadata, files, groups_to_read(metadata, first, leaf))
            opened = WindowedFile(
                first,
                options,
                tailed,
                windows_of(metadata, groups, names, self._cache.memory_bytes),
                self._cache,
                fetched_checks(first, metadata, leaf.checks),
            )
            kept = stack.pop_all()
        with self._lock:
            self._closing.push(kept)
        opened.begin(self._cache.memory_bytes // AHEAD_SHARE // FILES_AHEAD)
        return opened
