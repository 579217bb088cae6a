"""Run a function on a stack that is large enough for deeply nested queries.

Parsing, planning, writing and reading a plan recurse as deeply as the query nests, and Python stops
a thread after 1,000 frames: 60 parentheses. `run_deep` first calls the function as it is. Only if
that hits the limit does it call it again, in a thread with a larger stack and a higher limit.
Ordinary queries therefore pay nothing, and a query that is too deep even for the large stack ends
with a `RecursionError` instead of a crash. All threads share the limit, so no call recurses on a
small stack while it is raised.

The function must be safe to call twice; everything in the planner is. It should not wait for files
or networks, because calls on large stacks wait for it. No lock may be held around a call and be
taken within another one: a call that waits for all small ones to end would never end.
"""

from __future__ import annotations

import contextvars
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# Address space, not memory: only what is used is ever backed by pages. The second size is for
# processes whose address space is limited. A Python frame takes none of this stack by itself, but
# a call through C (a generator in `join`, `json`, `hash` of a dataclass) takes up to 2 KB.
_STACK_SIZES = (512 << 20, 64 << 20)
_BYTES_PER_FRAME = 5 << 10

_thread = threading.local()
_lock = threading.Lock()


def run_deep(work: Callable[[], T]) -> T:
    """Return what a function returns, on a large stack if it needs one.

    The function sees the caller's context variables. A call within another one does not start a
    second thread.

    Args:
        work: A function that has no effect when it ends with a `RecursionError`.

    Raises:
        RecursionError: The large stack does not suffice either.
    """
    if getattr(_thread, "is_deep", False):
        return work()
    if _stacks.enter_small():
        try:
            return work()
        except RecursionError:
            pass  # out of this block, the frames of the failed call are freed
        finally:
            _stacks.leave_small()
    with _stacks.large_only():
        return _DeepCall(work).result()


def on_deep_stack(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function so that each call goes through `run_deep`."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return run_deep(lambda: function(*args, **kwargs))

    return call


class _DeepCall(Generic[T]):
    """One call in a thread with a large stack.

    Args:
        work: What is called.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._context = contextvars.copy_context()
        self._returned: list[T] = []
        self._raised: BaseException | None = None

    def result(self) -> T:
        """Call the function and wait for it."""
        thread, frames = self._start()
        try:
            thread.join()
        finally:
            _recursion_limit.lower(frames)
        if self._raised is not None:
            try:
                raise self._raised
            finally:
                self._raised = None  # its traceback holds this frame
        return self._returned.pop()

    def _start(self) -> tuple[threading.Thread, int]:
        for size in _STACK_SIZES:
            frames = size // _BYTES_PER_FRAME
            # Of the process: threads that others start meanwhile get large stacks too, unused.
            with _lock:
                before = threading.stack_size(size)
                try:
                    _recursion_limit.raise_to(frames)
                    thread = threading.Thread(target=self._run, name="deep-stack", daemon=True)
                    thread.start()
                except RuntimeError:
                    _recursion_limit.lower(frames)
                    continue
                finally:
                    threading.stack_size(before)
            return thread, frames
        raise RecursionError("there is no memory for a large stack")

    def _run(self) -> None:
        _thread.is_deep = True
        try:
            self._returned.append(self._context.run(self._work))
        except RecursionError as error:
            # Without the traceback, which has as many entries as there were frames.
            self._raised = RecursionError(str(error))
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            self._raised = error


class _Stacks:
    """Keeps calls on small stacks and calls on large ones apart in time.

    Python's recursion limit is that of all threads. While it is raised for a large stack, a call
    that nests deeply on a small one would overrun it, which ends the process.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._num_small = 0
        self._num_large = 0

    def enter_small(self) -> bool:
        """Begin a call on the thread's own stack; False if it must take a large one."""
        with self._changed:
            if self._num_large and not self._depth:
                return False
            if not self._depth:
                self._num_small += 1
            _thread.small_depth = self._depth + 1
            return True

    def leave_small(self) -> None:
        """End a call that `enter_small` has let begin."""
        with self._changed:
            _thread.small_depth = self._depth - 1
            if not self._depth:
                self._num_small -= 1
                self._changed.notify_all()

    @contextmanager
    def large_only(self) -> Iterator[None]:
        """Wait until no thread is within a call on its own stack, and keep it so in the block.

        A call of this thread that is under way only waits in the block, so it does not count.
        """
        waits = self._depth > 0
        with self._changed:
            self._num_small -= waits
            self._num_large += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._num_small)
        try:
            yield
        finally:
            with self._changed:
                self._num_large -= 1
                self._changed.notify_all()
                if waits:  # it goes on where it was
                    self._changed.wait_for(lambda: not self._num_large)
                    self._num_small += 1

    @property
    def _depth(self) -> int:
        """How many calls on its own stack the thread is within."""
        return int(getattr(_thread, "small_depth", 0))


class _RecursionLimit:
    """Python's recursion limit, which all threads share, raised while any call needs it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted: list[int] = []
        self._before = 0

    def raise_to(self, frames: int) -> None:
        """Allow so many frames until `lower` is called."""
        with self._lock:
            if not self._wanted:
                self._before = sys.getrecursionlimit()
            self._wanted.append(frames)
            sys.setrecursionlimit(max(self._before, *self._wanted))

    def lower(self, frames: int) -> None:
        """Take a call of `raise_to` back."""
        with self._lock:
            self._wanted.remove(frames)
            if not self._wanted:
                sys.setrecursionlimit(self._before)


_recursion_limit = _RecursionLimit()
_stacks = _Stacks()
