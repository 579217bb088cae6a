"""Keeps broadcast inputs that a worker process has read for its next tasks.

Every task of a stage reads all of a broadcast input, and a Spark worker process runs one task after
the other, so what it has read (and checked) serves its next tasks. A commit is named by the hash of
its manifest, so what is kept can never be out of date. Bounded by bytes; the oldest goes first.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING

from stagecoach.infra.host.recent_cache import RecentCache

if TYPE_CHECKING:
    import pyarrow as pa

# Inputs without rows cost no bytes, and a worker process may live for days.
_MAX_INPUTS = 1000


class BroadcastCache:
    """Batches of whole inputs, by what names them."""

    def __init__(self) -> None:
        # The bound in bytes comes with each input that is kept: it is a setting of its task.
        self._kept: RecentCache[Sequence[pa.RecordBatch]] = RecentCache(_MAX_INPUTS, max_cost=0)

    @property
    def num_bytes(self) -> int:
        """Memory of all that is kept."""
        return self._kept.cost

    def batches(
        self, key: Hashable, read: Callable[[], Iterator[pa.RecordBatch]], max_bytes: int
    ) -> Generator[pa.RecordBatch, None, None]:
        """Yield the batches of an input: those that are kept, else those that `read` yields.

        Args:
            key: Names the input, its commit and its columns.
            read: Reads it; what it yields is kept once it has come to its end.
            max_bytes: Bound of all that is kept from now on; 0 keeps nothing.
        """
        if (found := self._kept.find(key)) is not None:
            yield from found
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
            self._kept.keep(key, batches, size, max_bytes)

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()


SHARED = BroadcastCache()
"""The cache of this process."""
