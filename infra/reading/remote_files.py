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
from typing import TYPE_CHECKING, NamedTuple

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
from stagecoach.infra.reading.windowed_file import FileTail, WindowCache, WindowedFile
from stagecoach.infra.storage.object_store import StorageOptions

if TYPE_CHECKING:
    import pyarrow as pa

_TAIL_BYTES = 64 << 10  # in which most footers are whole


class _Wanted(NamedTuple):
    """What is read of one file."""

    leaf: ParquetInput
    files: list[DataFile]


class _Tailed:
    """A file that keeps its last bytes in memory, and more of them once they are read."""

    def __init__(self, source: pa.NativeFile) -> None:
        self._source = source
        self._size = source.size()
        start = 0 if self._size <= SMALL_BYTES else self._size - _TAIL_BYTES
        self.tail = FileTail(start, bytes(source.read_at(self._size - start, start)))

    def size(self) -> int:
        """Bytes of the file."""
        return self._size

    def read_at(self, nbytes: int, offset: int) -> bytes:
        """Some bytes."""
        if offset < self.tail.start:
            content = bytes(self._source.read_at(nbytes, offset))
            if offset + nbytes < self._size:
                return content
            self.tail = FileTail(offset, content)  # the footer is larger than was expected
        start = offset - self.tail.start
        return self.tail.content[start : start + nbytes]


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
            tailed = _Tailed(source)
            metadata = checked_footer(tailed, first, leaf.checks)
            names = chosen_names(stored_names(metadata), leaf)
            groups, _ = select_groups(metadata, files, groups_to_read(metadata, first, leaf))
            opened = WindowedFile(
                first,
                options,
                source,
                tailed.size(),
                tailed.tail,
                windows_of(metadata, groups, names, self._cache.memory_bytes),
                self._cache,
                fetched_checks(first, metadata, leaf.checks),
            )
            kept = stack.pop_all()
        with self._lock:
            self._closing.push(kept)
        opened.begin(self._cache.memory_bytes // AHEAD_SHARE // FILES_AHEAD)
        return opened
