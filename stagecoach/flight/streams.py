"""Streams of rows to clients: bounded in number, and each of two messages at a time.

gRPC asks for the next message when the client has room for it. So a stream holds the message that
is on its way, the next one, which is made meanwhile, and what the reader of the map files holds,
whatever the size of the result. A client that reads slowly holds no more; one that has gone ends
its stream, and so does one that reads nothing for too long.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from stagecoach.flight.errors import BusyError
from stagecoach.flight.limits import Limits
from stagecoach.flight.metrics import ServeMetrics

if TYPE_CHECKING:
    from typing import Self


class Part(Protocol):
    """A part of a result."""

    @property
    def num_rows(self) -> int:
        """Rows in it."""
        ...

    @property
    def nbytes(self) -> int:
        """Their bytes in memory."""
        ...


class Caller(Protocol):
    """Who reads a stream."""

    def peer(self) -> str:
        """Return the name of its connection."""
        ...

    def cancel(self) -> object:
        """End its call."""
        ...


_P = TypeVar("_P", bound=Part)


class Stream(Iterator[_P]):
    """The messages of one call, with what must be done at their end.

    Args:
        parts: The rows.
        owner: The streams that it belongs to.
        caller: The client.
        on_close: Called once, whichever way the stream ends.
    """

    def __init__(
        self,
        parts: Iterator[_P],
        owner: Streams,
        caller: Caller,
        on_close: Callable[[], None],
    ) -> None:
        self.caller = caller
        self.connection = caller.peer()
        self.sending_since: float | None = None
        self._parts = parts
        self._ahead: Future[_P | None] | None = None
        self._owner = owner
        self._on_close = on_close
        self._is_open = True
        self._close_lock = threading.Lock()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> _P:
        # What was handed out before has been sent.
        self.sending_since = None
        try:
            part = self._next()
        except BaseException:
            self.close()
            raise
        if part is None:
            self.close()
            raise StopIteration
        self._owner.sent(part)
        self.sending_since = time.monotonic()
        return part

    def _next(self) -> _P | None:
        """The next part, whose successor is made from now on; None at the end.

        Raises:
            BusyError: The server is shutting down.
            StagecoachError: The rows cannot be read.
        """
        ahead = self._ahead or self._owner.make(self._parts)
        try:
            part = ahead.result()
        except CancelledError:
            self._owner.check()
            raise
        self._ahead = None if part is None else self._owner.make(self._parts)
        return part

    def close(self) -> None:
        """End the stream; may be called again."""
        with self._close_lock:
            if not self._is_open:
                return
            self._is_open = False
        self._owner.forget(self)
        ahead, self._ahead = self._ahead, None
        self._parts = iter(())
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
        self._makers = ThreadPoolExecutor(_makers(limits.streams), "stream")
        # Reentrant: garbage collection may close a stream at any moment.
        self._lock = threading.RLock()
        self._connections: Counter[str] = Counter()
        # gRPC alone keeps a stream alive.
        self._open: weakref.WeakSet[Stream[Any]] = weakref.WeakSet()
        self._is_closed = False

    @property
    def num_open(self) -> int:
        """How many are open."""
        with self._lock:
            return self._connections.total()

    def open(
        self,
        caller: Caller,
        read: Callable[[], Iterator[_P]],
        on_close: Callable[[], None] = lambda: None,
    ) -> Stream[_P]:
        """Return a new stream.

        Args:
            caller: The client.
            read: Gives the rows.
            on_close: Called once when the stream ends, also where this call fails.

        Raises:
            BusyError: There are too many.
        """
        connection = caller.peer()
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
            parts = read()
        except BaseException:
            self._leave(connection)
            on_close()
            raise
        stream = Stream(parts, self, caller, on_close)
        with self._lock:
            self._open.add(stream)
        return stream

    def make(self, parts: Iterator[_P]) -> Future[_P | None]:
        """Begin to make the next of the parts, in another thread; None at their end.

        Raises:
            BusyError: The server is shutting down.
        """
        self.check()
        try:
            return self._makers.submit(next, parts, None)
        except RuntimeError:  # closed since
            self.check()
            raise

    def forget(self, stream: Stream[Any]) -> None:
        """Take a stream for closed."""
        self._leave(stream.connection)

    def sent(self, part: Part) -> None:
        """Count a part."""
        self._metrics.sent(part.num_rows, part.nbytes)

    def check(self) -> None:
        """Raise an error where streams are to end.

        Raises:
            BusyError: The server is shutting down.
        """
        if self._is_closed:
            raise BusyError("the server is shutting down")

    def end_stalled(self) -> int:
        """End the calls whose clients read nothing for too long; return how many there were."""
        limit = time.monotonic() - self._limits.stall_seconds
        with self._lock:
            streams = list(self._open)
        stalled = [s for s in streams if s.sending_since is not None and s.sending_since < limit]
        for stream in stalled:
            stream.caller.cancel()
            stream.close()
        return len(stalled)

    def close(self) -> None:
        """End every stream with its next batch, and open no more."""
        self._is_closed = True
        self._makers.shutdown(wait=False, cancel_futures=True)

    def _leave(self, connection: str) -> None:
        with self._lock:
            self._connections[connection] -= 1
            if self._connections[connection] <= 0:
                del self._connections[connection]


def _makers(streams: int) -> int:
    """How many parts are made at once: some wait for a store, and others for a core."""
    return min(streams, max(4, 2 * (os.cpu_count() or 1)))
