"""Build typed expressions from sqlglot's scalar nodes."""

from __future__ import annotations

from stagecoach.planner.analysis.scalars import (
    calls,
    generators,
    grouping,
    literals,
    members,
    operators,
    ordered_sets,
    subqueries,
    time_windows,
    times,
)
from stagecoach.planner.analysis.scalars.handlers import Names as Names
from stagecoach.planner.analysis.scalars.handlers import build_scalar as build_scalar

__all__ = [
    "Names",
    "build_scalar",
    "calls",
    "generators",
    "grouping",
    "literals",
    "members",
    "operators",
    "ordered_sets",
    "subqueries",
    "time_windows",
    "times",
]
