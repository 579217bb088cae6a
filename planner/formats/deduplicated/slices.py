"""Groups of chunks cut into slices of which each is right by itself, so that tasks share a group.

    group   c1 ──────── c2 ──────── c3 ────────      oldest layer: no two overlap
                   c4 ─────────────                  newer rows
    slices  [ c1 | c4 ) [ c2 | c4 ) [ c3 )           cut where chunks of the oldest layer start

Rows with equal keys have equal times where the time column is in the
key, so they are in the same slice: each slice deduplicated is the group deduplicated. The same is
true of ranges of any column of the key, and of shares of the keys by their hash. These cut what is
large and what times do not part: ranges where chunks are sorted, for then a task reads only row
groups of its range; shares otherwise, where each task reads all and keeps its share.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from stagecoach.planner.formats.deduplicated.chunk import Chunk, ChunkValue
from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.even_cuts import cut_evenly
from stagecoach.planner.formats.deduplicated.layers import oldest_layer
from stagecoach.planner.types import DataType

MAX_SLICES = 512
"""Slices of a group by time: enough to share it out evenly, few enough to be planned in no time."""

SHARE_BYTES = 256 << 20
"""Stored bytes of which one task keeps a share of the keys, where it must read all of them."""

RANGE_BYTES = 16 << 20
"""Stored bytes of a range of keys: ranges cost nothing, for each row group is in one or two."""

MAX_SHARES = 64

_RANGED = frozenset(
    {"tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz", "string"}
)
"""Kinds of types whose values all engines order alike; equal keys have equal values of them."""


@dataclass(frozen=True)
class KeyRange:
    """Rows of some values of a column of the key.

    Args:
        column: The column.
        low: First value; None for all before, NULL among them.
        high: Value after the last; None for all after.
    """

    column: str
    low: ChunkValue | None = None
    high: ChunkValue | None = None


@dataclass(frozen=True)
class Slice:
    """A part of a group: its rows of some time, of these some of the keys.

    Args:
        chunks: Chunks that have rows of that time.
        low: First time; None for all before.
        high: Time after the last; None for all after.
        first_share: First of the shares of keys that belong to it.
        end_share: Share after the last.
        num_shares: How many shares there are; 1 where keys are not shared out.
        keys: The shares as a range of keys; None where the hash of a key tells its share.
    """

    chunks: tuple[Chunk, ...]
    low: int | None = None
    high: int | None = None
    first_share: int = 0
    end_share: int = 1
    num_shares: int = 1
    keys: KeyRange | None = None

    @property
    def has_all_keys(self) -> bool:
        """Whether it is all of its time."""
        return self.end_share - self.first_share == self.num_shares

    @property
    def time_range(self) -> tuple[int, int] | None:
        """First and last time of its rows; None where a chunk's range is unknown."""
        ends = [self._clipped(c.time_range) for c in self.chunks if c.time_range is not None]
        if len(ends) < len(self.chunks) or not ends:
            return None
        return min(low for low, _ in ends), max(high for _, high in ends)

    def holds_times_of(self, chunk: Chunk) -> bool:
        """Whether all times of the chunk belong to the slice."""
        ends = chunk.time_range
        if ends is None:
            return self.low is None and self.high is None
        after = self.low is None or self.low <= ends[0]
        return after and (self.high is None or ends[1] < self.high)

    def share(self, chunk: Chunk) -> float:
        """About which part of the chunk's rows belong to the slice."""
        part = (self.end_share - self.first_share) / self.num_shares
        ends = chunk.time_range
        if ends is None or self.holds_times_of(chunk):
            return part
        low, high = self._clipped(ends)
        return part * max(high - low + 1, 0) / (ends[1] - ends[0] + 1)

    def num_bytes(self) -> float:
        """About how many stored bytes of its chunks belong to it."""
        return sum(c.num_bytes * self.share(c) for c in self.chunks)

    def clipped(self, chunk: Chunk) -> tuple[int, int] | None:
        """The chunk's times within the slice; None where they are unknown."""
        return None if chunk.time_range is None else self._clipped(chunk.time_range)

    def rows_of(self, chunk: Chunk) -> tuple[int, int]:
        """First row of the chunk that may belong to the slice, and the row after the last."""
        if self.keys is None or not _is_sorted_by(chunk, self.keys.column):
            return 0, chunk.num_rows
        first, end = _row_groups(chunk.group_starts, self.keys.low, self.keys.high)
        return sum(chunk.row_groups[:first]), sum(chunk.row_groups[:end])

    def _clipped(self, ends: tuple[int, int]) -> tuple[int, int]:
        low = ends[0] if self.low is None else max(ends[0], self.low)
        high = ends[1] if self.high is None else min(ends[1], self.high - 1)
        return low, high


def slices_of(
    chunks: tuple[Chunk, ...], key: tuple[str, ...], context: ChunkContext
) -> tuple[Slice, ...]:
    """Chunks that are deduplicated together, cut by their times and, where large, by their keys."""
    return tuple(s for part in _by_time(chunks, context) for s in _by_key(part, key, context))


def joined(slices: Sequence[Slice]) -> tuple[Slice, ...]:
    """Neighbours in the order of `slices_of`, put together where they make a slice."""
    whole: list[Slice] = []
    for _, run in itertools.groupby(slices, key=lambda s: (s.low, s.high)):
        whole.append(_joined_shares(list(run)))
    found: list[Slice] = []
    for part in whole:
        if found and found[-1].has_all_keys and part.has_all_keys:
            before = found.pop()
            chunks = {c.chunk_id: c for c in (*before.chunks, *part.chunks)}
            part = Slice(tuple(chunks.values()), before.low, part.high)
        found.append(part)
    return tuple(found)


