"""What can be wrong with rows for a deduplicated table: mistakes of those who write."""

from __future__ import annotations

from stagecoach.planner.errors import CatalogError, StagecoachError


class AppendError(CatalogError):
    """Rows cannot be appended as they are: nothing of them has become part of the table."""


class CompactionError(StagecoachError):
    """A compaction gave up because others changed the same chunks; it can be started again."""

    retryable = True
