"""The keys of a finished build side, read and sorted only as far as a scan asks.

    its first rows ─▶ a sample of all rows ─▶ all rows

A range that meets some of the keys meets all of them, and where a fact table is not clustered by
the key, every file and row group meets the first few already. Then most of the keys are never
read, and none but those few are sorted.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from stagecoach.infra.pruning.key_sets import KeyDomain, KeySet
from stagecoach.infra.reading.file_bounds import StoredBounds
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.shuffle.reader import read_partitions, read_table
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.cached_property import cached_property

SAMPLE_ROWS = 1 << 16
"""Rows of the first look, and of the sample; a build side of so few is read whole at once."""


@dataclass
class BuildKeys:
    """A column of a finished build side.

    Args:
        store: Where its files are.
        manifest: Its commit.
        column: Name of the column.
        domain: In which terms its values are compared.
        null_safe: Whether a NULL among them has partners.
    """

    store: ObjectStore
    manifest: Manifest
    column: str
    domain: KeyDomain
    null_safe: bool

    def may_meet(self, bounds: StoredBounds, num_rows: int) -> bool:
        """Return whether a row within some bounds may have one of the keys.

        Args:
            bounds: What is known of the column in a file or row group.
            num_rows: Rows of that file or row group.

        Raises:
            ShuffleReadError: Keys are lost.
            StorageError: The store failed.
        """
        if self.manifest.num_rows > SAMPLE_ROWS and (
            self._first.may_meet(bounds, num_rows) or self._sample.may_meet(bounds, num_rows)
        ):
            return True
        return self.keys.may_meet(bounds, num_rows)

    @property
    def were_sorted(self) -> bool:
        """Whether some range met none of the sample, so that all keys were looked at."""
        return "keys" in vars(self)

    @cached_property
    def keys(self) -> KeySet:
        """All of them.

        Raises:
            ShuffleReadError: Keys are lost.
            StorageError: The store failed.
        """
        return self._set_of(self._values)

    @cached_property
    def _sample(self) -> KeySet:
        values = self._values
        step = -(-len(values) // SAMPLE_ROWS)
        # Chunk by chunk: texts of all chunks together may be too many for one array.
        chunks = [chunk[::step] for chunk in values.chunks]
        return self._set_of(pa.chunked_array(chunks, values.type))

    @cached_property
    def _first(self) -> KeySet:
        partitions = self.manifest.num_partitions
        schema, batches = read_partitions(
            self.store, self.manifest, 0, partitions, columns=[self.column], files=range(1)
        )
        found: list[pa.RecordBatch] = []
        for batch in batches:
            found.append(batch)
            if sum(map(len, found)) >= SAMPLE_ROWS:
                break
        return self._set_of(pa.Table.from_batches(found, schema).column(0)[:SAMPLE_ROWS])

    @cached_property
    def _values(self) -> pa.ChunkedArray:
        return read_table(self.store, self.manifest, columns=[self.column]).column(0)

    def _set_of(self, values: pa.ChunkedArray) -> KeySet:
        return KeySet.of(values, self.domain, null_safe=self.null_safe)
