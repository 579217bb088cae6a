"""Units of a scan: what a format divides a table into, and what of them a task reads.

A unit has rows and stored bytes, in pieces that are not cut further: the row groups of a Parquet
file, the slices of a group of chunks. The task estimator packs units into tasks and cuts large ones
between two pieces. What a unit is, and what its URI means, only its format knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class ScanUnit:
    """A unit, or neighbouring pieces of one.

    Args:
        uri: Identity of the unit within the scan: the file's URI for a file.
        pieces: Rows and stored bytes of each piece, in order.
        row_start: Rows of the unit before these.
        rows_after: Rows of the unit behind these.
    """

    uri: str
    pieces: tuple[tuple[int, int], ...]
    row_start: int = 0
    rows_after: int = 0

    @property
    def num_rows(self) -> int:
        """Rows of these pieces."""
        return sum(rows for rows, _ in self.pieces)

    @property
    def num_bytes(self) -> int:
        """Stored bytes of these pieces."""
        return sum(size for _, size in self.pieces)

    @property
    def row_end(self) -> int:
        """The row of the unit behind the last of these."""
        return self.row_start + self.num_rows

    def split(self) -> Iterator[ScanUnit]:
        """Yield each piece by itself."""
        start, after = self.row_start, self.num_rows + self.rows_after
        for rows, size in self.pieces:
            after -= rows
            yield ScanUnit(self.uri, ((rows, size),), start, after)
            start += rows


def join_neighbours(units: Iterable[ScanUnit]) -> tuple[ScanUnit, ...]:
    """Return the same rows, those that follow each other in a unit put together."""
    runs: list[list[ScanUnit]] = []
    for unit in units:
        last = runs[-1][-1] if runs else None
        if last is not None and last.uri == unit.uri and last.row_end == unit.row_start:
            runs[-1].append(unit)
        else:
            runs.append([unit])
    return tuple(map(_joined, runs))


def _joined(run: list[ScanUnit]) -> ScanUnit:
    pieces = tuple(piece for unit in run for piece in unit.pieces)
    return replace(run[0], pieces=pieces, rows_after=run[-1].rows_after)


@dataclass(frozen=True)
class ScanSlice:
    """What a task reads of a scan; no units for an empty input."""

    units: tuple[ScanUnit, ...] = ()
