"""Divides a scan into groups of files that stay as they are when other files come and go.

Each group is the input of one task of an incremental stage, whose output the next run takes over
if the group is still the same. So where a group ends depends on nothing but the files beside the
border: files are taken in the order of their names, a large file is by itself, and after a small
one a group ends if the hash of its name says so, which it does once in `size` bytes on average.

    a b | c d e | F | g      one more file:     a b | c x d e | F | g

Another file changes one group, or cuts it in two. Only a group that would grow to twice the size
ends earlier, at a place that depends on its first file; the next border that a hash sets is where
it was.

The size follows the size of the table, in powers of two, so that there are neither few large groups
nor too many of them. All groups change when it does, which happens as often as a table doubles.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from stagecoach.infra.formats.units import ScanUnit, join_neighbours

WANTED_GROUPS = 64
"""A small table has at most about so many groups, and at least half as many."""

USUAL_BYTES = 64 << 20
"""Size of the groups of a large table: what a task reads in a moment."""

MOST_GROUPS = 4096
"""A table of more groups has larger ones."""

_HASHES = 1 << 64


def group_bytes(total: int, least: int) -> int:
    """About how many stored bytes a group has.

    Args:
        total: Stored bytes of the scan.
        least: Input below which a further task is not worth it.
    """
    few = min(max(_power_of_two(total // WANTED_GROUPS), least, 1), max(USUAL_BYTES, least))
    return max(few, _power_of_two(total // MOST_GROUPS))


def group_units(units: Sequence[ScanUnit], size: int) -> list[tuple[ScanUnit, ...]]:
    """The groups of a scan, without units that have no rows; none for no rows.

    Args:
        units: Its files.
        size: What `group_bytes` says.
    """
    filled = sorted((unit for unit in units if unit.num_rows), key=lambda unit: unit.uri)
    return [group for run in _runs(filled, size) for group in run]


def _runs(units: Sequence[ScanUnit], size: int) -> Iterator[list[tuple[ScanUnit, ...]]]:
    small: list[ScanUnit] = []
    for unit in units:
        if unit.num_bytes < size:
            small.append(unit)
            continue
        yield _packed(small, size)
        yield _cut(unit, size)
        small = []
    yield _packed(small, size)


def _packed(units: Sequence[ScanUnit], size: int) -> list[tuple[ScanUnit, ...]]:
    """Neighbouring small files in groups."""
    groups: list[tuple[ScanUnit, ...]] = []
    group: list[ScanUnit] = []
    held = 0
    for unit in units:
        if group and held + unit.num_bytes > 2 * size:
            groups.append(tuple(group))
            group, held = [], 0
        group.append(unit)
        held += unit.num_bytes
        if _hash(unit.uri) * size < unit.num_bytes * _HASHES:
            groups.append(tuple(group))
            group, held = [], 0
    if group:
        groups.append(tuple(group))
    return groups


def _cut(unit: ScanUnit, size: int) -> list[tuple[ScanUnit, ...]]:
    """A large file in groups of its row groups."""
    groups: list[tuple[ScanUnit, ...]] = []
    pieces: list[ScanUnit] = []
    held = 0
    for piece in unit.split():
        if not piece.num_rows:
            continue
        pieces.append(piece)
        held += piece.num_bytes
        if held >= size:
            groups.append(join_neighbours(pieces))
            pieces, held = [], 0
    if pieces:
        groups.append(join_neighbours(pieces))
    return groups


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")


def _power_of_two(number: int) -> int:
    """The smallest power of two that is no smaller; 0 for 0."""
    return 1 << (number - 1).bit_length() if number > 0 else 0
