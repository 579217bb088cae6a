"""Which chunks hold no row that a scan wants: in, predicates; out, yes or no for each chunk."""

from __future__ import annotations

from collections.abc import Sequence

from infra.catalog.file_bounds import StoredBounds
from infra.runtime.file_predicates import Bounds, column_bounds, may_hold
from planner.chunks.chunk import Chunk, DedupTable
from planner.expressions import Expression
from planner.physical import DedupScanExec
from planner.types import DataType

_BOUNDED = ("tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz", "string")
_NOTHING: StoredBounds = (None, None, None)


class ChunkPruner:
    """Judges the chunks of one scan.

    Args:
        leaf: The scan.
        table: Its table.
        parts: Conjuncts over the scan's columns that rows must pass, with constants folded.
    """

    def __init__(self, leaf: DedupScanExec, table: DedupTable, parts: Sequence[Expression]) -> None:
        self._table = table
        self._parts = parts
        read = frozenset[int]().union(*(part.column_ids for part in parts))
        pairs = zip(leaf.outputs, leaf.source, strict=True)
        self._columns = [(c.id, source, c.dtype) for c, source in pairs if c.id in read]

    def may_match(self, chunk: Chunk) -> bool:
        """Whether a row of the chunk may pass all conjuncts."""
        if not self._parts:
            return True
        known = {
            column: column_bounds(dtype, chunk.num_rows, self._stored(chunk, source, dtype))
            for column, source, dtype in self._columns
        }
        for column, source, _ in self._columns:
            if chunk.type_of(source) is None or source in chunk.null_columns:
                known[column] = Bounds(has_value=False)
        return all(may_hold(part, known) for part in self._parts)

    def _stored(self, chunk: Chunk, source: str, dtype: DataType) -> StoredBounds:
        """NULLs, lowest and highest value of a column, in the terms of its type in the table."""
        stored = chunk.type_of(source)
        if stored is None or not _same_values(stored, dtype):
            return _NOTHING
        if source == self._table.time_column and chunk.time_range is not None:
            return (0, *chunk.time_range)
        found = next((r for r in chunk.ranges if r.name == source), None)
        if found is None:
            return _NOTHING
        if found.low is None or found.high is None or isinstance(found.low, bool):
            return found.null_count, None, None
        return found.null_count, found.low, found.high


def _same_values(stored: DataType, dtype: DataType) -> bool:
    """Whether bounds in one type are bounds in the other; floats have none, for NaN is above."""
    if stored.is_integral and dtype.is_integral:
        return True
    return stored == dtype and (dtype.kind in _BOUNDED or dtype.is_decimal)
