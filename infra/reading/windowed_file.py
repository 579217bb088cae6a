"""A remote Parquet file as an engine reads it that opens files by itself, from any thread.

Worker code. The chosen columns are fetched in windows of neighbouring row groups (`row_groups`),
the next windows while one is read. All files that share a `WindowCache` share its memory limit; the
least recently used window is dropped first. Bytes outside the chosen columns, and row groups that
are too large to be held, take a request of their own. A read may cross these borders: it is put
together of its pieces, so no byte of a chosen column is given unchecked.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stagecoach.infra.reading.input_files import losses_named
from stagecoach.infra.reading.row_groups import Part, Window, fetch

if TYPE_CHECKING:
    import pyarrow as pa

    from stagecoach.infra.integrity.fetched import FetchedChecks
    from stagecoach.infra.reading.data_file import DataFile
    from stagecoach.infra.reading.tailed_file import TailedFile
    from stagecoach.infra.storage.object_store import StorageOptions


_WINDOWS_AHEAD = 3
_REQUESTS = 32  # at a time: over 30 ms, 32 requests of a megabyte are 1 GB a second


class WindowCache:
    """Windows that are there or on their way, within a bound of memory.

    Args:
        memory_bytes: The bound.
    """

    def __init__(self, memory_bytes: int) -> None:
        self.memory_bytes = memory_bytes
        self._pool = ThreadPoolExecutor(_REQUESTS, "parquet-read")
        self._lock = threading.Lock()
        self._held: OrderedDict[Hashable, _FetchedWindow] = OrderedDict()
        self._num_bytes = 0

    def get(self, key: Hashable, window: Window, file: WindowedFile) -> _FetchedWindow:
        """A window that is read now; asked for unless it has been."""
        with self._lock:
            found = self._held.get(key)
            if found is None:
                self._drop(window.num_bytes, keep=None)
                found = self._ask(key, window, file)
            self._held.move_to_end(key)
            return found

    def ask_ahead(
        self, key: Hashable, window: Window, file: WindowedFile, *, keep: Hashable = None
    ) -> None:
        """Ask for a window that is read later, if there is memory beside the one that is kept."""
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
            elif self._drop(window.num_bytes, keep=keep):
                self._ask(key, window, file)
            if keep in self._held:
                self._held.move_to_end(keep)

    def close(self) -> None:
        """Drop everything."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            self._held.clear()
            self._num_bytes = 0

    def _ask(self, key: Hashable, window: Window, file: WindowedFile) -> _FetchedWindow:
        parts = fetch(self._pool, file.source, window.ranges)
        found = self._held[key] = _FetchedWindow(window, parts, file.checks, file.source)
        self._num_bytes += window.num_bytes
        return found

    def _drop(self, num_bytes: int, *, keep: Hashable) -> bool:
        """Drop windows until `num_bytes` more fit; return whether they do."""
        while self._num_bytes + num_bytes > self.memory_bytes:
            oldest = next((key for key in self._held if key != keep), None)
            if oldest is None:
                return False
            self._num_bytes -= self._held.pop(oldest).num_bytes
        return True


class _FetchedWindow:
    """One window of a file, which is checked before anybody has a byte of it."""

    def __init__(
        self,
        window: Window,
        parts: Sequence[Part],
        checks: FetchedChecks | None,
        source: TailedFile,
    ) -> None:
        self.num_bytes = window.num_bytes
        self._window = window
        self._parts = parts
        self._checks = checks
        self._source = source
        self._lock = threading.Lock()

    def read_at(self, nbytes: int, offset: int) -> pa.Buffer | bytes:
        """Bytes from an offset on, without a copy where all of them are here.

        Raises:
            DamagedFileError: The window is damaged.
            StorageError: The store refuses or fails.
        """
        with self._lock:
            if self._checks is not None:
                self._checks.check(_Unchecked(self._read), self._window.chunks)
                self._checks = None
        return self._read(nbytes, offset)

    def _read(self, nbytes: int, offset: int) -> pa.Buffer | bytes:
        for part in self._parts:
            if part.start <= offset and offset + nbytes <= part.end:
                return part.read(offset, nbytes)
        return self._source.read_at(nbytes, offset)