def _joined_shares(run: Sequence[Slice]) -> Slice:
    """Neighbouring shares of the keys of one time."""
    first, last = run[0], run[-1]
    keys = first.keys
    if keys is not None and last.keys is not None:
        keys = replace(keys, high=last.keys.high)
    made = replace(first, end_share=last.end_share, keys=keys)
    return Slice(made.chunks, made.low, made.high) if made.has_all_keys else made


def _by_time(chunks: tuple[Chunk, ...], context: ChunkContext) -> tuple[Slice, ...]:
    """Cut where chunks of the oldest layer start."""
    if not context.table.splits_by_time or any(c.time_range is None for c in chunks):
        return (Slice(chunks),)
    oldest = oldest_layer([(c, c.time_range) for c in chunks])
    starts = sorted(c.time_min for c in chunks if c.chunk_id in oldest and c.time_min is not None)
    starts = starts[1:]
    weights = [1] * (len(starts) + 1)
    bounds: list[int | None] = [
        None,
        *(starts[low - 1] for low, _ in cut_evenly(weights, MAX_SLICES)[1:]),
        None,
    ]
    slices = []
    for low, high in itertools.pairwise(bounds):
        inside = tuple(c for c in chunks if _meets(c, low, high))
        slices.append(Slice(inside, low, high))
    return tuple(s for s in slices if s.chunks)


def _by_key(part: Slice, key: tuple[str, ...], context: ChunkContext) -> tuple[Slice, ...]:
    """A large slice in ranges of its keys, or in shares by their hash.

    Shares are as few as memory allows, for each task reads all of them. Keys with floats are not
    shared out: values that are equal may have different hashes.
    """
    size = part.num_bytes()
    needed = min(math.ceil(size / SHARE_BYTES), MAX_SHARES)
    kinds = {f.name: f.dtype for f in context.table.columns}
    column = _range_column(part.chunks, key)
    if column and _is_ordered(part.chunks, column, kinds[column]):
        wanted = min(math.ceil(size / RANGE_BYTES), MAX_SLICES)
        cuts = _cuts(part.chunks, column, wanted)
        if len(cuts) + 1 >= max(needed, 2):
            return _ranges(part, column, cuts)
    if needed < 2 or any(kinds[name].is_floating for name in key):
        return (part,)
    return tuple(
        replace(part, first_share=i, end_share=i + 1, num_shares=needed) for i in range(needed)
    )


def _ranges(part: Slice, column: str, cuts: Sequence[ChunkValue]) -> tuple[Slice, ...]:
    bounds = itertools.pairwise([None, *cuts, None])
    return tuple(
        replace(
            part,
            first_share=i,
            end_share=i + 1,
            num_shares=len(cuts) + 1,
            keys=KeyRange(column, low, high),
        )
        for i, (low, high) in enumerate(bounds)
    )


def _range_column(chunks: Sequence[Chunk], key: Sequence[str]) -> str:
    """The column of the key by which the most bytes are sorted; empty for none."""
    sizes: dict[str, int] = {}
    for chunk in chunks:
        if chunk.group_starts and chunk.sort_order[0] in key:
            column = chunk.sort_order[0]
            sizes[column] = sizes.get(column, 0) + chunk.num_bytes
    return max(sizes, key=lambda name: sizes[name], default="")


def _is_ordered(chunks: Sequence[Chunk], column: str, dtype: DataType) -> bool:
    """Whether the column's values are ordered in the files as they are in the table."""
    stored = (c.type_of(column) for c in chunks if _is_sorted_by(c, column))
    alike = (s == dtype or (s is not None and s.is_integral and dtype.is_integral) for s in stored)
    return dtype.kind in _RANGED and all(alike)


def _cuts(chunks: Sequence[Chunk], column: str, count: int) -> list[ChunkValue]:
    """Values that cut the row groups of sorted chunks into at most `count` ranges of like size."""
    starts = [
        (value, chunk.num_bytes * rows / chunk.num_rows)
        for chunk in chunks
        if _is_sorted_by(chunk, column)
        for value, rows in zip(chunk.group_starts, chunk.row_groups, strict=True)
    ]
    starts.sort(key=lambda s: (s[0] is not None, s[0] if s[0] is not None else 0))
    cuts: list[ChunkValue] = []
    for low, _ in cut_evenly([math.ceil(size) for _, size in starts], count)[1:]:
        value = starts[low][0]
        # Below the least value nothing is, and a text with NUL is no literal of DuckDB's.
        if value is None or value == starts[0][0] or (isinstance(value, str) and "\0" in value):
            continue
        if not cuts or cuts[-1] != value:
            cuts.append(value)
    return cuts


def _is_sorted_by(chunk: Chunk, column: str) -> bool:
    return bool(chunk.group_starts) and chunk.sort_order[:1] == (column,)


def _row_groups(
    starts: Sequence[ChunkValue | None], low: ChunkValue | None, high: ChunkValue | None
) -> tuple[int, int]:
    """First row group that may have values from `low` to below `high`, and the one after the last.

    The rows of a group lie between its start and that of the next, both included.
    """
    first, end = 0, len(starts)
    while low is not None and first + 1 < len(starts) and _is_below(starts[first + 1], low):
        first += 1
    while high is not None and end > first + 1 and not _is_below(starts[end - 1], high):
        end -= 1
    return first, end


def _is_below(start: ChunkValue | None, bound: ChunkValue) -> bool:
    """Whether a value is below another; NULL is below all."""
    return start is None or start < bound  # type: ignore[operator]  # values of one column


def _meets(chunk: Chunk, low: int | None, high: int | None) -> bool:
    if chunk.time_min is None or chunk.time_max is None:
        return True
    return (low is None or chunk.time_max >= low) and (high is None or chunk.time_min < high)
