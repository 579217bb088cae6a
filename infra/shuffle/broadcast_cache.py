"""Broadcast inputs that a worker process has read: in, a commit; out, its batches, without reading.

Every task of a stage reads all of a broadcast input, and a Spark worker process runs one task after
the other, so what it has read (and checked) serves its next tasks. A commit is named by the hash of
its manifest, so what is kept can never be out of date. Bounded by bytes; the oldest goes first.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


class BroadcastCache:
    """Batches of whole inputs, by what names them."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[Sequence[pa.RecordBatch], int]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def num_bytes(self) -> int:
        """Memory of all that is kept."""
        with self._lock:
            return sum(size for _, size in self._kept.values())

    def batches(
        self, key: Hashable, read: Callable[[], Iterator[pa.RecordBatch]], max_bytes: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches of an input: those that are kept, else those that `read` yields.

        Args:
            key: Names the input, its commit and its columns.
            read: Reads it; what it yields is kept once it has come to its end.
            max_bytes: Bound of all that is kept from now on; 0 keeps nothing.
        """
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
        if found is not None:
            yield from found[0]
            return
        batches: list[pa.RecordBatch] | None = []
        size = 0
        for batch in read():
            size += batch.nbytes
            if batches is not None:
                batches.append(batch)
                if size > max_bytes:
                    batches = None
            yield batch
        if batches is not None:
            self._keep(key, batches, size, max_bytes)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()

    def _keep(
        self, key: Hashable, batches: Sequence[pa.RecordBatch], size: int, max_bytes: int
    ) -> None:
        with self._lock:
            self._kept[key] = batches, size
            while sum(kept for _, kept in self._kept.values()) > max_bytes:
                self._kept.popitem(last=False)


SHARED = BroadcastCache()
"""The cache of this process."""
