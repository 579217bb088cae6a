"""What was made of immutable things: in, the name of one and how to make it; out, the value.

A key must name its content for good: a checksum, a token, an object that the value keeps alive. So
nothing here can be out of date; what is pushed out is made again. Safe to use from several threads,
of which two may make the same value at the same moment.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class RecentCache(Generic[V]):
    """The values that were asked for last.

    Args:
        max_entries: Most values that are kept.
        max_cost: Most that they cost together, in whatever unit the callers count.
    """

    def __init__(self, max_entries: int, max_cost: int) -> None:
        self._max_entries = max_entries
        self._max_cost = max_cost
        self._kept: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()
        self._cost = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        with self._lock:
            return len(self._kept)

    @property
    def cost(self) -> int:
        """What all values cost that are kept."""
        with self._lock:
            return self._cost

    def get(self, key: Hashable, make: Callable[[], V], cost: Callable[[V], int]) -> V:
        """Return the value of a key.

        Args:
            key: Names what the value is made of, for good.
            make: Makes it, if it is not kept; what it raises is passed on, and nothing is kept.
            cost: What a new value costs; one that is too much for all is not kept.
        """
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
        value = make()
        size = cost(value)
        if size > self._max_cost:
            return value
        with self._lock:
            if key in self._kept:  # another thread was quicker: all get the same one
                return self._kept[key][0]
            self._kept[key] = value, size
            self._cost += size
            while len(self._kept) > self._max_entries or self._cost > self._max_cost:
                _, (_, freed) = self._kept.popitem(last=False)
                self._cost -= freed
        return value

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self._cost = 0