@dataclass(frozen=True)
class _Unchecked:
    """What the checks themselves read."""

    read: Callable[[int, int], pa.Buffer | bytes]

    def read_at(self, nbytes: int, offset: int) -> bytes:
        """Some bytes."""
        found: bytes = self.read(nbytes, offset)
        return found


class WindowedFile:
    """See the module.

    Args:
        file: Which file of the snapshot it is.
        options: How it is reached.
        source: The file, open.
        windows: Row groups of it whose chosen columns are read.
        cache: Where they are held.
        checks: Checks them; None for nothing.
    """

    def __init__(
        self,
        file: DataFile,
        options: StorageOptions | None,
        source: TailedFile,
        windows: Sequence[Window],
        cache: WindowCache,
        checks: FetchedChecks | None,
    ) -> None:
        self.source = source
        self.num_bytes = source.size()
        self.checks = checks
        self._file = file
        self._options = options
        self._windows = sorted(windows, key=lambda window: window.ranges[:1])
        self._ranges = [(*part, i) for i, one in enumerate(self._windows) for part in one.ranges]
        self._starts = [start for start, _, _ in self._ranges]
        self._cache = cache
        self._lock = threading.Lock()
        self._checked: set[int] = set()  # of the windows that are too large to be held

    def begin(self, most_bytes: int) -> None:
        """Request the first window, unless it is larger than `most_bytes`."""
        first = next(iter(self._windows), None)
        if first is not None and first.num_bytes <= most_bytes and not self.source.is_at_hand:
            self._cache.ask_ahead((id(self), 0), first, self)

    def read_at(self, nbytes: int, offset: int) -> pa.Buffer | bytes:
        """Return bytes from `offset`; fewer only where the file ends.

        Raises:
            DamagedFileError: They are damaged.
            InputLostError: The file is gone or has changed.
            StorageError: The store refuses or fails.
        """
        with losses_named(self._file, self._options):
            return self._read_at(min(nbytes, self.num_bytes - offset), offset)

    def _read_at(self, nbytes: int, offset: int) -> pa.Buffer | bytes:
        end = offset + nbytes
        piece_end, number = self._piece(offset)
        if piece_end >= end:
            return self._read_piece(nbytes, offset, number)
        pieces = []
        while offset < end:
            piece_end, number = self._piece(offset)
            piece_end = min(piece_end, end)
            pieces.append(self._read_piece(piece_end - offset, offset, number))
            offset = piece_end
        return b"".join(pieces)

    def _piece(self, offset: int) -> tuple[int, int | None]:
        """Where the range or the gap ends that a byte lies in, and the window of the range."""
        position = bisect_right(self._starts, offset)
        if position:
            _, end, number = self._ranges[position - 1]
            if offset < end:
                return end, number
        return self._starts[position] if position < len(self._starts) else self.num_bytes, None

    def _read_piece(self, nbytes: int, offset: int, number: int | None) -> pa.Buffer | bytes:
        if number is None:
            return self.source.read_at(nbytes, offset)
        window = self._windows[number]
        if self.source.is_at_hand or 2 * window.num_bytes > self._cache.memory_bytes:
            self._check_directly(number)
            return self.source.read_at(nbytes, offset)
        key = id(self), number
        found = self._cache.get(key, window, self)
        in_use = window.num_bytes
        for ahead in range(number + 1, min(number + 1 + _WINDOWS_AHEAD, len(self._windows))):
            following = self._windows[ahead]
            in_use += following.num_bytes
            if in_use > self._cache.memory_bytes:
                break
            self._cache.ask_ahead((id(self), ahead), following, self, keep=key)
        return found.read_at(nbytes, offset)

    def _check_directly(self, number: int) -> None:
        """Check a window that is not held, which takes requests of its own."""
        if self.checks is None:
            return
        with self._lock:
            if number not in self._checked:
                self.checks.check(self.source, self._windows[number].chunks)
                self._checked.add(number)
