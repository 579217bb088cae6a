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

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from planner.chunks.chunk import Chunk
from planner.chunks.context import ChunkContext
from planner.chunks.even_cuts import cut_evenly
from planner.chunks.plan import ChunkPlan, DeduplicateExec

MAX_SLICES = 512
"""Slices of a group: enough to share it out evenly, few enough to be planned in no time."""


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
    """A part of a group: its rows of some time.

    Args:
        chunks: Chunks that have rows of that time.
        low: First time; None for all before.
        high: Time after the last; None for all after.
    """

    chunks: tuple[Chunk, ...]
    low: int | None = None
    high: int | None = None

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
            return 1.0
        low, high = self._clipped(ends)
        return max(high - low + 1, 0) / (ends[1] - ends[0] + 1)

    def overlap(self, first: Chunk, second: Chunk) -> bool:
        """Whether two chunks may have equal times within the slice."""
        if first.time_range is None or second.time_range is None:
            return True
        one, other = self._clipped(first.time_range), self._clipped(second.time_range)
        return max(one[0], other[0]) <= min(one[1], other[1])

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
    """The group cut where chunks of its oldest layer start; one slice where times do not tell."""
    chunks = group.chunks
    if not context.table.splits_by_time or any(c.time_range is None for c in chunks):
        return (Slice(chunks),)
    oldest = _oldest_layer(chunks, Slice(chunks))
    starts = sorted(c.time_range[0] for c in oldest if c.time_range is not None)[1:]
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


def joined(slices: Sequence[Slice]) -> Slice:
    """Neighbours as one slice."""
    chunks = dict.fromkeys(c for one in slices for c in one.chunks)
    return Slice(tuple(chunks), slices[0].low, slices[-1].high)


def layers_of(part: Slice, context: ChunkContext) -> Layers:
    """Which chunks of a slice hide rows of which.

    With a version column, an older chunk may have the later row: then chunks that overlap are all
    `newer`, that is, compared row by row.
    """
    if not context.table.splits_by_time:
        alone = len(part.chunks) == 1 and not part.chunks[0].may_contain_duplicates
        return Layers(part.chunks, (), ()) if alone else Layers((), (), part.chunks)
    by_versions = context.table.version_column is not None
    oldest = () if by_versions else _oldest_layer(part.chunks, part)
    plain: list[Chunk] = []
    base: list[Chunk] = []
    newer: list[Chunk] = []
    for chunk in part.chunks:
        others = [c for c in part.chunks if c is not chunk]
        if not chunk.may_contain_duplicates and not any(part.overlap(chunk, c) for c in others):
            plain.append(chunk)
        else:
            (base if chunk in oldest else newer).append(chunk)
    return Layers(tuple(plain), tuple(base), tuple(newer))


def _oldest_layer(chunks: Sequence[Chunk], part: Slice) -> tuple[Chunk, ...]:
    """Chunks without duplicates that overlap none of an earlier write."""
    placed: list[Chunk] = []
    oldest: list[Chunk] = []
    for chunk in sorted(chunks, key=lambda c: c.sequence):
        if not chunk.may_contain_duplicates and not any(part.overlap(chunk, c) for c in placed):
            oldest.append(chunk)
        placed.append(chunk)
    return tuple(oldest)


def _meets(chunk: Chunk, low: int | None, high: int | None) -> bool:
    if chunk.time_min is None or chunk.time_max is None:
        return True
    return (low is None or chunk.time_max >= low) and (high is None or chunk.time_min < high)
