"""Units of a scan: what a format divides a table into, and what of them a task reads.

A unit has rows and stored bytes, in pieces that are not cut further: the row groups of a Parquet
file, the slices of a group of chunks. The task estimator packs units into tasks and cuts large ones
between two pieces. What a unit is, and what its URI means, only its format knows.
"""

from __future__ import annotations

from dataclasses import dataclass

from stagecoach.infra.reading.deletes import UnitDeletes


@dataclass(frozen=True)
class SourceFile:
    """A unit, or neighbouring pieces of one, as the estimator sees it.

    Args:
        uri: Identity of the unit within the scan: the file's URI for a file.
        row_groups: Rows and stored bytes of each piece, in order.
        row_start: Rows of the unit before these.
        rows_after: Rows of the unit behind these.
        deletes: Which stored rows of the unit are deleted; None for none.
    """

    uri: str
    row_groups: tuple[tuple[int, int], ...]
    row_start: int = 0
    rows_after: int = 0
    deletes: UnitDeletes | None = None

    @property
    def num_rows(self) -> int:
        """Rows of these pieces."""
        return sum(rows for rows, _ in self.row_groups)

    @property
    def num_bytes(self) -> int:
        """Stored bytes of these pieces."""
        return sum(size for _, size in self.row_groups)


@dataclass(frozen=True)
class FileSlice:
    """Rows `row_start` to `row_end` (exclusive) of a unit that has `num_rows`."""

    uri: str
    row_start: int
    row_end: int
    num_rows: int

    @property
    def is_whole(self) -> bool:
        """Whether it is all of the unit."""
        return self.row_start == 0 and self.row_end == self.num_rows


@dataclass(frozen=True)
class ScanSlice:
    """What a task reads of a scan; no units for an empty input."""

    files: tuple[FileSlice, ...] = ()
