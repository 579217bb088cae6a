"""Divides the chunks of a slice into layers by age: newer layers hide rows of older ones.

Rows of the oldest layer need no order: those whose keys no newer row has are shown. Of the newer
rows the latest for each key are shown, unless the older one with the same key has a higher version.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from stagecoach.planner.formats.deduplicated.chunk import Chunk
from stagecoach.planner.formats.deduplicated.context import ChunkContext

Range = tuple[int, int]


@dataclass(frozen=True)
class Layers:
    """The chunks of a slice.

    Args:
        plain: No row of these has a twin; they are read as they are.
        base: No key occurs twice in these; newer rows with their keys are later ones.
        newer: Rows later than those of `base` with the same keys, compared with each other.
        are_newer_distinct: Whether no key occurs twice in `newer` either.
    """

    plain: tuple[Chunk, ...]
    base: tuple[Chunk, ...]
    newer: tuple[Chunk, ...]
    are_newer_distinct: bool = False


class Part(Protocol):
    """Some chunks, each with the times that are looked at."""

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """The chunks."""
        ...

    def clipped(self, chunk: Chunk) -> Range | None:
        """The chunk's times; None where they are unknown."""
        ...


def layers_of(part: Part, context: ChunkContext) -> Layers:
    """The layers of a slice.

    Where times do not tell whether chunks share keys, any two of them may.
    """
    by_time = context.table.splits_by_time
    ranges = [(c, part.clipped(c) if by_time else None) for c in part.chunks]
    oldest = oldest_layer(ranges)
    lone = _alone(ranges)
    plain: list[Chunk] = []
    base: list[Chunk] = []
    newer: list[Chunk] = []
    for chunk in part.chunks:
        if chunk.chunk_id in lone and not chunk.may_contain_duplicates:
            plain.append(chunk)
        else:
            (base if chunk.chunk_id in oldest else newer).append(chunk)
    ids = {chunk.chunk_id for chunk in newer}
    second = oldest_layer([(c, ends) for c, ends in ranges if c.chunk_id in ids])
    return Layers(tuple(plain), tuple(base), tuple(newer), len(second) == len(ids))


def oldest_layer(ranges: Sequence[tuple[Chunk, Range | None]]) -> frozenset[str]:
    """Ids of chunks without duplicates that overlap none of an earlier write.

    Chunks of the same write, as a compaction makes them, share no key.
    """
    covered = _Covered()
    oldest = []
    by_write = sorted(ranges, key=lambda r: r[0].sequence)
    for _, write in itertools.groupby(by_write, key=lambda r: r[0].sequence):
        together = list(write)
        for chunk, ends in together:
            if not chunk.may_contain_duplicates and not covered.meets(ends):
                oldest.append(chunk.chunk_id)
        for _, ends in together:
            covered.add(ends)
    return frozenset(oldest)


def _alone(ranges: Sequence[tuple[Chunk, Range | None]]) -> frozenset[str]:
    """Ids of chunks that overlap no other."""
    if any(ends is None for _, ends in ranges):
        return frozenset(c.chunk_id for c, _ in ranges) if len(ranges) == 1 else frozenset()
    known = sorted(((ends, c) for c, ends in ranges if ends is not None), key=lambda r: r[0])
    starts = [ends[0] for ends, _ in known[1:]]
    found = []
    last: int | None = None
    for ((low, high), chunk), following in itertools.zip_longest(known, starts):
        if (last is None or last < low) and (following is None or high < following):
            found.append(chunk.chunk_id)
        last = high if last is None else max(last, high)
    return frozenset(found)


class _Covered:
    """Times that chunks cover, as ranges that do not overlap."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._is_all = False

    def meets(self, ends: Range | None) -> bool:
        """Whether a range overlaps what is covered; None stands for any times."""
        if ends is None or self._is_all:
            return self._is_all or bool(self._starts)
        first, last = self._touched(ends)
        return first < last

    def add(self, ends: Range | None) -> None:
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

    def _touched(self, ends: Range) -> tuple[int, int]:
        return bisect.bisect_left(self._ends, ends[0]), bisect.bisect_right(self._starts, ends[1])
