"""The error of a file whose bytes are not those that were written.

Worker code. The error travels from executors as its arguments, like the others of `infra.engines`.
"""

from __future__ import annotations

from stagecoach.planner.errors import StagecoachError


class DamagedFileError(StagecoachError):
    """A stored file is damaged: no retry and no other engine can read it.

    Args:
        uri: The file.
        problem: What is wrong with its bytes.
        column: The column whose bytes they are; empty if they belong to no single column.
        row_group: 0-based number of the row group or record batch, or None.
        origin: Which table and version the file belongs to, as a phrase; empty if not known.
        remedy: What to do about it, as a phrase.
    """

    def __init__(
        self,
        uri: str,
        problem: str,
        column: str = "",
        row_group: int | None = None,
        origin: str = "",
        remedy: str = "",
    ) -> None:
        # All of them in `args`, so that the error survives pickling on its way from an executor.
        super().__init__(uri, problem, column, row_group, origin, remedy)
        self.uri = uri
        self.problem = problem
        self.column = column
        self.row_group = row_group
        self.origin = origin
        self.remedy = remedy

    def located(self, origin: str, remedy: str) -> DamagedFileError:
        """The same error, with what only the driver knows of the file."""
        return DamagedFileError(self.uri, self.problem, self.column, self.row_group, origin, remedy)

    @property
    def place(self) -> str:
        """Column and row group as a phrase; empty if they are not known."""
        parts = [f"column {self.column!r}"] if self.column else []
        if self.row_group is not None:
            parts.append(f"row group {self.row_group}")
        return ", ".join(parts)

    def __str__(self) -> str:
        origin = f" of {self.origin}" if self.origin else ""
        place = f" ({self.place})" if self.place else ""
        remedy = self.remedy or "restore the file from a copy, or write it again"
        return f"file {self.uri}{origin} is damaged{place}: {self.problem}; {remedy}"
