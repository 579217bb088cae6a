"""A version of a table that queries make, as catalogs, commands and Dagster show it.

Worker code.
"""

from __future__ import annotations

from typing import Protocol

from stagecoach.planner.types import Field


class StoredVersion(Protocol):
    """A version of a stored table."""

    @property
    def table(self) -> str:
        """Name of the table."""
        ...

    @property
    def number(self) -> int:
        """1 for the first commit; without gaps."""
        ...

    @property
    def committed_at(self) -> str:
        """When it was made, ISO 8601 in UTC."""
        ...

    @property
    def mode(self) -> str:
        """How it changed the table."""
        ...

    @property
    def run_id(self) -> str:
        """The run that made it; empty for none."""
        ...

    @property
    def columns(self) -> tuple[Field, ...]:
        """Columns as readers see them."""
        ...

    @property
    def has_data(self) -> bool:
        """Whether there is something to read, if only a schema."""
        ...

    @property
    def num_rows(self) -> int:
        """Rows."""
        ...

    @property
    def num_bytes(self) -> int:
        """Size of all files in bytes."""
        ...

    @property
    def num_files(self) -> int:
        """How many files it has."""
        ...

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """Dagster's partitions that have been published, sorted."""
        ...
