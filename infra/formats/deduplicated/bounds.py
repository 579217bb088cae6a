"""Decides by bounds which chunks hold no row that a scan wants."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from stagecoach.infra.pruning.predicates import may_hold, whole_range
from stagecoach.infra.reading.file_bounds import StoredBounds
from stagecoach.infra.reading.row_bounds import Bounds, column_bounds
from stagecoach.planner.formats.deduplicated.chunk import Chunk, DedupTable
from stagecoach.planner.plan.expressions import Expression
from stagecoach.planner.plan.physical import ScanExec
from stagecoach.planner.types import DataType, Field

_BOUNDED = ("tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz", "string")
_NOTHING: StoredBounds = (None, None, None)


class ChunkPruner:
    """Judges the chunks of one scan.

    Args:
        leaf: The scan.
        table: Its table.
        parts: Conjuncts over the scan's columns that rows must pass, with constants folded.
    """

    def __init__(self, leaf: ScanExec, table: DedupTable, parts: Sequence[Expression]) -> None:
        self._table = table
        self._parts = parts
        read = frozenset[int]().union(*(part.column_ids for part in parts))
        pairs = zip(leaf.outputs, leaf.source, strict=True)
        self._columns = [(c.id, source, c.dtype) for c, source in pairs if c.id in read]
        self._first, self._last, self._time_type = self._times()
        # Whether the times of chunks with these columns (most have the same) are those compared.
        self._has_times: dict[int, tuple[tuple[Field, ...], bool]] = {}

    def _times(self) -> tuple[float, float, DataType | None]:
        """The first time and the last that the conjuncts let through, and their type."""
        time = next((c for c in self._columns if c[1] == self._table.time_column), None)
        first, last = -math.inf, math.inf
        if time is None:
            return first, last, None
        for part in self._parts:
            found = whole_range(part)
            if found is not None and found[0] == time[0]:
                first, last = max(first, found[1]), min(last, found[2])
        return first, last, time[2]

    def matching(self, chunks: Iterable[Chunk]) -> tuple[Chunk, ...]:
        """The chunks of which a row may pass all conjuncts, in their order."""
        if not self._parts:
            return tuple(chunks)
        # Of a year's chunks nearly all are told by their times alone, and quickly.
        return tuple(c for c in chunks if self._meets_times(c) and self.may_match(c))

    def _meets_times(self, chunk: Chunk) -> bool:
        if chunk.time_min is None or chunk.time_max is None or self._time_type is None:
            return True
        if chunk.time_max >= self._first and chunk.time_min <= self._last:
            return True
        found = self._has_times.get(id(chunk.columns))
        if found is None:
            stored = chunk.type_of(self._table.time_column or "")
            found = chunk.columns, stored is not None and _same_values(stored, self._time_type)
            self._has_times[id(chunk.columns)] = found
        return not found[1]

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
