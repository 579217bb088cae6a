"""How a planned scan of chunks is carried out: what is read plainly, what is compared.

In: a plan that the passes have run on. Out: groups of chunks, cut into slices of time of which each
is right by itself, so that tasks may share out a group; and for each slice its layers.

    group   c1 ──────── c2 ──────── c3 ────────      oldest layer: no two overlap
                   c4 ─────────────                  newer rows
    slices  [ c1 | c4 ) [ c2 | c4 ) [ c3 )           cut where chunks of the oldest layer start

Rows with equal keys have equal times where the time column is in the key, so they are in the same
slice: each slice deduplicated is the group deduplicated. In a slice, rows of the oldest layer need
no order: those whose keys no newer row has are shown, and of the newer rows the latest are.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from planner.chunks.chunk import Chunk
from planner.chunks.context import ChunkContext
from planner.chunks.even_cuts import cut_evenly
from planner.chunks.plan import ChunkPlan, DeduplicateExec

MAX_SLICES = 512
"""Slices of a group by time: enough to share it out evenly, few enough to be planned in no time."""


SHARE_BYTES = 256 << 20
"""Stored bytes of a group that one task compares, where times do not part it."""

MAX_SHARES = 64


@dataclass(frozen=True)
class Group:
    """Chunks whose rows are compared with each other.

    Args:
        chunks: The chunks.
        key: Columns that tell rows apart.
        reason: Why they must be compared, for people.
    """

    chunks: tuple[Chunk, ...]
    key: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Reading:
    """What a scan reads.

    Args:
        plain: Chunks without duplicates, of which no row hides another.
        groups: Groups that are deduplicated, each by itself.
    """

    plain: tuple[Chunk, ...]
    groups: tuple[Group, ...]

    @property
    def compared_rows(self) -> int:
        """Rows of all chunks that are in groups."""
        return sum(c.num_rows for group in self.groups for c in group.chunks)

    @property
    def num_rows(self) -> int:
        """Rows of all chunks that are read, hidden ones included."""
        return self.compared_rows + sum(c.num_rows for c in self.plain)


@dataclass(frozen=True)
class Slice:
    """A part of a group: its rows of some time, or a share of its keys by their hash.

    Args:
        chunks: Chunks that have rows of that time.
        low: First time; None for all before.
        high: Time after the last; None for all after.
        first_share: First of the shares of keys that belong to it.
        end_share: Share after the last.
        num_shares: How many shares there are; 1 where keys are not shared out.
    """

    chunks: tuple[Chunk, ...]
    low: int | None = None
    high: int | None = None
    first_share: int = 0
    end_share: int = 1
    num_shares: int = 1

    @property
    def time_range(self) -> tuple[int, int] | None:
        """First and last time of its rows; None where a chunk's range is unknown."""
        ends = [self._clipped(c.time_range) for c in self.chunks if c.time_range is not None]
        if len(ends) < len(self.chunks) or not ends:
            return None
        return min(low for low, _ in ends), max(high for _, high in ends)

    def holds(self, chunk: Chunk) -> bool:
        """Whether all rows of the chunk belong to the slice."""
        ends = chunk.time_range
        if ends is None:
            return self.low is None and self.high is None
        after = self.low is None or self.low <= ends[0]
        return after and (self.high is None or ends[1] < self.high)

    def share(self, chunk: Chunk) -> float:
        """About which part of the chunk's rows belong to the slice."""
        ends = chunk.time_range
        if ends is None or self.holds(chunk):
            return (self.end_share - self.first_share) / self.num_shares
        low, high = self._clipped(ends)
        return max(high - low + 1, 0) / (ends[1] - ends[0] + 1)

    def clipped(self, chunk: Chunk) -> tuple[int, int] | None:
        """The chunk's times within the slice; None where they are unknown."""
        return None if chunk.time_range is None else self._clipped(chunk.time_range)

    def _clipped(self, ends: tuple[int, int]) -> tuple[int, int]:
        low = ends[0] if self.low is None else max(ends[0], self.low)
        high = ends[1] if self.high is None else min(ends[1], self.high - 1)
        return low, high


@dataclass(frozen=True)
class Layers:
    """The chunks of a slice.

    Args:
        plain: No row of these has a twin; they are read as they are.
        base: No key occurs twice in these; newer rows hide theirs.
        newer: Rows later than those of `base` with the same keys, compared with each other.
    """

    plain: tuple[Chunk, ...]
    base: tuple[Chunk, ...]
    newer: tuple[Chunk, ...]


def reading_of(plan: ChunkPlan, context: ChunkContext) -> Reading:
    """What a plan reads plainly, and what it deduplicates."""
    plain: list[Chunk] = []
    groups: list[Group] = []
    stack = [plan]
    while stack:
        node = stack.pop()
        if isinstance(node, DeduplicateExec):
            groups.append(Group(node.chunks, node.key, _reason(node.chunks, context)))
        elif node.children:
            stack.extend(reversed(node.children))
        else:
            plain.extend(node.chunks)
    return Reading(tuple(plain), tuple(groups))


