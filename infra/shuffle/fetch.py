"""Byte ranges of map files: in, the ranges in reading order; out, their bytes, in that order.

Local files are memory maps, sliced without a copy. Elsewhere neighbouring ranges of one file are
merged into one request and large ranges split into several; a few requests run ahead of the reader
in threads, bounded in number and in bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa

from infra.storage.object_store import ObjectMissingError, ObjectStore
from planner.errors import StagecoachError

REQUEST_BYTES = 16 << 20
"""Largest single request, in bytes."""
READ_AHEAD_BYTES = 64 << 20
"""Bound of all requests under way or waiting for the reader, in bytes."""
MAX_REQUESTS = 16
"""Bound of the number of requests under way; small ranges are bound by latency, not by bytes."""


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


def fetch_ranges(
    store: ObjectStore,
    requests: Sequence[RangeRequest],
    file_sizes: Sequence[int],
    whole_bytes: int,
) -> Iterator[tuple[RangeRequest, Iterator[pa.Buffer]]]:
    """Yield each request with its bytes, which must be drained before the next is asked for.

    Args:
        store: Where the files are.
        requests: Ranges in reading order.
        file_sizes: Expected size of each map file, by position in the manifest.
        whole_bytes: Ranges up to this size come as one buffer.

    Raises:
        RangeLostError: A file is missing or short.
        StorageError: The store failed in another way, so that a retry may help.
    """
    if store.is_local:
        return _fetch_local(store, requests, file_sizes)
    return _fetch_remote(store, requests, whole_bytes)


def _fetch_local(
    store: ObjectStore, requests: Sequence[RangeRequest], file_sizes: Sequence[int]
) -> Iterator[tuple[RangeRequest, Iterator[pa.Buffer]]]:
    key, source = "", None
    for request in requests:
        if source is None or request.key != key:
            try:
                source = store.open_input(request.key)
            except ObjectMissingError as error:
                raise RangeLostError(request, "not found") from error
            key, size, expected = request.key, source.size(), file_sizes[request.file]
            if size != expected:
                raise RangeLostError(request, f"has {size} bytes, expected {expected}")
        source.seek(request.offset)
        # A slice of the memory map; `read_at` would copy.
        yield request, iter([source.read_buffer(request.length)])


def _fetch_remote(
    store: ObjectStore, requests: Sequence[RangeRequest], whole_bytes: int
) -> Iterator[tuple[RangeRequest, Iterator[pa.Buffer]]]:
    gets = plan_gets(requests, whole_bytes)
    if not gets:
        return
    with ThreadPoolExecutor(min(MAX_REQUESTS, len(gets)), "shuffle-read") as pool:
        ahead = _ReadAhead(store, pool, gets)
        try:
            for get, body in ahead:
                if len(get.ranges) > 1 or get.length == get.ranges[0].length:
                    for request in get.ranges:
                        part = body.slice(request.offset - get.offset, request.length)
                        yield request, iter([part])
                else:
                    yield get.ranges[0], _parts(get, body, ahead)
        finally:
            ahead.cancel()


def _parts(get: _Get, body: pa.Buffer, ahead: _ReadAhead) -> Iterator[pa.Buffer]:
    yield body
    while not get.is_last_part:
        get, body = next(ahead)
        yield body


def plan_gets(requests: Sequence[RangeRequest], whole_bytes: int) -> list[_Get]:
    """Return the requests to the store: neighbours merged, ranges above `whole_bytes` split."""
    gets: list[_Get] = []
    mergeable: _Get | None = None
    for request in requests:
        if request.length > whole_bytes:
            mergeable = None
            end = request.offset + request.length
            for offset in range(request.offset, end, REQUEST_BYTES):
                length = min(REQUEST_BYTES, end - offset)
                last = offset + length == end
                gets.append(_Get(request.key, offset, length, [request], last))
        elif (
            mergeable is not None
            and mergeable.key == request.key
            and mergeable.offset + mergeable.length == request.offset
            and mergeable.length + request.length <= REQUEST_BYTES
        ):
            mergeable.length += request.length
            mergeable.ranges.append(request)
        else:
            mergeable = _Get(request.key, request.offset, request.length, [request])
            gets.append(mergeable)
    return gets


class _ReadAhead:
    """Iterator over the answers of `gets`, in order, with bounded work in flight."""

    def __init__(self, store: ObjectStore, pool: ThreadPoolExecutor, gets: Sequence[_Get]) -> None:
        self._store = store
        self._pool = pool
        self._waiting = deque(gets)
        self._running: deque[tuple[_Get, Future[pa.Buffer]]] = deque()
        self._bytes = 0

    def __iter__(self) -> _ReadAhead:
        return self

    def __next__(self) -> tuple[_Get, pa.Buffer]:
        self._submit()
        if not self._running:
            raise StopIteration
        get, future = self._running.popleft()
        body = future.result()
        self._bytes -= get.length
        return get, body

    def cancel(self) -> None:
        """Start nothing more; what runs already ends by itself."""
        self._waiting.clear()
        for _, future in self._running:
            future.cancel()

    def _submit(self) -> None:
        while self._waiting and len(self._running) < MAX_REQUESTS:
            get = self._waiting[0]
            if self._running and self._bytes + get.length > READ_AHEAD_BYTES:
                return
            self._waiting.popleft()
            self._bytes += get.length
            self._running.append((get, self._pool.submit(_get_bytes, self._store, get)))


def _get_bytes(store: ObjectStore, get: _Get) -> pa.Buffer:
    request = get.ranges[0]
    try:
        body = store.read_bytes(get.key, get.offset, get.length)
    except ObjectMissingError as error:
        raise RangeLostError(request, "not found") from error
    if len(body) != get.length:
        end = get.offset + get.length
        raise RangeLostError(request, f"short: ends at byte {get.offset + len(body)} of {end}")
    return pa.py_buffer(body)
