"""Open the next files of a scan while one is read, so that round trips do not add up.

A file takes a round trip for its footer and one for its first rows. On a store that is 30 ms away,
a task over small files waits for little else.

Worker code.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Generic, NamedTuple, TypeVar

F = TypeVar("F")
T = TypeVar("T")

FILES_AHEAD = 4
"""How many files are open besides the one that is read."""


class OpenedFile(NamedTuple, Generic[T]):
    """A file that is open.

    Args:
        rows: What its reader wants of it.
        closing: Closes it.
    """

    rows: T
    closing: ExitStack


def opened_ahead(
    files: Iterable[F], open_one: Callable[[F], OpenedFile[T]]
) -> Generator[OpenedFile[T], None, None]:
    """Yield the files in their order, each open; the caller closes them.

    Args:
        files: What is wanted of each file.
        open_one: Opens a file; called in other threads, except for a single file.

    Raises:
        Exception: The error of `open_one` for a file, when it is that file's turn.
    """
    waiting = deque(files)
    if len(waiting) == 1:
        yield open_one(waiting.pop())
        return
    opening: deque[Future[OpenedFile[T]]] = deque()
    pool = ThreadPoolExecutor(FILES_AHEAD, "parquet-open")
    try:
        while waiting or opening:
            while waiting and len(opening) < FILES_AHEAD:
                opening.append(pool.submit(open_one, waiting.popleft()))
            yield opening.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
        for left in opening:
            if not left.cancelled() and left.exception() is None:
                left.result().closing.close()
