"""Values that are made once for each key, by one thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass
class _Entry(Generic[T]):
    lock: threading.Lock = field(default_factory=threading.Lock)
    made: list[T] = field(default_factory=list)


class EachOnce(Generic[T]):
    """Makes each value once; a thread waits for another only where both want the same one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry[T]] = {}

    def get(self, key: str, make: Callable[[], T]) -> T:
        """Return the value of a key, which is made if it is not there.

        Args:
            key: The key.
            make: Makes the value. Nothing is kept of one that raises.
        """
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
        with entry.lock:
            if not entry.made:
                entry.made.append(make())
            return entry.made[0]

    def clear(self) -> None:
        """Forget all values; one that is being made is forgotten as well."""
        with self._lock:
            self._entries = {}
