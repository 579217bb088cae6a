"""Streams of rows to clients: bounded in number, and each of two batches at a time.

gRPC asks for the next batch when the client has room for it. So a stream holds the batch that is on
its way, the next one, which is decoded meanwhile, and what the reader of the map files holds,
whatever the size of the result. A client that reads slowly holds no more; one that has gone ends
its stream.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa

from stagecoach.flight.errors import BusyError, told_to_clients
from stagecoach.flight.limits import Limits
from stagecoach.flight.metrics import ServeMetrics

if TYPE_CHECKING:
    from typing import Self


class Stream(Iterator[pa.RecordBatch]):
    """The batches of one call, with what must be done at their end.

    Args:
        batches: The rows.
        owner: The streams that it belongs to.
        connection: Of the client.
        batch_bytes: Size of a batch that is sent.
        on_close: Called once, whichever way the stream ends.
    """

    def __init__(
        self,
        batches: Iterator[pa.RecordBatch],
        owner: Streams,
        connection: str,
        batch_bytes: int,
        on_close: Callable[[], None],
    ) -> None:
        self.connection = connection
        self.sending_since: float | None = None
        self._batches = pieces(batches, batch_bytes)
        self._ahead: Future[pa.RecordBatch | None] | None = None
        self._owner = owner
        self._on_close = on_close
        self._is_open = True
        self._close_lock = threading.Lock()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        # What was handed out before has been sent.
        self.sending_since = None
        try:
            with told_to_clients():
                batch = self._next()
        except BaseException:
            self.close()
            raise
        if batch is None:
            self.close()
            raise StopIteration
        self._owner.sent(batch)
        self.sending_since = time.monotonic()
        return batch

    def _next(self) -> pa.RecordBatch | None:
        """The next batch, whose successor is decoded from now on; None at the end.

        Raises:
            BusyError: The server is shutting down.
            StagecoachError: The rows cannot be read.
        """
        ahead = self._ahead or self._owner.decode(self._batches)
        try:
            batch = ahead.result()
        except CancelledError:
            self._owner.check()
            raise
        self._ahead = None if batch is None else self._owner.decode(self._batches)
        return batch

    def close(self) -> None:
        """End the stream; may be called again."""
        with self._close_lock:
            if not self._is_open:
                return
            self._is_open = False
        self._owner.forget(self)
        ahead, self._ahead = self._ahead, None
        self._batches = iter(())
        if ahead is None or ahead.cancel() or ahead.done():
            self._on_close()
        else:
            # The files are being read at this moment.
            on_close = self._on_close
            ahead.add_done_callback(lambda _: on_close())

    def __del__(self) -> None:
        # gRPC drops the stream of a client that has gone, maybe before the first batch.
        if getattr(self, "_close_lock", None) is not None:
            self.close()


class Streams:
    """The open streams of a server.

    Args:
        limits: How many there may be.
        metrics: Counts what is sent.
    """

    def __init__(self, limits: Limits, metrics: ServeMetrics) -> None:
        self._limits = limits
        self._metrics = metrics
        # Few, because each thread of Arrow's allocator keeps what it has freed.
        self._decoders = ThreadPoolExecutor(_decoders(limits.streams), "decode")
        # Reentrant: garbage collection may close a stream at any moment.
        self._lock = threading.RLock()
        self._connections: Counter[str] = Counter()
        # gRPC alone keeps a stream alive.
        self._open: weakref.WeakSet[Stream] = weakref.WeakSet()
        self._is_closed = False

    @property
    def num_open(self) -> int:
        """How many are open."""
        with self._lock:
            return self._connections.total()

    def open(
        self,
        connection: str,
        read: Callable[[], Iterator[pa.RecordBatch]],
        on_close: Callable[[], None],
    ) -> Stream:
        """Return a new stream.

        Args:
            connection: Of the client.
            read: Gives the rows.
            on_close: Called once when the stream ends, also where this call fails.

        Raises:
            BusyError: There are too many.
        """
        try:
            with self._lock:
                self.check()
                if self._connections.total() >= self._limits.streams:
                    raise BusyError(
                        f"the server sends {self._limits.streams} streams already; read or close "
                        "some, or try again later"
                    )
                most = self._limits.streams_per_connection
                if self._connections[connection] >= most:
                    raise BusyError(
                        f"this connection has {most} open streams already; read or close some"
                    )
                self._connections[connection] += 1
        except BusyError:
            self._metrics.refused("streams")
            on_close()
            raise
        try:
            batches = read()
        except BaseException:
            self._leave(connection)
            on_close()
            raise
        stream = Stream(batches, self, connection, self._limits.batch_bytes, on_close)
        with self._lock:
            self._open.add(stream)
        return stream

    def decode(self, batches: Iterator[pa.RecordBatch]) -> Future[pa.RecordBatch | None]:
        """Begin to decode the next of the batches, in another thread; None at their end.

        Raises:
            BusyError: The server is shutting down.
        """
        self.check()
        try:
            return self._decoders.submit(next, batches, None)
        except RuntimeError:  # closed since
            self.check()
            raise

    def forget(self, stream: Stream) -> None:
        """Take a stream for closed."""
        self._leave(stream.connection)

    def sent(self, batch: pa.RecordBatch) -> None:
        """Count a batch."""
        self._metrics.sent(batch.num_rows, batch.nbytes)

    def check(self) -> None:
        """Raise an error where streams are to end.

        Raises:
            BusyError: The server is shutting down.
        """
        if self._is_closed:
            raise BusyError("the server is shutting down")

    def stalled(self) -> set[str]:
        """Return the connections whose clients have read nothing for too long."""
        limit = time.monotonic() - self._limits.stall_seconds
        with self._lock:
            streams = list(self._open)
        found = ((stream.connection, stream.sending_since) for stream in streams)
        return {connection for connection, since in found if since and since < limit}

    def close(self) -> None:
        """End every stream with its next batch, and open no more."""
        self._is_closed = True
        self._decoders.shutdown(wait=False, cancel_futures=True)

    def _leave(self, connection: str) -> None:
        with self._lock:
            self._connections[connection] -= 1
            if self._connections[connection] <= 0:
                del self._connections[connection]


def _decoders(streams: int) -> int:
    """How many batches are decoded at once: some wait for a store, and others for a core."""
    return min(streams, max(4, 2 * (os.cpu_count() or 1)))


def pieces(batches: Iterator[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches of so many bytes at most, or of one row."""
    for batch in batches:
        yield from _halves(batch, most)


def _halves(batch: pa.RecordBatch, most: int) -> Iterator[pa.RecordBatch]:
    if batch.num_rows <= 1 or batch.nbytes <= most:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _halves(batch.slice(0, half), most)
    yield from _halves(batch.slice(half), most)
