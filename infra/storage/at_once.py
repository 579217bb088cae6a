"""Makes requests that need not wait for each other at the same time.

Worker code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar, cast

from stagecoach.infra.storage.object_store import ObjectStore

_T = TypeVar("_T")
_A = TypeVar("_A")
_B = TypeVar("_B")

_MAX_REQUESTS = 16


def at_once(store: ObjectStore, calls: Sequence[Callable[[], _T]]) -> list[_T]:
    """Return what the calls return, in their order, when all of them have ended.

    On a local store, where a request costs less than a thread, they are made one after another.

    Args:
        store: Where the requests go.
        calls: The requests; each runs in the context of the caller.

    Raises:
        Exception: That of the first call that failed, in their order.
    """
    if store.is_local or len(calls) < 2:
        return [call() for call in calls]
    with ThreadPoolExecutor(min(len(calls), _MAX_REQUESTS), "store") as pool:
        waiting = [pool.submit(copy_context().run, call) for call in calls]
    return [one.result() for one in waiting]


def both(store: ObjectStore, first: Callable[[], _A], second: Callable[[], _B]) -> tuple[_A, _B]:
    """Return what two calls return; see `at_once`."""
    found = at_once(store, cast("list[Callable[[], object]]", [first, second]))
    return cast("tuple[_A, _B]", tuple(found))
