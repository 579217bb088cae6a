"""A small cache of values made from immutable things.

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
        if (found := self.find(key)) is not None:
            return found
        value = make()
        return self.keep(key, value, cost(value))

    def find(self, key: Hashable) -> V | None:
        """Return the value of a key, if it is kept."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def keep(self, key: Hashable, value: V, cost: int, max_cost: int | None = None) -> V:
        """Keep a value that was made, and return it, or that of a thread that was quicker.

        Args:
            key: Names what the value is made of, for good.
            value: Not None, which `find` returns for what is not kept.
            cost: What it costs; one that is too much for all is not kept.
            max_cost: Most that all may cost when it is kept; the cache's own bound by default.
        """
        most = self._max_cost if max_cost is None else max_cost
        if cost > most:
            return value
        with self._lock:
            if key in self._kept:  # all get the same one
                return self._kept[key][0]
            self._kept[key] = value, cost
            self._cost += cost
            while len(self._kept) > self._max_entries or self._cost > most:
                _, (_, freed) = self._kept.popitem(last=False)
                self._cost -= freed
        return value

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self._cost = 0
