"""Fetches byte ranges of map files, several at a time, in reading order.

Local files are memory maps, read without a copy. The pages that were touched in a map count as
this process's memory until it ends, so a file is mapped anew every few megabytes. Elsewhere
neighbouring ranges of one file are merged into one request and large ranges split into several; a
few requests run ahead of the reader in threads, bounded in number and in bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore
from stagecoach.infra.storage.rereads import reread
from stagecoach.planner.errors import StagecoachError

DEFAULT_MEMORY_BYTES = 128 << 20
"""Bound of the bytes that are on their way to a reader or that it looks at, if none is given."""
MAX_REQUESTS = 16
"""Bound of the number of requests under way; small ranges are bound by latency, not by bytes."""

_MAP_BYTES = 16 << 20
"""What is touched of a memory map before another takes its place."""


class RangeLostError(StagecoachError):
    """A range is not there; the reader knows which stage that means."""

    def __init__(self, request: RangeRequest, problem: str) -> None:
        super().__init__(request, problem)
        self.request = request
        self.problem = problem


@dataclass(frozen=True, kw_only=True)
class RangeRequest:
    """The bytes of one partition in one map file.

    Attributes:
        key: The file.
        file: Position of the file in the manifest.
        partition: The partition.
        offset: First byte.
        length: Number of bytes, not 0.
        checksum: CRC-32C of the bytes.
        rows: Rows in them.
    """

    key: str
    file: int
    partition: int
    offset: int
    length: int
    checksum: int
    rows: int


@dataclass
class _Get:
    """One request to the store, serving whole ranges or a part of one large range."""

    key: str
    offset: int
    length: int
    ranges: list[RangeRequest] = field(default_factory=list)
    is_last_part: bool = True


class RangeBytes(Protocol):
    """The bytes of one range, from its first to its last."""

    def read(self, size: int) -> pa.Buffer:
        """Return the next `size` bytes, which the range has."""
        ...


def request_bytes(memory_bytes: int) -> int:
    """Return the largest single request within a bound: two of them may be under way."""
    return max(1, memory_bytes // 2)


def fetch_ranges(
    store: ObjectStore,
    requests: Sequence[RangeRequest],
    file_sizes: Sequence[int],
    memory_bytes: int,
) -> Iterator[tuple[RangeRequest, RangeBytes]]:
    """Yield each request with its bytes, which must be drained before the next is asked for.

    Args:
        store: Where the files are.
        requests: Ranges in reading order.
        file_sizes: Expected size of each map file, by position in the manifest.
        memory_bytes: Bound of all requests under way, waiting, or with the reader, in bytes.

    Raises:
        RangeLostError: A file is missing or short.
        StorageError: The store failed in another way, so that a retry may help.
    """
    if store.is_local:
        return _fetch_local(store, requests, file_sizes)
    return _fetch_remote(store, requests, memory_bytes)


def _fetch_local(
    store: ObjectStore, requests: Sequence[RangeRequest], file_sizes: Sequence[int]
) -> Iterator[tuple[RangeRequest, RangeBytes]]:
    file: _LocalFile | None = None
    for request in requests:
        if file is None or file.key != request.key:
            file = _LocalFile(store, request.key, file_sizes[request.file])
        yield request, _LocalBytes(file, request)


class _LocalFile:
    """A map file on this machine."""

    def __init__(self, store: ObjectStore, key: str, num_bytes: int) -> None:
        self.key = key
        self._store = store
        self._num_bytes = num_bytes
        self._map: pa.NativeFile | None = None
        self._touched = 0

    def read(self, offset: int, size: int, request: RangeRequest) -> pa.Buffer:
        """Return a slice of a map, which lives as long as somebody holds such a slice."""
        if self._map is None or self._touched + size > _MAP_BYTES:
            self._map = self._open(request)
            self._touched = 0
        self._touched += size
        self._map.seek(offset)
        return self._map.read_buffer(size)  # `read_at` would copy

    def _open(self, request: RangeRequest) -> pa.NativeFile:
        try:
            opened = self._store.open_input(self.key)
        except ObjectMissingError as error:
            raise RangeLostError(request, "not found") from error
        # Checked first: to touch a map behind the end of its file kills the process.
        if (size := opened.size()) != self._num_bytes:
            raise RangeLostError(request, f"has {size} bytes, expected {self._num_bytes}")
        return opened


class _LocalBytes:
    """A range of a file on this machine."""

    def __init__(self, file: _LocalFile, request: RangeRequest) -> None:
        self._file = file
        self._request = request
        self._offset = request.offset

    def read(self, size: int) -> pa.Buffer:
        """Return the next `size` bytes."""
        offset = self._offset
        self._offset += size
        return self._file.read(offset, size, self._request)


def _fetch_remote(
    store: ObjectStore, requests: Sequence[RangeRequest], memory_bytes: int
) -> Iterator[tuple[RangeRequest, RangeBytes]]:
    gets = plan_gets(requests, request_bytes(memory_bytes))
    if not gets:
        return
    with ThreadPoolExecutor(min(MAX_REQUESTS, len(gets)), "shuffle-read") as pool:
        ahead = _ReadAhead(store, pool, gets, memory_bytes)
        try:
            for get, body in ahead:
                if len(get.ranges) > 1 or get.length == get.ranges[0].length:
                    for request in get.ranges:
                        part = body.slice(request.offset - get.offset, request.length)
                        yield request, _PartBytes(iter([part]))
                else:
                    yield get.ranges[0], _PartBytes(_parts(get, body, ahead))
        finally:
            ahead.cancel()


def _parts(get: _Get, body: pa.Buffer, ahead: _ReadAhead) -> Iterator[pa.Buffer]:
    yield body
    while not get.is_last_part:
        get, body = next(ahead)
        yield body


class _PartBytes:
    """A range that comes in parts; what lies in one part is not copied."""

    def __init__(self, parts: Iterator[pa.Buffer]) -> None:
        self._parts = parts
        self._part = pa.py_buffer(b"")

    def read(self, size: int) -> pa.Buffer:
        """Return the next `size` bytes."""
        pieces = []
        while size:
            if not self._part.size:
                self._part = next(self._parts)
            piece = self._part.slice(0, min(size, self._part.size))
            self._part = self._part.slice(piece.size)
            size -= piece.size
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else pa.py_buffer(b"".join(pieces))


def plan_gets(requests: Sequence[RangeRequest], max_bytes: int) -> list[_Get]:
    """Return the requests to the store, none above `max_bytes`: neighbours merged, ranges split.

    So a reader of neighbouring partitions sends one request for each map file of which it reads no
    more than that, which is half of the reader's bound.
    """
    gets: list[_Get] = []
    mergeable: _Get | None = None
    for request in requests:
        if request.length > max_bytes:
            mergeable = None
            end = request.offset + request.length
            for offset in range(request.offset, end, max_bytes):
                length = min(max_bytes, end - offset)
                last = offset + length == end
                gets.append(_Get(request.key, offset, length, [request], last))
        elif (
            mergeable is not None
            and mergeable.key == request.key
            and mergeable.offset + mergeable.length == request.offset
            and mergeable.length + request.length <= max_bytes
        ):
            mergeable.length += request.length
            mergeable.ranges.append(request)
        else:
            mergeable = _Get(request.key, request.offset, request.length, [request])
            gets.append(mergeable)
    return gets


class _ReadAhead:
    """Iterator over the answers of `gets`, in order, with bounded work in flight."""

    def __init__(
        self,
        store: ObjectStore,
        pool: ThreadPoolExecutor,
        gets: Sequence[_Get],
        memory_bytes: int,
    ) -> None:
        self._store = store
        self._pool = pool
        self._memory_bytes = memory_bytes
        self._waiting = deque(gets)
        self._running: deque[tuple[_Get, Future[pa.Buffer]]] = deque()
        self._bytes = self._given_bytes = 0

    def __iter__(self) -> _ReadAhead:
        return self

    def __next__(self) -> tuple[_Get, pa.Buffer]:
        # The reader asks for more, so it is done with what it got last.
        self._bytes -= self._given_bytes
        self._given_bytes = 0
        self._submit()
        if not self._running:
            raise StopIteration
        get, future = self._running.popleft()
        body = future.result()
        self._given_bytes = get.length
        return get, body

    def cancel(self) -> None:
        """Start nothing more; what runs already ends by itself."""
        self._waiting.clear()
        for _, future in self._running:
            future.cancel()

    def _submit(self) -> None:
        while self._waiting and len(self._running) < MAX_REQUESTS:
            get = self._waiting[0]
            if self._running and self._bytes + get.length > self._memory_bytes:
                return
            self._waiting.popleft()
            self._bytes += get.length
            self._running.append((get, self._pool.submit(_get_bytes, self._store, get)))


def _get_bytes(store: ObjectStore, get: _Get) -> pa.Buffer:
    request = get.ranges[0]
    try:
        # A manifest names the file, so it is there.
        body = reread(
            store,
            get.key,
            lambda: store.read_bytes(get.key, get.offset, get.length),
            (ObjectMissingError,),
        )
    except ObjectMissingError as error:
        raise RangeLostError(request, "not found") from error
    if len(body) != get.length:
        end = get.offset + get.length
        raise RangeLostError(request, f"short: ends at byte {get.offset + len(body)} of {end}")
    return pa.py_buffer(body)
