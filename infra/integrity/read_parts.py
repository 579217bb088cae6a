"""What scans read of local Parquet files, kept so that a process reads a footer once.

Worker code. Reading it again would take milliseconds for each file of a large table.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from stagecoach.infra.host.recent_cache import RecentCache
from stagecoach.infra.integrity.parquet import ColumnChunk

FOOTER = 0
"""The part of a Parquet file that its footer is; its column chunks come after it."""

_MAX_OFFSETS = 32

PartsKey = tuple[str, frozenset[str] | None, tuple[tuple[int, int], ...] | None]
"""The version of a file, columns and rows."""


@dataclass(frozen=True)
class ReadParts:
    """What a scan reads of one file.

    Args:
        numbers: The footer and the column chunks, as checks number them.
        offsets: The middles of some of the chunks, from all over the file.
    """

    numbers: tuple[int, ...]
    offsets: tuple[int, ...]


_kept: RecentCache[ReadParts] = RecentCache(max_entries=4096, max_cost=1 << 20)


def parts_key(
    version: str, columns: Collection[str] | None, rows: Iterable[tuple[int, int]] | None
) -> PartsKey:
    """Return what the parts of a scan are known by.

    Args:
        version: Names the file's version (`records.file_version`).
        columns: Top-level columns that are read; None for all.
        rows: Ranges of rows that are read; None for all.
    """
    return (
        version,
        None if columns is None else frozenset(columns),
        None if rows is None else tuple(rows),
    )


def find_parts(key: PartsKey) -> ReadParts | None:
    """Return what a scan reads of a file, if that is known."""
    return _kept.find(key)


def keep_parts(key: PartsKey, chunks: Iterable[ColumnChunk]) -> ReadParts:
    """Keep what a scan reads of a file, and return it.

    Args:
        key: What it is known by.
        chunks: The column chunks that are read.
    """
    read = list(chunks)
    # A check that finds no checksums has read where chunks begin, and nothing else.
    middles = [(chunk.start + chunk.end) // 2 for chunk in read]
    parts = ReadParts((FOOTER, *map(part_of, read)), _some(middles))
    return _kept.keep(key, parts, len(parts.numbers) + len(parts.offsets))


def part_of(chunk: ColumnChunk) -> int:
    """Return the number of a column chunk as a part of its file."""
    return chunk.index + 1


def _some(offsets: Sequence[int]) -> tuple[int, ...]:
    """Some of the offsets, chosen at random: every other one might be of the same column."""
    chosen = random.Random(0).sample(offsets, min(len(offsets), _MAX_OFFSETS))
    return tuple(chosen)