def _reason(chunks: Sequence[Chunk], context: ChunkContext) -> str:
    table = context.table
    if len(chunks) == 1:
        return "a key may occur twice within the chunk"
    if not table.splits_by_time:
        if table.time_column is None:
            return "the table has no time column"
        return f"the time '{table.time_column}' is not in the primary key"
    unknown = next((c.chunk_id for c in chunks if c.time_range is None), None)
    if unknown is not None:
        return f"the times of chunk {unknown} are not known"
    return "their times overlap"


def slices_of(group: Group, context: ChunkContext) -> tuple[Slice, ...]:
    """The group cut where chunks of its oldest layer start; by keys where times do not tell."""
    chunks = group.chunks
    if not context.table.splits_by_time or any(c.time_range is None for c in chunks):
        return _shares_of(group, context)
    oldest = _oldest_layer(chunks, Slice(chunks))
    starts = sorted(c.time_min for c in chunks if c.chunk_id in oldest and c.time_min is not None)[
        1:
    ]
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


def _shares_of(group: Group, context: ChunkContext) -> tuple[Slice, ...]:
    """A large group in shares of its keys: rows with equal keys have equal hashes.

    Each task reads all of the group to find its share, so shares are as few as memory allows. Keys
    with floats are not shared out: values that are equal may have different hashes.
    """
    kinds = {f.name: f.dtype for f in context.table.columns}
    count = min(math.ceil(sum(c.num_bytes for c in group.chunks) / SHARE_BYTES), MAX_SHARES)
    if count < 2 or any(kinds[column].is_floating for column in group.key):
        return (Slice(group.chunks),)
    return tuple(
        Slice(group.chunks, first_share=i, end_share=i + 1, num_shares=count) for i in range(count)
    )


def joined(slices: Sequence[Slice]) -> Slice:
    """Neighbours as one slice."""
    chunks = {c.chunk_id: c for one in slices for c in one.chunks}
    first, last = slices[0], slices[-1]
    return Slice(
        tuple(chunks.values()),
        first.low,
        last.high,
        first.first_share,
        last.end_share,
        first.num_shares,
    )


def layers_of(part: Slice, context: ChunkContext) -> Layers:
    """Which chunks of a slice hide rows of which.

    With a version column, an older chunk may have the later row: then chunks that overlap are all
    `newer`, that is, compared row by row.
    """
    if not context.table.splits_by_time:
        alone = len(part.chunks) == 1 and not part.chunks[0].may_contain_duplicates
        return Layers(part.chunks, (), ()) if alone else Layers((), (), part.chunks)
    by_versions = context.table.version_column is not None
    oldest = frozenset[str]() if by_versions else _oldest_layer(part.chunks, part)
    lone = _alone(part)
    plain: list[Chunk] = []
    base: list[Chunk] = []
    newer: list[Chunk] = []
    for chunk in part.chunks:
        if chunk.chunk_id in lone and not chunk.may_contain_duplicates:
            plain.append(chunk)
        else:
            (base if chunk.chunk_id in oldest else newer).append(chunk)
    return Layers(tuple(plain), tuple(base), tuple(newer))


def _alone(part: Slice) -> frozenset[str]:
    """Ids of chunks that overlap no other of the slice."""
    ranges = [(part.clipped(c), c) for c in part.chunks]
    if any(ends is None for ends, _ in ranges):
        return frozenset(c.chunk_id for c in part.chunks) if len(ranges) == 1 else frozenset()
    known = sorted(((ends, c) for ends, c in ranges if ends is not None), key=lambda r: r[0])
    starts = [ends[0] for ends, _ in known[1:]]
    found = []
    last: int | None = None
    for ((low, high), chunk), following in itertools.zip_longest(known, starts):
        if (last is None or last < low) and (following is None or high < following):
            found.append(chunk.chunk_id)
        last = high if last is None else max(last, high)
    return frozenset(found)


def _oldest_layer(chunks: Sequence[Chunk], part: Slice) -> frozenset[str]:
    """Ids of chunks without duplicates that overlap none of an earlier write."""
    covered = _Covered()
    oldest = []
    for chunk in sorted(chunks, key=lambda c: c.sequence):
        ends = part.clipped(chunk)
        if not chunk.may_contain_duplicates and not covered.meets(ends):
            oldest.append(chunk.chunk_id)
        covered.add(ends)
    return frozenset(oldest)


class _Covered:
    """Times that chunks cover, as ranges that do not overlap."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._is_all = False

    def meets(self, ends: tuple[int, int] | None) -> bool:
        """Whether a range overlaps what is covered; None stands for any times."""
        if ends is None or self._is_all:
            return self._is_all or bool(self._starts)
        first, last = self._touched(ends)
        return first < last

    def add(self, ends: tuple[int, int] | None) -> None:
        """Cover a range."""
        if ends is None:
            self._is_all = True
            return
        first, last = self._touched(ends)
        low, high = ends
        if first < last:
            low, high = min(low, self._starts[first]), max(high, self._ends[last - 1])
        self._starts[first:last] = [low]
        self._ends[first:last] = [high]

    def _touched(self, ends: tuple[int, int]) -> tuple[int, int]:
        return bisect.bisect_left(self._ends, ends[0]), bisect.bisect_right(self._starts, ends[1])


def _meets(chunk: Chunk, low: int | None, high: int | None) -> bool:
    if chunk.time_min is None or chunk.time_max is None:
        return True
    return (low is None or chunk.time_max >= low) and (high is None or chunk.time_min < high)
