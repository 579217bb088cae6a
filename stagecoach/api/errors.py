"""Errors of sessions and results."""

from __future__ import annotations

from stagecoach.planner.errors import StagecoachError


class SessionClosedError(StagecoachError):
    """A session is used after it was closed."""


class QueryCancelledError(StagecoachError):
    """A query was cancelled by another thread."""


class ResultChangedError(StagecoachError):
    """A result that was lost while it was read came out in another order, or with other ties."""
